#include "fx/analysis/memory.h"

#include <algorithm>
#include <unordered_map>

#include "fx/analysis/alias.h"
#include "fx/analysis/liveness.h"
#include "fx/graph/tensor_meta.h"

namespace fx {
namespace {

std::int64_t bytes_of(const NestedTensorMeta& meta) {
  if (const TensorMeta* tensor = meta.tensor()) return tensor->nbytes();
  std::int64_t sum = 0;
  if (const auto* items = meta.items())
    for (const NestedTensorMeta& item : *items) sum += bytes_of(item);
  return sum;
}

// Bytes of the node's value; -1 when nothing is known of a value that may hold tensors.
std::int64_t bytes_of(const Node& node) {
  if (const TensorMeta* tensor = tensor_meta(node)) return tensor->nbytes();
  if (const auto* nested = node.meta().get<NestedTensorMeta>("tensor_meta"))
    return bytes_of(*nested);
  return node.meta().contains("type") ? 0 : -1;
}

// Memory that several values may share.
struct Block {
  std::size_t first = 0;
  std::size_t last = 0;
  std::int64_t bytes = 0;
};

std::string cell(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(text.end(), width - text.size(), ' ');
  return text + "  ";
}

}  // namespace

MemoryReport memory_report(const Graph& graph) {
  MemoryReport report;
  const Liveness lives = liveness(graph);
  const AliasAnalysis aliases(graph);
  std::unordered_map<AliasAnalysis::Set, Block> blocks;
  const std::size_t end = lives.lifetimes.size();
  for (std::size_t at = 0; at < end; ++at) {
    const Lifetime& life = lives.lifetimes[at];
    const Node& node = *life.node;
    MemoryRow row{.node = &node, .live_values = lives.live[at]};
    const bool is_result = !node.is_placeholder() && !node.is_output() &&
                           node.op() != Opcode::kGetAttr && !aliases.is_external(node);
    if (is_result) {
      const std::int64_t bytes = bytes_of(node);
      report.unknown += bytes < 0 ? 1 : 0;
      const auto [found, is_new] = blocks.try_emplace(aliases.set_of(node), Block{at, at, 0});
      Block& block = found->second;
      // A view is no larger than what it is a view of, but a list is as large as its elements.
      if (bytes > block.bytes) {
        row.allocated = bytes - block.bytes;
        block.bytes = bytes;
      }
      block.last = std::max(block.last, aliases.reaches_output(node) ? end : life.last_use);
    }
    report.total_bytes += row.allocated;
    report.rows.push_back(row);
  }
  // The change of the live bytes at each position.
  std::vector<std::int64_t> change(end + 1);
  for (const auto& [set, block] : blocks) {
    change[block.first] += block.bytes;
    if (block.last + 1 < end) change[block.last + 1] -= block.bytes;
  }
  std::int64_t live = 0;
  for (std::size_t at = 0; at < end; ++at) {
    live += change[at];
    report.rows[at].live_bytes = live;
    if (live > report.peak_bytes) {
      report.peak_bytes = live;
      report.peak_node = report.rows[at].node;
    }
  }
  return report;
}

std::string MemoryReport::str() const {
  std::size_t width = 4;
  for (const MemoryRow& row : rows) width = std::max(width, row.node->name().size());
  std::string out = cell("node", width) + cell("made", 12) + cell("alive", 12) + "values\n";
  for (const MemoryRow& row : rows)
    out += cell(std::string(row.node->name()), width) + cell(std::to_string(row.allocated), 12) +
           cell(std::to_string(row.live_bytes), 12) + std::to_string(row.live_values) + "\n";
  out += "peak memory " + std::to_string(peak_bytes) + " bytes";
  if (peak_node) out += " at " + std::string(peak_node->name());
  out += ", " + std::to_string(total_bytes) + " made in all\n";
  if (unknown) out += std::to_string(unknown) + " nodes of unknown size\n";
  return out;
}

}  // namespace fx
