#include "fx/passes/merge_matmul.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "fx/analysis/alias.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/fuse_partitions.h"
#include "fx/passes/tools_common.h"

namespace fx {
namespace {

class Merger {
 public:
  explicit Merger(GraphModule& module)
      : module_(module), graph_(module.graph()), aliases_(graph_) {}

  PassResult run() {
    for (Node& node : graph_.nodes())
      if (may_merge(node)) add(node);
    PassResult result;
    for (const Group& group : groups_) {
      if (group.products.size() < 2) continue;
      merge(group.products);
      result.rewrites += static_cast<std::int64_t>(group.products.size());
      stable_topological_sort(graph_);
    }
    result.changed = result.rewrites > 0;
    return result;
  }

 private:
  struct Group {
    std::vector<Node*> products;
  };

  static bool is_matrix(const Node& node) {
    const TensorMeta* meta = tensor_meta(node);
    return meta && meta->dim() == 2;
  }

  bool may_merge(const Node& node) const {
    if (node.num_args() != 2 || !node.kwargs().empty() || node.num_users() == 0) return false;
    const Node* left = node.args()[0].node_or_null();
    const Node* right = node.args()[1].node_or_null();
    if (!left || !right || aliases_.is_written(*left) || aliases_.is_written(*right) ||
        aliases_.is_written(node))
      return false;
    if (node.calls("aten::mm")) return true;
    const bool is_product = node.calls("torch.matmul") || node.calls("aten::matmul") ||
                            node.calls("operator.matmul") ||
                            (node.op() == Opcode::kCallMethod && node.target() == "matmul");
    return is_product && is_matrix(*left) && is_matrix(*right);
  }

  // The same value by whatever node: an attribute is read anywhere.
  const void* identity_of(const Node& right) const {
    if (right.op() == Opcode::kGetAttr) {
      const at::Tensor tensor = module_.find_tensor(right.target().str());
      if (tensor.defined()) return tensor.unsafeGetTensorImpl();
    }
    return &right;
  }

  // To the first group of that right-hand side in which it depends on no other product. All groups
  // together must stay mergeable, since merging one moves nodes that others depend on.
  void add(Node& node) {
    for (const std::size_t index : by_right_[identity_of(node.args()[1].node())]) {
      Group& group = groups_[index];
      if (group.products[0]->target() != node.target() ||
          std::ranges::any_of(group.products, [&](const Node* other) { return node.uses(*other); }))
        continue;
      group.products.push_back(&node);
      if (are_independent()) return;
      group.products.pop_back();
    }
    by_right_[identity_of(node.args()[1].node())].push_back(groups_.size());
    groups_.push_back({{&node}});
  }

  // Apart from direct uses.
  bool are_independent() const {
    std::vector<std::vector<Node*>> partitions;
    for (const Group& group : groups_)
      if (group.products.size() > 1) partitions.push_back(group.products);
    return validate_partitions(partitions);
  }

  void merge(const std::vector<Node*>& products) {
    Node& last =
        **std::max_element(products.begin(), products.end(),
                           [](const Node* a, const Node* b) { return a->comes_before(*b); });
    const auto guard = graph_.inserting_before(last);
    std::vector<Argument> lefts, sizes;
    for (const Node* product : products) {
      lefts.push_back(product->args()[0]);
      sizes.emplace_back(graph_.call_method("size", {lefts.back(), 0}));
    }
    Node& stacked = graph_.call_function("aten::cat", {Argument::list(std::move(lefts)), 0});
    Node& merged = graph_.create_node(last.op(), last.target(), {stacked, last.args()[1]});
    Node& parts = graph_.call_function("aten::split_with_sizes",
                                       {merged, Argument::list(std::move(sizes)), 0});
    for (std::size_t i = 0; i < products.size(); ++i) {
      Node& part = graph_.call_function("operator.getitem", {parts, static_cast<std::int64_t>(i)});
      products[i]->replace_all_uses_with(part, {}, /*propagate_meta=*/true);
      graph_.erase_node(*products[i]);
    }
  }

  GraphModule& module_;
  Graph& graph_;
  const AliasAnalysis aliases_;
  std::vector<Group> groups_;
  std::unordered_map<const void*, std::vector<std::size_t>> by_right_;  // indices of groups_
};

}  // namespace

PassResult merge_matmul(GraphModule& module) { return Merger(module).run(); }

}  // namespace fx
