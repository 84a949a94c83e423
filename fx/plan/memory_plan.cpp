#include "fx/plan/memory_plan.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

namespace fx {
namespace {

// Up to here all orders are tried, each of which compares every block with all placed before it.
constexpr std::size_t kMaxQuadratic = 4096;

// Intervals that share memory, as one.
struct Block {
  std::size_t size = 0;
  std::size_t alignment = 1;
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t offset = 0;
};

std::size_t add_checked(std::size_t a, std::size_t b) {
  if (b > std::numeric_limits<std::size_t>::max() - a)
    throw std::length_error("plan_memory: the sizes do not fit into size_t");
  return a + b;
}

std::size_t align_up(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

bool live_together(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The start of the smallest gap that holds the block between the `placed` ones, which are sorted by
// offset and all live when it does; behind them if there is none.
template <typename Placed>
std::size_t best_offset(const Block& block, const Placed& placed) {
  std::size_t end = 0;  // of what has been passed
  std::size_t best = 0;
  std::size_t best_gap = std::numeric_limits<std::size_t>::max();
  for (const Block* other : placed) {
    if (!live_together(block, *other)) continue;
    const std::size_t start = align_up(end, block.alignment);
    if (start <= other->offset && other->offset - start >= block.size &&
        other->offset - end < best_gap) {
      best = start;
      best_gap = other->offset - end;
    }
    end = std::max(end, other->offset + other->size);
  }
  return best_gap < std::numeric_limits<std::size_t>::max() ? best : align_up(end, block.alignment);
}

void insert_by_offset(std::vector<const Block*>& placed, const Block& block) {
  placed.insert(
      std::upper_bound(placed.begin(), placed.end(), &block,
                       [](const Block* a, const Block* b) { return a->offset < b->offset; }),
      &block);
}

std::size_t end_of(const std::vector<Block>& blocks) {
  std::size_t end = 0;
  for (const Block& block : blocks) end = std::max(end, block.offset + block.size);
  return end;
}

// Block after block in this order, each where it fits best. O(n^2).
std::size_t place(std::vector<Block>& blocks, const std::vector<std::size_t>& order) {
  std::vector<const Block*> placed;
  placed.reserve(blocks.size());
  for (std::size_t at : order) {
    blocks[at].offset = best_offset(blocks[at], placed);
    insert_by_offset(placed, blocks[at]);
  }
  return end_of(blocks);
}

// In the order of time, the largest first where several start: only what still lives is in the way.
// O(n * blocks that live at once).
std::size_t place_by_time(std::vector<Block>& blocks, std::vector<std::size_t> order) {
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return blocks[a].first != blocks[b].first ? blocks[a].first < blocks[b].first
                                              : blocks[a].size > blocks[b].size;
  });
  std::vector<const Block*> live;
  for (std::size_t at : order) {
    Block& block = blocks[at];
    std::erase_if(live, [&](const Block* other) { return other->last < block.first; });
    block.offset = best_offset(block, live);
    insert_by_offset(live, block);
  }
  return end_of(blocks);
}

std::size_t most_live_bytes(const std::vector<Block>& blocks) {
  // At a step, what starts there is added before what ended at the step before it counts as gone.
  std::vector<std::pair<std::size_t, const Block*>> starts;
  std::vector<std::pair<std::size_t, const Block*>> ends;
  for (const Block& block : blocks) {
    starts.emplace_back(block.first, &block);
    ends.emplace_back(block.last, &block);
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  std::size_t live = 0;
  std::size_t most = 0;
  std::size_t next_end = 0;
  for (const auto& [first, block] : starts) {
    for (; ends[next_end].first < first; ++next_end) live -= ends[next_end].second->size;
    live += block->size;
    most = std::max(most, live);
  }
  return most;
}

}  // namespace

MemoryPlan plan_memory(std::span<const MemoryInterval> intervals) {
  MemoryPlan plan;
  std::vector<Block> blocks;
  std::vector<std::size_t> block_of(intervals.size());
  std::unordered_map<std::uint32_t, std::size_t> block_of_class;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const MemoryInterval& interval = intervals[i];
    if (!std::has_single_bit(interval.alignment))
      throw std::invalid_argument("plan_memory: interval " + std::to_string(i) + " has alignment " +
                                  std::to_string(interval.alignment) + ", wanted a power of two");
    if (interval.last < interval.first)
      throw std::invalid_argument("plan_memory: interval " + std::to_string(i) + " ends at step " +
                                  std::to_string(interval.last) + ", before its first, " +
                                  std::to_string(interval.first));
    plan.total_size = add_checked(plan.total_size, interval.size);
    block_of[i] = blocks.size();
    if (interval.alias != MemoryInterval::kNoAlias)
      block_of[i] = block_of_class.try_emplace(interval.alias, blocks.size()).first->second;
    if (block_of[i] == blocks.size()) {
      blocks.push_back({interval.size, interval.alignment, interval.first, interval.last});
    } else {
      Block& block = blocks[block_of[i]];
      block.size = std::max(block.size, interval.size);
      block.alignment = std::max(block.alignment, interval.alignment);
      block.first = std::min(block.first, interval.first);
      block.last = std::max(block.last, interval.last);
    }
  }
  // No offset goes beyond all blocks in a row, each moved up to its alignment.
  std::size_t longest = 0;
  for (const Block& block : blocks)
    longest = add_checked(longest, add_checked(block.size, block.alignment - 1));
  plan.lower_bound = most_live_bytes(blocks);

  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].size > 0) order.push_back(i);
  plan.arena_size = place_by_time(blocks, order);
  if (order.size() <= kMaxQuadratic && plan.arena_size > plan.lower_bound) {
    const auto steps = [](const Block& b) { return static_cast<double>(b.last - b.first) + 1; };
    const auto try_order = [&](auto&& weight) {
      std::vector<std::size_t> sorted = order;
      std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
        return weight(blocks[a]) > weight(blocks[b]);
      });
      std::vector<Block> tried = blocks;
      const std::size_t size = place(tried, sorted);
      if (size >= plan.arena_size) return;
      plan.arena_size = size;
      blocks = std::move(tried);
    };
    try_order([](const Block& b) { return static_cast<double>(b.size); });
    try_order([&](const Block& b) { return static_cast<double>(b.size) * steps(b); });
    try_order(steps);
  }
  plan.offsets.resize(intervals.size());
  for (std::size_t i = 0; i < intervals.size(); ++i) plan.offsets[i] = blocks[block_of[i]].offset;
  return plan;
}

std::string MemoryPlan::str() const {
  return "arena " + std::to_string(arena_size) + " bytes for " + std::to_string(total_size) +
         ", at least " + std::to_string(lower_bound);
}

}  // namespace fx
