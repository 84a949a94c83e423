#include "fx/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <numeric>
#include <random>

namespace fx {
namespace {

MemoryInterval interval(std::size_t size, std::size_t first, std::size_t last,
                        std::size_t alignment = 1) {
  return {.size = size, .alignment = alignment, .first = first, .last = last};
}

bool live_together(const MemoryInterval& a, const MemoryInterval& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::size_t lower_bound_by_steps(const std::vector<MemoryInterval>& intervals) {
  std::size_t most = 0;
  for (const MemoryInterval& at : intervals) {
    std::size_t live = 0;
    for (const MemoryInterval& other : intervals)
      if (other.first <= at.first && at.first <= other.last) live += other.size;
    most = std::max(most, live);
  }
  return most;
}

// Empty, or what is wrong with the layout.
std::string fault(const std::vector<MemoryInterval>& intervals, const MemoryPlan& plan) {
  if (plan.offsets.size() != intervals.size()) return "another number of offsets";
  std::size_t end = 0;
  std::size_t padded = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (plan.offsets[i] % intervals[i].alignment != 0) return "unaligned " + std::to_string(i);
    end = std::max(end, plan.offsets[i] + intervals[i].size);
    padded += intervals[i].size + intervals[i].alignment - 1;
    for (std::size_t k = 0; k < i; ++k) {
      const bool apart = plan.offsets[i] + intervals[i].size <= plan.offsets[k] ||
                         plan.offsets[k] + intervals[k].size <= plan.offsets[i];
      const bool empty = intervals[i].size == 0 || intervals[k].size == 0;
      if (!apart && !empty && live_together(intervals[i], intervals[k]))
        return std::to_string(k) + " and " + std::to_string(i) + " overlap";
    }
  }
  if (end != plan.arena_size) return "the arena does not end where its contents do";
  if (plan.arena_size > padded) return "larger than all in a row";
  if (plan.arena_size < plan.lower_bound) return "smaller than possible";
  if (plan.lower_bound != lower_bound_by_steps(intervals)) return "another lower bound";
  return "";
}

// The best of all orders, each block at the lowest free place: that includes an optimum, since the
// blocks of one, taken from the lowest up, fall to where they are or below.
std::size_t optimum(const std::vector<MemoryInterval>& intervals) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::size_t best = ~std::size_t{0};
  do {
    std::vector<std::pair<std::size_t, std::size_t>> placed;  // offset, interval
    std::size_t end = 0;
    for (std::size_t at : order) {
      std::size_t offset = 0;
      std::sort(placed.begin(), placed.end());
      for (const auto& [start, other] : placed)
        if (live_together(intervals[at], intervals[other]) && offset + intervals[at].size > start &&
            offset < start + intervals[other].size)
          offset = start + intervals[other].size;
      placed.emplace_back(offset, at);
      end = std::max(end, offset + intervals[at].size);
    }
    best = std::min(best, end);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(MemoryPlan, nothing_needs_nothing) {
  const MemoryPlan plan = plan_memory({});
  EXPECT_TRUE(plan.offsets.empty());
  EXPECT_EQ(plan.arena_size, 0u);
  EXPECT_EQ(plan.lower_bound, 0u);
  EXPECT_EQ(plan.str(), "arena 0 bytes for 0, at least 0");
}

TEST(MemoryPlan, a_chain_needs_two) {
  // Each value is read by the step that makes the next.
  std::vector<MemoryInterval> chain;
  for (std::size_t i = 0; i < 10; ++i) chain.push_back(interval(100, i, i + 1, 64));
  const MemoryPlan plan = plan_memory(chain);
  EXPECT_EQ(fault(chain, plan), "");
  EXPECT_EQ(plan.lower_bound, 200u);
  EXPECT_EQ(plan.arena_size, 228u);  // the second at 128
  EXPECT_EQ(plan.total_size, 1000u);
  for (std::size_t i = 2; i < 10; ++i) EXPECT_EQ(plan.offsets[i], plan.offsets[i - 2]);
}

TEST(MemoryPlan, neighbours_in_time_meet_at_a_step) {
  // [0, 1] and [1, 2] live together at step 1; [0, 1] and [2, 3] never.
  EXPECT_EQ(plan_memory(std::vector{interval(8, 0, 1), interval(8, 1, 2)}).arena_size, 16u);
  EXPECT_EQ(plan_memory(std::vector{interval(8, 0, 1), interval(8, 2, 3)}).arena_size, 8u);
}

TEST(MemoryPlan, small_ones_go_where_a_large_one_was) {
  // 6 dies, then 2 and 4 live in its place beside the 3 that stays.
  const std::vector<MemoryInterval> all = {interval(6, 0, 2), interval(3, 1, 6), interval(2, 3, 5),
                                           interval(4, 4, 6)};
  const MemoryPlan plan = plan_memory(all);
  EXPECT_EQ(fault(all, plan), "");
  EXPECT_EQ(plan.arena_size, 9u);
  EXPECT_EQ(plan.lower_bound, 9u);
}

TEST(MemoryPlan, the_order_of_time_alone_would_waste) {
  // By time: 2 at 0, 4 at 2, then 5 fits neither below nor above and ends at 11 or behind it. By
  // size: 5 at 0, 4 at 5, and 2 where the 5 comes later: 9, which is also what lives at once.
  const std::vector<MemoryInterval> all = {interval(2, 0, 1), interval(4, 1, 3), interval(5, 2, 4)};
  const MemoryPlan plan = plan_memory(all);
  EXPECT_EQ(fault(all, plan), "");
  EXPECT_EQ(plan.arena_size, 9u);
}

TEST(MemoryPlan, alignment_of_offsets) {
  const std::vector<MemoryInterval> all = {interval(1, 0, 3, 1), interval(16, 0, 3, 16),
                                           interval(3, 0, 3, 4), interval(64, 0, 3, 64)};
  const MemoryPlan plan = plan_memory(all);
  EXPECT_EQ(fault(all, plan), "");
  EXPECT_EQ(plan.arena_size, 84u);  // 64 at 0, 16 at 64, 3 at 80, 1 at 83
}

TEST(MemoryPlan, empty_values_need_no_room) {
  const std::vector<MemoryInterval> all = {interval(0, 0, 9), interval(8, 0, 9), interval(0, 2, 3)};
  const MemoryPlan plan = plan_memory(all);
  EXPECT_EQ(fault(all, plan), "");
  EXPECT_EQ(plan.arena_size, 8u);
}

TEST(MemoryPlan, a_class_shares_its_memory) {
  std::vector<MemoryInterval> all = {interval(4, 0, 1), interval(10, 4, 6, 8), interval(5, 2, 2)};
  all[0].alias = all[1].alias = 7;
  const MemoryPlan plan = plan_memory(all);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.offsets[0] % 8, 0u);
  // The class lives from 0 to 6 with 10 bytes, so the third has a place of its own.
  EXPECT_EQ(plan.lower_bound, 15u);
  EXPECT_EQ(plan.arena_size, 15u);
  EXPECT_EQ(plan.total_size, 19u);
}

TEST(MemoryPlan, refuses_what_has_no_meaning) {
  EXPECT_THROW(plan_memory(std::vector{interval(1, 0, 1, 0)}), std::invalid_argument);
  EXPECT_THROW(plan_memory(std::vector{interval(1, 0, 1, 3)}), std::invalid_argument);
  EXPECT_THROW(plan_memory(std::vector{interval(1, 2, 1)}), std::invalid_argument);
  const std::size_t most = ~std::size_t{0};
  EXPECT_THROW(plan_memory(std::vector{interval(most, 0, 1), interval(1, 3, 4)}),
               std::length_error);
  EXPECT_THROW(plan_memory(std::vector{interval(most - 8, 0, 1, 64)}), std::length_error);
  EXPECT_EQ(plan_memory(std::vector{interval(most, 0, 1)}).arena_size, most);
}

std::vector<MemoryInterval> random_intervals(std::mt19937_64& random, std::size_t count,
                                             std::size_t max_size, bool aligned) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::size_t steps = 1 + below(2 * count + 1);
  const std::size_t longest = 1 + below(steps);
  std::vector<MemoryInterval> out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = below(steps);
    out.push_back(interval(below(10) == 0 ? 0 : 1 + below(max_size), first, first + below(longest),
                           aligned ? std::size_t{1} << below(8) : 1));
  }
  return out;
}

