#include "fx/compile/equal_groups.h"

#include <string>
#include <utility>

#include "fx/compile/lower_node.h"
#include "fx/graph/tensor_meta.h"

namespace fx::loops {
namespace {

// The same graph with the inputs x0, x1, ... .
std::shared_ptr<Graph> form_of(const Graph& graph) {
  auto out = std::make_shared<Graph>();
  std::unordered_map<const Node*, Node*> map;
  for (const Node& node : graph.nodes()) {
    Node* copy = nullptr;
    if (node.is_placeholder())
      copy = &out->placeholder("x" + std::to_string(map.size()));
    else
      copy = &out->node_copy(node, [&](Node& used) { return Argument(*map.at(&used)); });
    copy->meta() = node.meta();
    map.emplace(&node, copy);
  }
  return out;
}

// Whether what the example says of each node is the same.
bool same_example(const Graph& a, const Graph& b) {
  auto other = b.nodes().begin();
  for (const Node& node : a.nodes()) {
    const Node& twin = *other++;
    const TensorMeta* mine = tensor_meta(node);
    const TensorMeta* theirs = tensor_meta(twin);
    if (!mine != !theirs || (mine && !(*mine == *theirs))) return false;
    if (!mine && number_type(node) != number_type(twin)) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<FusedKernel> EqualGroups::find(const Graph& graph) {
  asked_ = form_of(graph);
  const auto [begin, end] = groups_.equal_range(asked_->structural_hash());
  for (auto it = begin; it != end; ++it)
    if (it->second.form->same_structure(*asked_) && same_example(*it->second.form, *asked_))
      return it->second.kernel;
  return nullptr;
}

void EqualGroups::add(std::shared_ptr<FusedKernel> kernel) {
  groups_.emplace(asked_->structural_hash(), Group{asked_, std::move(kernel)});
}

}  // namespace fx::loops
