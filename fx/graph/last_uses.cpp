#include "fx/graph/last_uses.h"

namespace fx {

LastUses::LastUses(const Graph& graph) {
  const std::size_t bound = graph.id_bound();
  // The last reader of each node by list order, the node itself when there is none.
  std::vector<const Node*> dies_after(bound, nullptr);
  for (const Node& node : graph.nodes()) {
    dies_after[node.id()] = node.is_output() ? nullptr : &node;
    auto read = [&](const Node& input) {
      if (&input.graph() == &graph && !input.is_erased()) dies_after[input.id()] = &node;
    };
    for (const Argument& argument : node.args()) argument.for_each_node(read);
    for (const KwArg& argument : node.kwargs()) argument.value.for_each_node(read);
  }
  begin_.assign(bound + 1, 0);
  for (const Node* last : dies_after)
    if (last) ++begin_[last->id() + 1];
  for (std::size_t id = 0; id < bound; ++id) begin_[id + 1] += begin_[id];
  nodes_.resize(begin_[bound]);
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  // A node's own value comes after the inputs it uses up.
  for (const Node& node : graph.nodes()) {
    auto place = [&](const Node& value) {
      if (&value.graph() != &graph || dies_after[value.id()] != &node) return;
      nodes_[next[node.id()]++] = &value;
      dies_after[value.id()] = nullptr;  // placed once, also when the node reads it twice
    };
    for (const Argument& argument : node.args()) argument.for_each_node(place);
    for (const KwArg& argument : node.kwargs()) argument.value.for_each_node(place);
    place(node);
  }
}

}  // namespace fx
