#include "tools/fxcpp/node_pairs.h"

#include <algorithm>
#include <ranges>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include "tools/fxcpp/compare.h"

namespace fx::cli {
namespace {

using NodeOfNode = std::pair<const Node*, const Node*>;

/// Whether both arguments are equal but for the nodes in them, which go to `nodes` in pairs.
bool walk(const Argument& a, const Argument& b, std::vector<NodeOfNode>& nodes) {
  if (!a.has_nodes() && !b.has_nodes()) return a == b;
  if (a.kind() != b.kind()) return false;
  if (a.is_node()) {
    nodes.emplace_back(&a.node(), &b.node());
    return true;
  }
  if (a.kind() == Argument::Kind::kDict)
    return std::ranges::equal(a.dict_items(), b.dict_items(),
                              [&nodes](const DictItem& x, const DictItem& y) {
                                return x.first == y.first && walk(x.second, y.second, nodes);
                              });
  return std::ranges::equal(a.items(), b.items(), [&nodes](const Argument& x, const Argument& y) {
    return walk(x, y, nodes);
  });
}

/// The inputs of two nodes, pairwise, if both are the same call but for them.
std::optional<std::vector<NodeOfNode>> paired_inputs(const Node& a, const Node& b) {
  if (a.op() != b.op() || a.target() != b.target()) return std::nullopt;
  std::vector<NodeOfNode> nodes;
  const bool same_args = std::ranges::equal(
      a.args(), b.args(),
      [&nodes](const Argument& x, const Argument& y) { return walk(x, y, nodes); });
  const bool same =
      same_args &&
      std::ranges::equal(a.kwargs(), b.kwargs(), [&nodes](const KwArg& x, const KwArg& y) {
        return x.key == y.key && walk(x.value, y.value, nodes);
      });
  if (!same) return std::nullopt;
  return nodes;
}

bool equal_tensors(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return a.is_same(b) || compare(a, b, {.rtol = 0, .atol = 0}).pass;
}

bool equal_modules(const torch::nn::Module* a, const torch::nn::Module* b) {
  if (a == nullptr || b == nullptr || a == b) return a == b;
  const auto same = [](const auto& x, const auto& y) {
    return x.key() == y.key() && equal_tensors(x.value(), y.value());
  };
  return typeid(*a) == typeid(*b) && a->is_training() == b->is_training() &&
         std::ranges::equal(a->named_parameters(), b->named_parameters(), same) &&
         std::ranges::equal(a->named_buffers(), b->named_buffers(), same);
}

class Pairing {
 public:
  Pairing(const GraphModule& subject, const GraphModule& reference)
      : subject_(subject), reference_(reference) {
    for (const Node& node : subject.graph().nodes()) {
      nodes_.push_back(&node);
      if (is_same(node)) same_.insert(&node);
    }
  }

  std::vector<NodePair> run() {
    for (const Node* node : nodes_ | std::views::reverse) {
      std::vector<const Node*>& partners = partners_[node];
      const Node* namesake = namesake_of(*node);
      if (namesake != nullptr && partners.empty() && paired_inputs(*node, *namesake))
        partners.push_back(namesake);
      for (const Node* partner : partners) tell_inputs(*node, *partner);
    }
    std::vector<NodePair> pairs;
    for (const Node* node : nodes_) {
      if (node->is_placeholder() || node->is_output()) continue;
      for (const Node* partner : partners_[node]) {
        if (node->op() == Opcode::kGetAttr && partner->op() == Opcode::kGetAttr) continue;
        pairs.push_back({node, partner, same_.contains(node) && partner->name() == node->name()});
      }
    }
    return pairs;
  }

 private:
  const Node* namesake_of(const Node& node) const {
    return reference_.graph().find_node(node.name());
  }

  /// Whether the node is the same computation in both graphs; its inputs have been asked before.
  bool is_same(const Node& node) const {
    const Node* namesake = namesake_of(node);
    if (namesake == nullptr) return false;
    const auto inputs = paired_inputs(node, *namesake);
    if (!inputs) return false;
    for (const auto& [mine, theirs] : *inputs)
      if (mine->name() != theirs->name() || !same_.contains(mine)) return false;
    const std::string& path = node.target().str();
    if (node.op() == Opcode::kCallModule ||
        (node.op() == Opcode::kGetAttr && !subject_.find_tensor(path).defined()))
      return equal_modules(subject_.find_submodule(path).get(),
                           reference_.find_submodule(path).get());
    return node.op() != Opcode::kGetAttr ||
           equal_tensors(subject_.find_tensor(path), reference_.find_tensor(path));
  }

  /// What the inputs of a node stand for, given that the node stands for `partner`.
  void tell_inputs(const Node& node, const Node& partner) {
    const auto inputs = paired_inputs(node, partner);
    if (!inputs) return;
    for (const auto& [mine, theirs] : *inputs) {
      std::vector<const Node*>& known = partners_[mine];
      if (std::ranges::find(known, theirs) == known.end()) known.push_back(theirs);
    }
  }

  const GraphModule& subject_;
  const GraphModule& reference_;
  std::vector<const Node*> nodes_;
  std::unordered_set<const Node*> same_;
  std::unordered_map<const Node*, std::vector<const Node*>> partners_;
};

}  // namespace

std::vector<NodePair> pair_nodes(const GraphModule& subject, const GraphModule& reference) {
  return Pairing(subject, reference).run();
}

}  // namespace fx::cli
