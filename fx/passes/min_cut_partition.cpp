#include "fx/passes/min_cut_partition.h"

#include <algorithm>
#include <sstream>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/input_guard.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/joint_nodes.h"
#include "fx/passes/max_flow.h"
#include "fx/passes/recompute_rules.h"

namespace fx {
namespace {

/// Values that are kept for the backward, in graph order: no views, no attributes that the backward
/// can read itself.
using Saved = std::vector<const Node*>;

// By node id, whether it is one of these.
std::vector<bool> marks(const Graph& graph, const Saved& nodes) {
  std::vector<bool> out(graph.id_bound());
  for (const Node* node : nodes) out[node->id()] = true;
  return out;
}

Saved in_order(const Graph& graph, const std::vector<bool>& is_saved) {
  Saved out;
  for (const Node& node : graph.nodes())
    if (is_saved[node.id()]) out.push_back(&node);
  return out;
}

// What the backward uses of the forward; other values that hang on no tangent it computes itself.
Saved used_by_backward(const Graph& graph, const JointNodes& nodes) {
  std::vector<bool> is_saved(graph.id_bound());
  const auto keep = [&](const Node& node) {
    const Node& base = nodes.base(node);
    if (!nodes.is_steady_attribute(base)) is_saved[base.id()] = true;
  };
  for (const Node& node : graph.nodes()) {
    if (node.is_output() || nodes.is_backward(node)) continue;
    const bool is_there =
        nodes.is_forward(node) || node.is_placeholder() || node.op() == Opcode::kGetAttr;
    if (is_there && nodes.is_used_by_backward(node)) keep(node);
    if (is_there || !nodes.is_for_gradient(node)) continue;
    for (const Node* input : node.all_input_nodes())
      if (nodes.is_forward(*input) || input->is_placeholder()) keep(*input);
  }
  return in_order(graph, is_saved);
}

// The smallest cut between what the forward has and what the backward needs.
class SmallestCut {
 public:
  SmallestCut(const Graph& graph, const JointNodes& nodes, const RecomputeRules& rules)
      : graph_(graph), nodes_(nodes), rules_(rules), network_(2 * graph.id_bound() + 2) {}

  Saved find() {
    for (const Node& node : graph_.nodes())
      if (!node.is_output() && !nodes_.is_backward(node)) add(node);
    const FlowNetwork::Cut cut = network_.min_cut(source(), sink());
    if (!cut.unlimited_path.empty()) no_cut(cut.unlimited_path);
    std::vector<bool> is_saved(graph_.id_bound());
    for (const Node& node : graph_.nodes())
      is_saved[node.id()] = !node.is_output() && !nodes_.is_steady_attribute(node) &&
                            !nodes_.is_backward(node) && !cut.behind[in(node)] &&
                            cut.behind[out(node)];
    return in_order(graph_, is_saved);
  }

 private:
  using Vertex = FlowNetwork::Vertex;
  static constexpr std::int64_t kUnlimited = FlowNetwork::kUnlimited;

  // A value is computed at `in` and there for its users at `out`.
  Vertex in(const Node& node) const { return 2 * node.id(); }
  Vertex out(const Node& node) const { return 2 * node.id() + 1; }
  Vertex source() const { return 2 * graph_.id_bound(); }
  Vertex sink() const { return 2 * graph_.id_bound() + 1; }

  void add(const Node& node) {
    if (nodes_.is_steady_attribute(node)) return;  // the backward reads it
    const bool is_given = node.is_placeholder() || node.op() == Opcode::kGetAttr;
    if (is_given || rules_.is_banned(node)) network_.add_edge(source(), in(node), kUnlimited);
    network_.add_edge(in(node), out(node), capacity(node));
    if (nodes_.is_used_by_backward(node)) network_.add_edge(out(node), sink(), kUnlimited);
    for (const Node* user : node.users())
      if (!user->is_output() && !nodes_.is_backward(*user))
        network_.add_edge(out(node), in(*user), kUnlimited);
  }

