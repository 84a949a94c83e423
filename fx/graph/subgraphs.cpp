#include "fx/graph/subgraphs.h"

#include <algorithm>
#include <optional>

#include "fx/base/text.h"

namespace fx {
namespace {

using Kind = HigherOrderOp::Kind;

const Node* graph_argument(const Node& node, std::size_t index) {
  if (index >= node.num_args()) return nullptr;
  const Node* argument = node.args()[index].node_or_null();
  return argument != nullptr && argument->op() == Opcode::kGetAttr ? argument : nullptr;
}

/// What a list argument holds; nothing if only the run tells.
std::optional<std::size_t> length_of(const Argument& argument) {
  if (argument.kind() != Argument::Kind::kList && argument.kind() != Argument::Kind::kTuple)
    return std::nullopt;
  return argument.items().size();
}

std::optional<std::size_t> num_operands(const Node& node, const HigherOrderOp& op) {
  if (op.num_lists == 0) return node.num_args() - op.first_operand;
  std::size_t count = 0;
  for (std::size_t i = 0; i < op.num_lists; ++i) {
    const auto length = length_of(node.args()[op.first_operand + i]);
    if (!length) return std::nullopt;
    // The graph of an associative scan combines two of each.
    count += op.kind == Kind::kAssociativeScan && i == 0 ? 2 * *length : *length;
  }
  return count;
}

/// What a graph returns.
struct Results {
  std::vector<Argument> values;
  bool is_list = false;  ///< a list or tuple of values, not one alone
};

std::optional<Results> results_of(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (!node.is_output() || node.num_args() == 0) continue;
    const Argument& value = node.args()[0];
    if (!length_of(value)) return Results{{value}, false};
    return Results{{value.items().begin(), value.items().end()}, true};
  }
  return std::nullopt;
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string returned_alias(const Results& results) {
  for (std::size_t i = 0; i < results.values.size(); ++i) {
    const Node* value = results.values[i].node_or_null();
    if (value == nullptr) continue;
    if (value->is_placeholder() || value->op() == Opcode::kGetAttr)
      return "returns " + std::string(value->name()) +
             ", which it was given; results have to be new values, for example a clone()";
    for (std::size_t j = 0; j < i; ++j)
      if (results.values[j] == results.values[i])
        return "returns " + std::string(value->name()) + " twice; one has to be a clone()";
  }
  return {};
}

/// The rules of each operator for what its graphs return.
std::string results_problem(const Node& node, const HigherOrderOp& op,
                            const std::vector<Results>& results) {
  auto list_length = [&](std::size_t index) { return length_of(node.args()[index]); };
  switch (op.kind) {
    case Kind::kAssociativeScan:
      if (!results[0].is_list ||
          results[0].values.size() != list_length(1).value_or(results[0].values.size()))
        return "its graph returns " + counted(results[0].values.size(), "value") +
               (results[0].is_list ? ", it runs over " + std::to_string(*list_length(1))
                                   : std::string(" alone, wanted a tuple"));
      break;
    case Kind::kCond:
      if (results[0].is_list != results[1].is_list ||
          results[0].values.size() != results[1].values.size())
        return "its branches return " + counted(results[0].values.size(), "value") + " and " +
               counted(results[1].values.size(), "value") + "; they have to agree";
      break;
    case Kind::kWhileLoop:
      if (results[0].is_list)
        return "its condition returns a tuple, wanted a bool or a bool tensor";
      if (!results[1].is_list ||
          results[1].values.size() != list_length(2).value_or(results[1].values.size()))
        return "its body returns " + counted(results[1].values.size(), "value") +
               (results[1].is_list ? ", carried are " + std::to_string(*list_length(2))
                                   : std::string(" alone, wanted a tuple"));
      break;
    case Kind::kScan:
      if (!results[0].is_list || results[0].values.size() < list_length(1).value_or(0))
        return "its graph returns " + counted(results[0].values.size(), "value") +
               (results[0].is_list ? ", carried are " + std::to_string(*list_length(1))
                                   : std::string(" alone, wanted a tuple"));
      break;
    case Kind::kMap:
    case Kind::kGradMode:
    case Kind::kAutocast:
    case Kind::kInvoke:
      break;
  }
  return {};
}

}  // namespace

const HigherOrderOp* higher_order_of(const Node& node) {
  const Function* function = node.target().function();
  return function != nullptr ? find_higher_order(*function) : nullptr;
}

std::vector<const Node*> subgraph_nodes(const Node& node) {
  std::vector<const Node*> graphs;
  if (const HigherOrderOp* op = higher_order_of(node))
    for (std::size_t i = 0; i < op->num_graphs; ++i)
      if (const Node* graph = graph_argument(node, op->first_graph + i)) graphs.push_back(graph);
  return graphs;
}

bool subgraphs_are_impure(const Node& node, bool impure_random) {
  const GraphOwner* owner = node.graph().owner();
  const std::vector<const Node*> graphs = subgraph_nodes(node);
  if (owner == nullptr || graphs.size() != higher_order_of(node)->num_graphs) return true;
  return std::ranges::any_of(graphs, [&](const Node* graph) {
    return owner->module_is_impure(graph->target().str(), impure_random);
  });
}

std::string subgraph_problem(const Node& node) {
  const HigherOrderOp& op = *higher_order_of(node);
  const std::size_t least = op.first_operand + op.num_lists;
  if (!node.kwargs().empty() || node.num_args() < least)
    return "takes " + std::to_string(least) + (op.num_lists > 0 ? "" : " or more") +
           " arguments by position, found " + std::to_string(node.num_args()) + " and " +
           std::to_string(node.kwargs().size()) + " by name";
  const auto operands = num_operands(node, op);
  std::vector<Results> results;
  for (std::size_t i = 0; i < op.num_graphs; ++i) {
    const Node* argument = graph_argument(node, op.first_graph + i);
    const Graph* graph = argument != nullptr && node.graph().owner() != nullptr
                             ? node.graph().owner()->nested_graph(argument->target().str())
                             : nullptr;
    if (graph == nullptr)
      return "argument " + std::to_string(op.first_graph + i + 1) +
             " is no graph: wanted a get_attr of a GraphModule";
    const std::string name = "its graph " + str_repr(argument->target().str()) + " ";
    const std::size_t inputs = graph->placeholders().size();
    if (operands && *operands != inputs)
      return name + "takes " + counted(inputs, "operand") + ", found " + std::to_string(*operands);
    auto returned = results_of(*graph);
    if (!returned) return name + "returns nothing";
    const bool is_condition = op.kind == Kind::kWhileLoop && i == 0;
    if (op.makes_new_values() && !is_condition)
      if (const std::string alias = returned_alias(*returned); !alias.empty()) return name + alias;
    results.push_back(std::move(*returned));
  }
  return results_problem(node, op, results);
}

}  // namespace fx
