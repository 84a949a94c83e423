#include "fx/graph/builders.h"

#include <ATen/core/Tensor.h>

#include <optional>

#include "fx/base/error.h"
#include "fx/graph/tensor_meta.h"

namespace fx {
namespace {

// Sizes and strides of a tensor as its metadata has them.
std::optional<TensorMeta> known_meta(const Node& tensor) {
  for (const char* key : {"val", "example_value"})
    if (const auto* value = tensor.meta().get<at::Tensor>(key); value && value->defined())
      return TensorMeta(*value);
  const TensorMeta* meta = tensor_meta(tensor);
  return meta ? std::optional(*meta) : std::nullopt;
}

Node& geometry_node(Graph& graph, Node& tensor, std::int64_t dim, const char* function,
                    std::vector<std::int64_t> TensorMeta::* numbers) {
  const std::optional<TensorMeta> meta = known_meta(tensor);
  std::optional<std::int64_t> value;
  if (meta) {
    const std::vector<std::int64_t>& known = (*meta).*numbers;
    const auto size = static_cast<std::int64_t>(known.size());
    const std::int64_t at = dim < 0 ? dim + size : dim;
    if (at < 0 || at >= size)
      throw GraphError(ErrorCode::kIndexOutOfRange,
                       "node " + std::string(tensor.name()) + " has " + std::to_string(size) +
                           " dimensions, dimension " + std::to_string(dim) + " is out of range");
    value = known[static_cast<std::size_t>(at)];
  }
  Node& made = graph.call_function(function, {tensor, dim});
  if (value) made.meta().set("val", *value);
  return made;
}

}  // namespace

Node& create_size_node(Graph& graph, Node& tensor, std::int64_t dim) {
  return geometry_node(graph, tensor, dim, "aten::sym_size.int", &TensorMeta::shape);
}

Node& create_stride_node(Graph& graph, Node& tensor, std::int64_t dim) {
  return geometry_node(graph, tensor, dim, "aten::sym_stride.int", &TensorMeta::stride);
}

Node& create_storage_offset_node(Graph& graph, Node& tensor) {
  Node& made = graph.call_function("aten::sym_storage_offset", {tensor});
  for (const char* key : {"val", "example_value"})
    if (const auto* value = tensor.meta().get<at::Tensor>(key); value && value->defined()) {
      made.meta().set("val", static_cast<std::int64_t>(value->storage_offset()));
      break;
    }
  return made;
}

std::shared_ptr<GraphModule> make_graph_module(const AttributeDict& root,
                                               std::shared_ptr<Graph> graph,
                                               std::string class_name) {
  auto module = std::make_shared<GraphModule>(std::make_shared<Graph>(), std::move(class_name));
  // Sorted, so that a module is there before what is put into it.
  std::map<std::string, const Node*> referenced;
  for (const Node& node : graph->nodes())
    if (node.op() == Opcode::kGetAttr || node.op() == Opcode::kCallModule)
      referenced.emplace(node.target().str(), &node);
  for (const auto& [path, node] : referenced) {
    const auto found = root.find(path);
    if (found == root.end()) {
      // A part of a module that the dict has and that another node names as a whole.
      bool inside = false;
      for (std::size_t dot = path.rfind('.'); dot != std::string::npos && dot > 0 && !inside;
           dot = path.rfind('.', dot - 1))
        inside = root.contains(path.substr(0, dot));
      if (inside) continue;
      throw GraphError(ErrorCode::kMissingAttribute,
                       "Node " + std::string(node->name()) + " referenced target " + path +
                           " but that target was not provided in root!");
    }
    if (const auto* tensor = std::get_if<at::Tensor>(&found->second)) {
      if (tensor->requires_grad())
        module->set_parameter(path, *tensor);
      else
        module->set_buffer(path, *tensor);
    } else if (auto submodule = std::get<std::shared_ptr<torch::nn::Module>>(found->second);
               module->find_submodule(path) != submodule) {
      module->set_submodule(path, submodule);
    }
  }
  module->set_graph(std::move(graph));
  return module;
}

}  // namespace fx
