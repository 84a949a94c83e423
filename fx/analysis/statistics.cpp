#include "fx/analysis/statistics.h"

#include <algorithm>
#include <functional>
#include <map>

namespace fx {

GraphStatistics graph_statistics(const Graph& graph) {
  GraphStatistics result;
  std::map<Opcode, std::size_t> opcodes;
  std::map<std::string, std::size_t> calls;
  std::vector<std::size_t> depth(graph.id_bound());
  for (const Node& node : graph.nodes()) {
    ++result.nodes;
    ++opcodes[node.op()];
    const bool is_call = node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod ||
                         node.op() == Opcode::kCallModule;
    if (is_call) ++calls[node.target().str()];
    std::size_t before = 0;
    for (const Node* input : node.all_input_nodes())
      if (&input->graph() == &graph) before = std::max(before, depth[input->id()]);
    depth[node.id()] = before + (is_call ? 1 : 0);
    result.depth = std::max(result.depth, depth[node.id()]);
  }
  result.opcodes.assign(opcodes.begin(), opcodes.end());
  result.calls.assign(calls.begin(), calls.end());
  std::ranges::stable_sort(result.calls, std::greater<>(),
                           &std::pair<std::string, std::size_t>::second);
  return result;
}

std::string GraphStatistics::str() const {
  std::string out = std::to_string(nodes) + " nodes";
  for (const auto& [opcode, count] : opcodes)
    out += ", " + std::to_string(count) + " " + std::string(opcode_name(opcode));
  out += "; depth " + std::to_string(depth) + "\n";
  for (const auto& [target, count] : calls) {
    const std::string number = std::to_string(count);
    out +=
        std::string(number.size() < 6 ? 6 - number.size() : 0, ' ') + number + "  " + target + "\n";
  }
  return out;
}

}  // namespace fx