  // Several values at once, and numbers, cannot be kept; a view is made again from what is.
  std::int64_t capacity(const Node& node) const {
    const bool is_tensor = node.meta().get<TensorMeta>("tensor_meta") != nullptr;
    return nodes_.is_view(node) || !is_tensor ? kUnlimited : rules_.weight(node);
  }

  [[noreturn]] void no_cut(const std::vector<Vertex>& path) const {
    std::string text = "the backward needs what can be neither kept nor computed again:";
    for (const Node& node : graph_.nodes())
      if (std::ranges::find(path, out(node)) != path.end()) text += "\n  " + node.format_node();
    throw InternalError(text);
  }

  const Graph& graph_;
  const JointNodes& nodes_;
  const RecomputeRules& rules_;
  FlowNetwork network_;
};

// Copies parts of the joint graph.
class Splitter {
 public:
  Splitter(const GraphModule& joint, const JointNodes& nodes, const Saved& saved)
      : joint_(joint), graph_(joint.graph()), nodes_(nodes), saved_(saved) {}

  TrainingGraphs split() {
    TrainingGraphs out;
    out.signature = nodes_.signature();
    for (std::size_t i = out.signature.num_input_gradients; i < out.signature.gradients.size(); ++i)
      out.parameters.push_back(joint_.find_tensor(out.signature.gradients[i]));
    std::vector<bool> ran(graph_.id_bound());
    out.forward = made(forward_graph(ran), "Forward");
    out.forward->set_mutations(joint_.mutations());
    out.backward = made(backward_graph(), "Backward");
    for (const Node* node : saved_) {
      out.saved.emplace_back(node->name());
      out.saved_bytes += nodes_.bytes(*node);
      if (node->is_placeholder()) out.saved_input_bytes += nodes_.bytes(*node);
    }
    for (const Node& node : graph_.nodes()) {
      const Node* again = copies_[node.id()];
      out.num_recomputed += ran[node.id()] && again && again->op() == Opcode::kCallFunction &&
                            !nodes_.is_view(node) && !node.calls("operator.getitem");
    }
    return out;
  }

 private:
  std::shared_ptr<GraphModule> made(std::shared_ptr<Graph> graph, const char* part) {
    auto module =
        std::make_shared<GraphModule>(joint_, std::move(graph), joint_.class_name() + part);
    std::vector<InputGuard> guards;
    for (const InputGuard& guard : joint_.input_guards())
      for (const Node* input : module->graph().placeholders())
        if (input->target().str() == guard.input) guards.push_back(guard);
    module->set_input_guards(std::move(guards));
    return module;
  }

  // What the result, the effects and the kept values need.
  std::vector<bool> needs_of_forward() const {
    std::vector<bool> needed = marks(graph_, saved_);
    const NodeRange range = graph_.nodes();
    for (auto it = range.rbegin(); it != range.rend(); ++it) {
      const Node& node = *it;
      if (node.is_output()) continue;
      if (nodes_.is_forward(node)) needed[node.id()] = true;
      if (!needed[node.id()]) continue;
      for (const Node* input : node.all_input_nodes()) needed[input->id()] = true;
    }
    return needed;
  }

  std::shared_ptr<Graph> forward_graph(std::vector<bool>& ran) {
    ran = needs_of_forward();
    auto made = std::make_shared<Graph>();
    copies_.assign(graph_.id_bound(), nullptr);
    for (const Node& node : graph_.nodes()) {
      if (node.is_output()) continue;
      const bool is_input = node.is_placeholder() && !nodes_.is_tangent(node);
      if (is_input || ran[node.id()]) copy(*made, node);
    }
    std::vector<Argument> kept;
    for (const Node* node : saved_)
      kept.emplace_back(nodes_.is_written(*node) ? clone_before_writes(*made, *node)
                                                 : *copies_[node->id()]);
    made->output(Argument::tuple({mapped(nodes_.result()), Argument::tuple(std::move(kept))}));
    return made;
  }

  Node& clone_before_writes(Graph& made, const Node& node) {
    for (Node& first : made.nodes()) {
      if (first.is_placeholder() || (first.op() == Opcode::kGetAttr)) continue;
      Node& value = *copies_[node.id()];
      const auto point =
          value.is_placeholder() ? made.inserting_before(first) : made.inserting_after(value);
      return made.call_function("aten::clone", {value});
    }
    throw InternalError("nothing writes to " + node.format_node());
  }

