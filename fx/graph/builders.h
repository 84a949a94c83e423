#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "fx/graph/graph_module.h"

namespace fx {

/// Nodes that read the geometry of a tensor when the graph runs (torch.fx's
/// Graph.create_size_node and its kin): aten::sym_size.int, aten::sym_stride.int,
/// aten::sym_storage_offset, at the insertion point. meta()["val"] of the new node is the number
/// (std::int64_t), where the metadata of `tensor` tells it.
/// @throws GraphError kIndexOutOfRange when the metadata says that there is no such dimension.
Node& create_size_node(Graph& graph, Node& tensor, std::int64_t dim);
Node& create_stride_node(Graph& graph, Node& tensor, std::int64_t dim);
Node& create_storage_offset_node(Graph& graph, Node& tensor);

/// Attributes by dotted path: tensors and modules.
using AttributeDict =
    std::map<std::string, std::variant<at::Tensor, std::shared_ptr<torch::nn::Module>>>;

/// A GraphModule whose attributes come from a dict (torch.fx's GraphModule(root: dict, graph)):
/// those that the graph refers to, under modules made as needed. Tensors that require gradients
/// become parameters, others buffers.
/// @throws GraphError kMissingAttribute naming node and path that the dict lacks.
std::shared_ptr<GraphModule> make_graph_module(const AttributeDict& root,
                                               std::shared_ptr<Graph> graph,
                                               std::string class_name = "GraphModule");

}  // namespace fx
