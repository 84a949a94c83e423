#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

/// The life of one value, in list order of the graph.
struct Lifetime {
  const Node* node = nullptr;
  std::size_t defined = 0;          ///< position of the node
  const Node* last_user = nullptr;  ///< null when nobody reads the value
  std::size_t last_use = 0;         ///< position of the last user; `defined` when nobody reads it
};

/// How long values live and how many at once, when each dies at its last use. Knows nothing of
/// views: a value whose storage another one shares is counted like any other.
struct Liveness {
  std::vector<Lifetime> lifetimes;  ///< one for each node, in graph order
  /// By position: values that exist while the node runs, its inputs and its own result included.
  std::vector<std::size_t> live;
  /// The largest of `live`; 0 for an empty graph.
  std::size_t peak = 0;

  /// Null for a node that is not in the graph. O(log nodes).
  const Lifetime* find(const Node& node) const;
  /// A table: position, node, last user, values alive.
  std::string str() const;
};

/// Reads `graph`, changes nothing. The value of the output node counts as alive at the end.
/// O(nodes + uses).
Liveness liveness(const Graph& graph);

}  // namespace fx
