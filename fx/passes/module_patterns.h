#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/graph_module.h"

/// Chains of modules (torch.fx.experimental.optimization).
namespace fx {

/// Whether `node` and the nodes that its first argument comes from, one after the other, call
/// modules of these classes, named as in Python and in the order of the flow:
/// matches_module_pattern(gm, {"torch.nn.Conv2d", "torch.nn.BatchNorm2d"}, bn). False for an empty
/// pattern. O(pattern).
bool matches_module_pattern(const GraphModule& module, const std::vector<std::string_view>& pattern,
                            const Node& node);

/// Puts `new_module` in place of the module that `node` calls, under the same path: for every node
/// that calls it. Modules below one with behaviour of its own, which may be shared with the model
/// that the graph comes from, get a path of their own, for this node alone.
/// @throws GraphError kMissingAttribute when the node calls no module.
void replace_node_module(GraphModule& module, Node& node,
                         std::shared_ptr<torch::nn::Module> new_module);

/// A module of `subgraph`, whose nodes were copied from the graph of `module`, with the modules and
/// attributes that it names, shared (torch.fx.passes.utils.common.lift_subgraph_as_module).
/// @throws GraphError kMissingAttribute
std::shared_ptr<GraphModule> lift_subgraph_as_module(const GraphModule& module,
                                                     std::shared_ptr<Graph> subgraph,
                                                     std::string class_name = "GraphModule");

}  // namespace fx
