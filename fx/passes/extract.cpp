#include "fx/passes/extract.h"

#include <algorithm>

#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {
namespace {

std::vector<Node*> nodes_named(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Node*> nodes;
  for (const std::string& name : names) {
    Node* node = graph.find_node(name);
    if (!node) {
      std::vector<std::string> known;
      for (const Node& other : graph.nodes()) known.emplace_back(other.name());
      const std::string near = nearest(name, known);
      throw PassError(ErrorCode::kBadExtract,
                      "there is no node " + str_repr(name) +
                          (near.empty() ? "" : "; did you mean " + str_repr(near) + "?"));
    }
    nodes.push_back(node);
  }
  return nodes;
}

Argument value_of_output(const Node& output) {
  return output.num_args() > 0 ? output.args()[0] : Argument();
}

}  // namespace

std::shared_ptr<GraphModule> extract_outputs(const GraphModule& module,
                                             const std::vector<std::string>& nodes) {
  ValueMap map;
  auto graph = module.graph().clone(&map);
  std::vector<Argument> results;
  for (const Node* node : nodes_named(module.graph(), nodes))
    results.push_back(node->is_output() ? value_of_output(map.at(node).node()) : map.at(node));
  graph->output_node().set_args(
      {results.size() == 1 ? results[0] : Argument::tuple(std::move(results))});
  auto extracted = std::make_shared<GraphModule>(module, graph, module.class_name());
  // With its owner, which knows what is pure.
  graph->eliminate_dead_code();
  extracted->delete_unused_attributes();
  extracted->set_specs(module.in_spec(), std::nullopt);
  extracted->recompile();
  return extracted;
}

std::shared_ptr<GraphModule> extract_subgraph(const GraphModule& module,
                                              const std::vector<std::string>& inputs,
                                              const std::vector<std::string>& outputs) {
  const Graph& source = module.graph();
  auto graph = std::make_shared<Graph>();
  ValueMap map;
  for (const Node* node : nodes_named(source, inputs)) {
    Node& placeholder = graph->placeholder(node->name(), node->type());
    placeholder.meta() = node->meta();
    map.insert_or_assign(node, Argument(placeholder));
  }
  // What the outputs depend on, up to the inputs.
  std::vector<bool> needed(source.id_bound());
  std::vector<const Node*> stack;
  const std::vector<Node*> results = nodes_named(source, outputs);
  for (const Node* node : results) stack.push_back(node);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (needed[node->id()] || map.contains(node)) continue;
    if (node->is_placeholder())
      throw PassError(ErrorCode::kBadExtract, "an output depends on the placeholder " +
                                                  str_repr(node->name()) +
                                                  " by a path that avoids the given inputs");
    needed[node->id()] = true;
    for (const Node* input : node->all_input_nodes()) stack.push_back(input);
  }
  auto mapped = [&](Node& input) { return map.at(&input); };
  for (const Node& node : source.nodes())
    if (needed[node.id()] && !node.is_output()) map.emplace(&node, graph->node_copy(node, mapped));
  std::vector<Argument> values;
  for (const Node* node : results)
    values.push_back(node->is_output() ? value_of_output(*node).map_nodes(mapped) : map.at(node));
  graph->output(values.size() == 1 ? values[0] : Argument::tuple(std::move(values)));
  return std::make_shared<GraphModule>(module, std::move(graph), module.class_name());
}

}  // namespace fx
