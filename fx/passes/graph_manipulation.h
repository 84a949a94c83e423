#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fx/graph/graph_module.h"
#include "fx/graph/tensor_meta.h"

/// Editing and measuring whole graphs (torch.fx.passes.graph_manipulation).
namespace fx {

/// Gives all nodes of `old_op` and `old_target` the new opcode and target; arguments stay. Returns
/// how many there were. The graph is not recompiled. O(nodes).
/// @throws GraphError kBadTarget when target and opcode do not fit.
std::int64_t replace_target_nodes_with(GraphModule& module, Opcode old_op, const Target& old_target,
                                       Opcode new_op, const Target& new_target);

/// Bytes of a node.
struct SizeBytes {
  std::int64_t output_size = 0;
  std::int64_t total_size = 0;  ///< with the parameters of the called module
  friend bool operator==(const SizeBytes&, const SizeBytes&) = default;
};

/// The tensor_meta of a node. @throws PassError kBadPassOption "Node N has no tensor metadata
/// associated with it! Check that shape propagation has run."
const TensorMeta& get_tensor_meta(const Node& node);

/// The size of the node's value, and of what it needs. @throws as get_tensor_meta
SizeBytes get_size_of_node(const GraphModule& module, const Node& node);

/// That of all nodes but the output, by name; also put into their meta "size_bytes" (SizeBytes).
/// @param example_inputs runs shape_prop on them first. @throws as get_tensor_meta
std::map<std::string, SizeBytes> get_size_of_all_nodes(GraphModule& module,
                                                       const Values* example_inputs = nullptr);

/// What a backend has to know of the modules of torch.nn that it lowers
/// (torch.fx.passes.param_fetch): for Linear, Conv1d to Conv3d, BatchNorm1d to 3d, MaxPool2d,
/// AdaptiveAvgPool2d and ReLU their tensors and options by Python's names, and "name", the class.
/// A bias that is not there is None; sizes are lists of ints.
/// @throws PassError kBadPassOption for another class.
std::map<std::string, Value> extract_attrs_for_lowering(const torch::nn::Module& module);

/// Puts these into the meta "attrs_for_lowering" (std::map<std::string, Value>) of each call_module
/// node, in nested GraphModules too. @throws as extract_attrs_for_lowering
void lift_lowering_attrs_to_nodes(GraphModule& module);

}  // namespace fx
