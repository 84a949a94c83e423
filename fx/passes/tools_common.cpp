#include "fx/passes/tools_common.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>

#include "fx/analysis/effect_order.h"
#include "fx/base/error.h"
#include "fx/graph/module_types.h"

namespace fx {
namespace {

// What must come before what: inputs, effects, and everything in front of the output.
class Dependencies {
 public:
  explicit Dependencies(const Graph& graph)
      : graph_(graph), effects_(graph), missing_(graph.id_bound()) {
    for (Node& node : graph.nodes()) {
      nodes_.push_back(&node);
      if (node.is_output()) output_ = &node;
    }
    for (Node* node : nodes_) for_each_successor(*node, [&](Node& next) { ++missing_[next.id()]; });
  }

  const std::vector<Node*>& nodes() const { return nodes_; }
  bool is_ready(const Node& node) const { return missing_[node.id()] == 0; }

  // Calls `ready` for each node that waited for nothing but this one.
  void done(const Node& node, auto&& ready) {
    for_each_successor(node, [&](Node& next) {
      if (--missing_[next.id()] == 0) ready(next);
    });
  }

 private:
  void for_each_successor(const Node& node, auto&& fn) const {
    for (Node* user : node.users())
      if (user != output_ && &user->graph() == &graph_) fn(*user);
    for (Node* later : effects_.after(node))
      if (later != output_) fn(*later);
    if (output_ && &node != output_) fn(*output_);
  }

  const Graph& graph_;
  EffectOrder effects_;
  std::vector<Node*> nodes_;
  std::vector<std::size_t> missing_;  // by node id
  Node* output_ = nullptr;
};

bool apply_order(const Dependencies& dependencies, const std::vector<Node*>& order) {
  const std::vector<Node*>& old = dependencies.nodes();
  if (order.size() != old.size()) {
    std::string names;
    for (const Node* node : old)
      if (!dependencies.is_ready(*node))
        names += (names.empty() ? "" : ", ") + std::string(node->name());
    throw LintError(ErrorCode::kLintOrder, "Input graph has cycles, unable to add [" + names + "]");
  }
  if (order == old) return false;
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->next() != order[i]) order[i - 1]->append(*order[i]);
  return true;
}

// Tarjan's strongly connected components, without recursion.
class Components {
 public:
  Components(const Graph& graph, const EffectOrder& effects) : effects_(effects) {
    index_.resize(graph.id_bound());
    low_.resize(graph.id_bound());
    on_stack_.resize(graph.id_bound());
    for (Node& node : graph.nodes())
      if (is_callable(node) && index_[node.id()] == 0) visit(node);
  }

  // Those of two nodes at least.
  std::vector<std::vector<Node*>> take() { return std::move(components_); }

 private:
  struct Frame {
    Node* node;
    std::vector<Node*> next;
    std::size_t position = 0;
  };

  std::vector<Node*> successors(Node& node) const {
    std::vector<Node*> out;
    auto add = [&](Node* next) {
      if (is_callable(*next) && &next->graph() == &node.graph()) out.push_back(next);
    };
    for (Node* user : node.users()) add(user);
    for (Node* later : effects_.after(node)) add(later);
    // Back to what gives this node something that is no tensor.
    for (Node* input : node.all_input_nodes())
      if (!input->meta().contains("tensor_meta")) add(input);
    return out;
  }

  void enter(Node& node) {
    index_[node.id()] = low_[node.id()] = ++count_;
    on_stack_[node.id()] = true;
    stack_.push_back(&node);
    frames_.push_back({&node, successors(node)});
  }

  void visit(Node& start) {
    enter(start);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      Node& node = *frame.node;
      if (frame.position < frame.next.size()) {
        Node& next = *frame.next[frame.position++];
        if (index_[next.id()] == 0)
          enter(next);
        else if (on_stack_[next.id()])
          low_[node.id()] = std::min(low_[node.id()], index_[next.id()]);
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) {
        std::uint32_t& low = low_[frames_.back().node->id()];
        low = std::min(low, low_[node.id()]);
      }
      if (low_[node.id()] == index_[node.id()]) leave(node);
    }
  }

  void leave(const Node& root) {
    std::vector<Node*> component;
    do {
      component.push_back(stack_.back());
      on_stack_[stack_.back()->id()] = false;
      stack_.pop_back();
    } while (component.back() != &root);
    if (component.size() < 2) return;
    std::sort(component.begin(), component.end(),
              [](const Node* a, const Node* b) { return a->comes_before(*b); });
    components_.push_back(std::move(component));
  }

  const EffectOrder& effects_;
  std::vector<std::uint32_t> index_, low_;  // by node id; index 0: not seen
  std::vector<bool> on_stack_;              // by node id
  std::vector<Node*> stack_;
  std::vector<Frame> frames_;
  std::uint32_t count_ = 0;
  std::vector<std::vector<Node*>> components_;
};

}  // namespace

bool is_callable(const Node& node) noexcept {
  return node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod ||
         node.op() == Opcode::kCallModule;
}

std::string get_node_target(const GraphModule& module, const Node& node) {
  if (node.op() != Opcode::kCallModule) return node.target().str();
  const auto called = module.find_submodule(node.target().str());
  return called ? module_type_name(*called) : std::string();
}

std::string type_text(const Value& value) {
  if (value.isTensor()) return "Tensor";
  const std::string text = describe(value);
  return text.substr(0, text.find(' '));
}

bool is_node_output_tensor(const Node& node) noexcept {
  const auto* type = node.meta().get<std::string>("type");
  return type && *type == "Tensor";
}

bool stable_topological_sort(Graph& graph) {
  Dependencies dependencies(graph);
  std::vector<std::size_t> position(graph.id_bound());
  for (std::size_t i = 0; i < dependencies.nodes().size(); ++i)
    position[dependencies.nodes()[i]->id()] = i;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (const Node* node : dependencies.nodes())
    if (dependencies.is_ready(*node)) ready.push(position[node->id()]);
  std::vector<Node*> order;
  while (!ready.empty()) {
    Node& node = *dependencies.nodes()[ready.top()];
    ready.pop();
    order.push_back(&node);
    dependencies.done(node, [&](const Node& next) { ready.push(position[next.id()]); });
  }
  return apply_order(dependencies, order);
}

bool legalize_graph(Graph& graph) {
  Dependencies dependencies(graph);
  std::deque<Node*> ready;
  for (Node* node : dependencies.nodes())
    if (dependencies.is_ready(*node)) ready.push_back(node);
  std::vector<Node*> order;
  while (!ready.empty()) {
    Node& node = *ready.front();
    ready.pop_front();
    order.push_back(&node);
    dependencies.done(node, [&](Node& next) { ready.push_back(&next); });
  }
  return apply_order(dependencies, order);
}

FusionGroups find_fusions(const Graph& graph, std::vector<bool>& accepted) {
  const EffectOrder effects(graph);
  FusionGroups out;
  out.group_of.assign(graph.id_bound(), FusionGroups::kNone);
  for (std::vector<Node*>& group : Components(graph, effects).take()) {
    const bool is_whole = std::all_of(group.begin(), group.end(),
                                      [&](const Node* node) { return accepted[node->id()]; });
    for (const Node* node : group) {
      if (is_whole)
        out.group_of[node->id()] = static_cast<std::int32_t>(out.groups.size());
      else
        accepted[node->id()] = false;
    }
    if (is_whole) out.groups.push_back(std::move(group));
  }
  return out;
}

}  // namespace fx
