#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

/// Where each value of a graph is read for the last time, in list order, for the graph as it
/// stands: torch.fx's Interpreter.user_to_last_uses. A value that nobody reads dies right after its
/// own node, so that nothing lives longer than it must; the value of the output node never dies. A
/// use by a node that stands before its producer (a broken graph) does not count.
class LastUses {
 public:
  LastUses() = default;
  /// O(nodes + uses).
  explicit LastUses(const Graph& graph);

  /// The nodes whose values are not needed once `node` has run, in the order of its arguments.
  /// O(1). Empty for nodes that were not in the graph.
  std::span<const Node* const> after(const Node& node) const noexcept {
    if (node.id() + 1 >= begin_.size()) return {};
    return std::span(nodes_).subspan(begin_[node.id()], begin_[node.id() + 1] - begin_[node.id()]);
  }

 private:
  std::vector<const Node*> nodes_;    // grouped by the node after which they die
  std::vector<std::uint32_t> begin_;  // by node id: where its group starts; one more at the end
};

}  // namespace fx
