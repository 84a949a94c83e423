#include <algorithm>
#include <unordered_set>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/graph.h"
#include "fx/graph/namespace.h"
#include "fx/graph/subgraphs.h"
#include "fx/graph/unique_inputs.h"

namespace fx {
namespace {

std::string text(const Node& node) { return std::string(node.name()); }

void check_input(const Node& node, const Node& input, const Graph& graph) {
  if (&input.graph() != &graph)
    throw LintError(ErrorCode::kLintForeignArg,
                    "Argument '" + text(input) + "' of Node '" + text(node) +
                        "' does not belong to this Graph, but was used as an argument!");
  if (input.is_erased())
    throw LintError(ErrorCode::kLintErasedArg, "Argument '" + text(input) + "' of Node '" +
                                                   text(node) +
                                                   "' has been erased from the graph!");
  if (!input.comes_before(node))
    throw LintError(ErrorCode::kLintOrder,
                    "Argument '" + text(input) + "' of Node '" + text(node) +
                        "' was used before it has been defined! Please check that Nodes in the "
                        "graph are topologically ordered");
}

void check_attr(const Node& node, const GraphOwner& owner) {
  using AttrKind = GraphOwner::AttrKind;
  const AttrKind kind = owner.attr_kind(node.target().str());
  if (kind == AttrKind::kMissing)
    throw LintError(ErrorCode::kLintMissingAttr, "Node " + text(node) + " target " +
                                                     node.target().str() +
                                                     " references a nonexistent attribute");
  if (node.op() == Opcode::kCallModule && kind != AttrKind::kModule)
    throw LintError(ErrorCode::kLintNotAModule, "Node " + text(node) + " target " +
                                                    node.target().str() +
                                                    " does not reference an nn.Module");
}

void check_module_call(const Node& node, const GraphOwner& owner) {
  const std::string problem = owner.call_problem(node);
  if (!problem.empty())
    throw LintError(ErrorCode::kLintModuleArguments,
                    "Node " + text(node) + " calls " + node.target().str() + ": " + problem);
}

void check_subgraphs(const Node& node) {
  const std::string problem = subgraph_problem(node);
  if (!problem.empty())
    throw LintError(ErrorCode::kLintModuleArguments,
                    "Node " + text(node) + " calls " + node.target().str() + ": " + problem);
}

}  // namespace

std::string GraphOwner::call_problem(const Node&) const { return {}; }

void Graph::lint(const LintOptions& options) const {
  for (const Node& node : nodes()) {
    if (static_cast<std::size_t>(node.op_) > static_cast<std::size_t>(Opcode::kOutput))
      throw LintError(ErrorCode::kLintBadOpcode, "Node " + text(node) + " had unknown opcode " +
                                                     std::to_string(static_cast<int>(node.op_)));
    if (node.graph_ != this)
      throw LintError(ErrorCode::kLintOwnership,
                      "Node '" + text(node) + "' does not belong to this Graph!");
    if (!node.name_ || node.name_->owner != &node)
      throw LintError(ErrorCode::kLintDuplicateName, "Node redefined name " + text(node) + "!");
    if ((node.op_ == Opcode::kCallFunction) != node.target_.is_function())
      throw LintError(ErrorCode::kLintTarget,
                      "Node '" + text(node) + "' of type " + std::string(opcode_name(node.op_)) +
                          " has the target " + str_repr(node.target_.str()) +
                          (node.target_.is_function() ? ", a function" : ", a string"));
    // The edges mirror the arguments: every input once, linked in both directions.
    const detail::UniqueInputs inputs(node.args(), node.kwargs());
    if (!std::ranges::equal(inputs.view(), node.edges(), {}, {}, &detail::UseEdge::producer))
      throw LintError(ErrorCode::kLintUsers, "the inputs registered for Node '" + text(node) +
                                                 "' differ from the nodes in its arguments");
    for (const detail::UseEdge& edge : node.edges()) {
      check_input(node, *edge.producer, *this);
      const Node& input = *edge.producer;
      if (edge.user != &node || (edge.prev ? edge.prev->next : input.first_use_) != &edge ||
          (edge.next ? edge.next->prev : input.last_use_) != &edge)
        throw LintError(
            ErrorCode::kLintUsers,
            "Node '" + text(node) + "' is missing in the users of '" + text(input) + "'");
    }
    if (owner_ && (node.op_ == Opcode::kGetAttr || node.op_ == Opcode::kCallModule))
      check_attr(node, *owner_);
  }
  if (!options.strict) return;

  bool past_placeholders = false;
  std::unordered_set<Target> targets;
  std::size_t outputs = 0;
  for (const Node& node : nodes()) {
    if (owner_ && node.op() == Opcode::kCallModule) check_module_call(node, *owner_);
    if (owner_ && higher_order_of(node) != nullptr) check_subgraphs(node);
    if (node.is_placeholder()) {
      if (past_placeholders)
        throw LintError(ErrorCode::kLintPlaceholders,
                        "placeholder '" + text(node) + "' stands behind another kind of node");
      if (!targets.insert(node.target()).second)
        throw LintError(ErrorCode::kLintDuplicateInput,
                        "two placeholders have the target " + str_repr(node.target().str()));
    } else {
      past_placeholders = true;
    }
    outputs += node.is_output();
  }
  if (outputs != 1 || !root_->prev_->is_output())
    throw LintError(ErrorCode::kLintOutput,
                    "wanted exactly one output node at the end of the graph, found " +
                        std::to_string(outputs) +
                        (outputs == 1 ? " that is not the last node" : " output nodes"));
}

}  // namespace fx
