#include "fx/passes/joint_nodes.h"

#include <algorithm>

#include "fx/analysis/call_aliases.h"
#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/tensor_meta.h"

namespace fx {
namespace {

[[noreturn]] void no_joint_graph(const std::string& text) {
  throw PassError(ErrorCode::kBadPartition, "partition of a joint graph: " + text);
}

// The input or attribute that a node of a functional graph writes to, or null.
const Node* written_by(const Node& node) {
  if (!node.calls("aten::copy_") || node.num_args() < 2) return nullptr;
  const Node* target = node.arg(0).node_or_null();
  const bool is_shared = target && (target->is_placeholder() || target->op() == Opcode::kGetAttr);
  return is_shared ? target : nullptr;
}

// Whether the first argument is what the result shows, whatever the values are.
bool is_view_of_first(const Node& node, CallAliasTable& table) {
  if (node.op() != Opcode::kCallFunction || node.num_args() == 0) return false;
  if (!node.arg(0).is_node() || node.is_impure()) return false;
  // Its schema does not say it.
  if (node.calls("aten::_unsafe_view")) return true;
  const CallAliases::Arg first = table.of(node).at(0);
  return first.returned && !first.written;
}

}  // namespace

JointNodes::JointNodes(const GraphModule& joint) : signature_(joint_signature(joint)) {
  const Graph& graph = joint.graph();
  const Node& output = graph.output_node();
  const Argument both = output.num_args() == 1 ? output.arg(0) : Argument();
  if (both.kind() != Argument::Kind::kTuple || both.items().size() != 2)
    no_joint_graph("its output is not (result, (gradients...))");
  result_ = both.items()[0];
  gradients_ = both.items()[1];
  flags_.assign(graph.id_bound(), 0);
  base_.assign(graph.id_bound(), nullptr);
  bytes_.assign(graph.id_bound(), 0);
  distance_.assign(graph.id_bound(), kFar);
  mark_tangents_and_views(graph);
  mark_needs(graph);
  mark_uses(graph);
}

void JointNodes::mark_tangents_and_views(const Graph& graph) {
  CallAliasTable table;
  for (const Node& node : graph.nodes()) {
    if (node.is_output()) continue;
    if (node.is_placeholder() &&
        std::ranges::find(signature_.tangents, node.target().str()) != signature_.tangents.end()) {
      mark(node, kTangent);
      mark(node, kBackward);
    }
    for (const Node* input : node.all_input_nodes())
      if (is_backward(*input)) mark(node, kBackward);
    // An item of a list of views is a view, one of several results is not.
    const Node* of = node.num_args() > 0 ? node.arg(0).node_or_null() : nullptr;
    const bool is_view =
        node.calls("operator.getitem") ? of && this->is_view(*of) : is_view_of_first(node, table);
    if (is_view) mark(node, kView);
    base_[node.id()] = is_view ? base_[of->id()] : &node;
    if (const TensorMeta* meta = tensor_meta(node)) bytes_[node.id()] = meta->nbytes();
    if (const Node* target = written_by(node)) {
      mark(*target, kWritten);
      if (is_backward(node)) no_joint_graph(node.format_node() + " writes what hangs on a tangent");
    }
  }
}

void JointNodes::mark_needs(const Graph& graph) {
  result_.for_each_node([&](const Node& node) {
    if (is_backward(node))
      no_joint_graph(node.format_node() + " is a part of the result and hangs on a tangent");
    mark(node, kForward);
  });
  gradients_.for_each_node([&](const Node& node) {
    mark(node, kForGradient);
    if (!is_backward(node)) mark(node, kUsedByBackward);
  });
  const std::vector<Node*> nodes = graph.nodes().to_vector();
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Node& node = *nodes[i];
    if (node.is_output() || node.is_placeholder()) continue;
    if (node.is_impure()) mark(node, is_backward(node) ? kForGradient : kForward);
    for (const Flag need : {kForward, kForGradient})
      if (has(node, need))
        for (const Node* input : node.all_input_nodes()) mark(*input, need);
    if (written_by(node) && has(node, kForGradient))
      no_joint_graph("a gradient is " + node.format_node() +
                     ", which the forward writes: let the program return a clone of it");
  }
  for (const Node* node : nodes)
    if (node->calls("operator.getitem") && is_forward(node->arg(0).node())) mark(*node, kForward);
}

void JointNodes::mark_uses(const Graph& graph) {
  const NodeRange range = graph.nodes();
  for (auto it = range.rbegin(); it != range.rend(); ++it) {
    const Node& node = *it;
    if (node.is_output()) continue;
    std::int32_t& distance = distance_[node.id()];
    if (is_backward(node)) distance = 0;
    for (const Node* user : node.users()) {
      if (user->is_output()) continue;
      distance = std::min(distance, distance_[user->id()] + 1);
      if (!is_backward(node) && is_backward(*user) && is_for_gradient(*user))
        mark(node, kUsedByBackward);
    }
  }
}

}  // namespace fx
