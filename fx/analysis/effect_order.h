#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fx/analysis/alias.h"

namespace fx {

/// The order of nodes that their effects demand beyond the flow of values: a node that reads memory
/// stays behind the last one that wrote to it and in front of the next, and nodes with other
/// effects (random numbers, assertions, unknown functions) keep their order. Who moves nodes and
/// respects both the inputs of nodes and these edges changes no result.
///
/// Only direct edges are kept, so that their number is linear: the order is their transitive
/// closure. Empty for graphs without writes and effects, which are most. Describes the graph as it
/// was when made.
class EffectOrder {
 public:
  /// O(nodes + arguments).
  explicit EffectOrder(const Graph& graph);

  /// Nodes that must stay in front of (behind) `node`.
  std::span<Node* const> before(const Node& node) const noexcept { return of(before_, node); }
  std::span<Node* const> after(const Node& node) const noexcept { return of(after_, node); }
  bool empty() const noexcept { return before_.nodes.empty(); }

 private:
  // Lists of nodes by node id.
  struct Lists {
    std::vector<Node*> nodes;
    std::vector<std::uint32_t> begin;  // one more at the end
  };
  using Edge = std::pair<Node*, Node*>;  // first before second
  static Lists grouped(const std::vector<Edge>& edges, std::uint32_t id_bound, bool by_second);
  static std::span<Node* const> of(const Lists& lists, const Node& node) noexcept {
    if (node.id() + 1 >= lists.begin.size()) return {};
    return std::span(lists.nodes)
        .subspan(lists.begin[node.id()], lists.begin[node.id() + 1] - lists.begin[node.id()]);
  }

  Lists before_, after_;
};

}  // namespace fx
