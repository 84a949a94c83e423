#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

/// The memory of one node's result.
struct MemoryRow {
  const Node* node = nullptr;
  std::int64_t allocated =
      0;  ///< bytes that the node makes; 0 for views and for what is there before
  std::int64_t live_bytes = 0;  ///< of what the run has made, while the node runs
  std::size_t live_values = 0;  ///< values that exist while the node runs (fx::liveness)
};

/// How much memory a run needs beyond its inputs and attributes, when every value dies at its last
/// use.
struct MemoryReport {
  std::vector<MemoryRow> rows;  ///< one for each node, in graph order
  std::int64_t peak_bytes = 0;
  const Node* peak_node = nullptr;  ///< the first at which the peak is reached
  std::int64_t total_bytes = 0;     ///< of all rows: the need of a run that frees nothing
  /// Nodes of which no sizes are known; they count as nothing.
  std::size_t unknown = 0;
  /// A table: node, bytes made, bytes and values alive; then the peak.
  std::string str() const;
};

/// Reads the "tensor_meta" of the nodes, so run shape_prop first; the numbers are those of its
/// example. Values that may share memory (AliasAnalysis) count once, from the first to the last use
/// of any of them. What operators need inside is not seen. O(nodes + uses).
MemoryReport memory_report(const Graph& graph);

}  // namespace fx