  std::shared_ptr<Graph> backward_graph() {
    auto made = std::make_shared<Graph>();
    copies_.assign(graph_.id_bound(), nullptr);
    const auto add_input = [&](const Node& node) {
      Node& input = made->placeholder(node.name());
      input.meta() = node.meta();
      copies_[node.id()] = &input;
    };
    for (const Node* node : saved_) add_input(*node);
    for (const Node& node : graph_.nodes())
      if (nodes_.is_tangent(node)) add_input(node);
    for (const Node& node : graph_.nodes())
      if (!node.is_output() && nodes_.is_backward(node) && nodes_.is_for_gradient(node))
        copy_with_operands(*made, node);
    nodes_.gradients().for_each_node([&](const Node& node) { copy_with_operands(*made, node); });
    made->output(mapped(nodes_.gradients()));
    return made;
  }

  // What is computed again comes right in front of its first use. No recursion: chains are long.
  void copy_with_operands(Graph& made, const Node& wanted) {
    std::vector<const Node*> stack{&wanted};
    while (!stack.empty()) {
      const Node& node = *stack.back();
      const std::size_t before = stack.size();
      if (!copies_[node.id()]) {
        const std::vector<Node*> inputs = node.all_input_nodes();
        for (auto it = inputs.rbegin(); it != inputs.rend(); ++it)
          if (!copies_[(*it)->id()]) stack.push_back(*it);
      }
      if (stack.size() > before) continue;
      stack.pop_back();
      if (!copies_[node.id()]) copy(made, node);
    }
  }

  void copy(Graph& made, const Node& node) {
    copies_[node.id()] =
        &made.node_copy(node, [&](Node& input) -> Argument { return *copies_[input.id()]; });
  }

  Argument mapped(const Argument& argument) const {
    return argument.map_nodes([&](Node& node) -> Argument { return *copies_[node.id()]; });
  }

  const GraphModule& joint_;
  const Graph& graph_;
  const JointNodes& nodes_;
  const Saved& saved_;
  std::vector<Node*> copies_;  // by node id of the joint graph, in the graph being made
};

std::int64_t bytes_of(const JointNodes& nodes, const Saved& saved) {
  std::int64_t bytes = 0;
  for (const Node* node : saved) bytes += nodes.bytes(*node);
  return bytes;
}

std::string bytes_text(std::int64_t bytes) {
  std::ostringstream out;
  out.precision(1);
  out << std::fixed;
  constexpr double kKibi = 1024;
  const auto value = static_cast<double>(bytes);
  if (value < kKibi) return std::to_string(bytes) + " B";
  if (value < kKibi * kKibi)
    out << value / kKibi << " KiB";
  else
    out << value / kKibi / kKibi << " MiB";
  return out.str();
}

}  // namespace

std::string TrainingGraphs::str() const {
  return std::to_string(saved.size()) + (saved.size() == 1 ? " value of " : " values of ") +
         bytes_text(saved_bytes) + " kept, " + bytes_text(saved_input_bytes) + " of them inputs; " +
         std::to_string(num_recomputed) +
         (num_recomputed == 1 ? " operator runs again" : " operators run again");
}

TrainingGraphs default_partition(const GraphModule& joint) {
  const JointNodes nodes(joint);
  const Saved saved = used_by_backward(joint.graph(), nodes);
  return Splitter(joint, nodes, saved).split();
}

TrainingGraphs min_cut_rematerialization_partition(const GraphModule& joint,
                                                   const MinCutOptions& options) {
  const JointNodes nodes(joint);
  const RecomputeRules rules(joint.graph(), nodes, options.aggressive);
  const Saved all = used_by_backward(joint.graph(), nodes);
  Saved saved = SmallestCut(joint.graph(), nodes, rules).find();
  // The weights are guesses of time as well; of memory never more than without recomputation.
  if (bytes_of(nodes, saved) >= bytes_of(nodes, all)) saved = all;
  return Splitter(joint, nodes, saved).split();
}

}  // namespace fx
