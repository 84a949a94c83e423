#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

/// What a graph is made of.
struct GraphStatistics {
  std::size_t nodes = 0;
  /// Opcodes that occur, in the order of their enumeration, and how often.
  std::vector<std::pair<Opcode, std::size_t>> opcodes;
  /// Targets of calls (functions, methods, modules), the most frequent first, then by name.
  std::vector<std::pair<std::string, std::size_t>> calls;
  /// Calls on the longest path through the graph: what has to run one after the other, with any
  /// number of processors. 0 for a graph without calls.
  std::size_t depth = 0;

  /// A table of the calls below a line with the totals.
  std::string str() const;
};

/// Reads `graph`, changes nothing. Arguments that do not come before their user count as inputs.
/// O(nodes + uses).
GraphStatistics graph_statistics(const Graph& graph);

}  // namespace fx