TEST(MemoryPlan, thousands_of_random_sets_never_overlap) {
  std::mt19937_64 random(1);
  double ratio = 0;
  double worst = 1;
  double saved = 0;
  constexpr int kSets = 6000;
  for (int set = 0; set < kSets; ++set) {
    const bool aligned = set % 2 == 0;
    const auto all = random_intervals(random, 1 + random() % 60, aligned ? 5000 : 100, aligned);
    const MemoryPlan plan = plan_memory(all);
    ASSERT_EQ(fault(all, plan), "") << "set " << set;
    ASSERT_EQ(plan_memory(all).offsets, plan.offsets);
    if (plan.lower_bound == 0) continue;
    const double here =
        static_cast<double>(plan.arena_size) / static_cast<double>(plan.lower_bound);
    ratio += here / kSets;
    worst = std::max(worst, here);
    saved += static_cast<double>(plan.total_size) / static_cast<double>(plan.arena_size) / kSets;
  }
  std::cout << "arena / most live bytes: " << ratio << " on average, " << worst
            << " at worst; bytes without reuse / arena: " << saved << "\n";
  EXPECT_LT(ratio, 1.05);
  EXPECT_LT(worst, 1.6);
}

TEST(MemoryPlan, small_random_sets_are_close_to_the_optimum) {
  std::mt19937_64 random(2);
  double ratio = 0;
  double worst = 1;
  constexpr int kSets = 1000;
  for (int set = 0; set < kSets; ++set) {
    const auto all = random_intervals(random, 2 + random() % 5, 20, /*aligned=*/false);
    const std::size_t best = optimum(all);
    const std::size_t found = plan_memory(all).arena_size;
    ASSERT_GE(found, best);
    const double here = best == 0 ? 1 : static_cast<double>(found) / static_cast<double>(best);
    ratio += here / kSets;
    worst = std::max(worst, here);
  }
  std::cout << "arena / optimum: " << ratio << " on average, " << worst << " at worst\n";
  EXPECT_LT(ratio, 1.01);
}

TEST(MemoryPlan, large_sets_are_planned_in_time) {
  // A network of 100,000 steps with values that live for a few of them, and some for long.
  std::mt19937_64 random(3);
  std::vector<MemoryInterval> all;
  for (std::size_t i = 0; i < 100000; ++i)
    all.push_back(interval(64 + random() % 4096, i, i + 1 + random() % 8, 64));
  const auto start = std::chrono::steady_clock::now();
  const MemoryPlan plan = plan_memory(all);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << all.size() << " intervals in " << seconds << " s, " << plan.str() << "\n";
  EXPECT_LT(plan.arena_size, 2 * plan.lower_bound);
  EXPECT_LT(seconds, 10);
}

}  // namespace
}  // namespace fx
