#include "fx/passes/partition_cudagraphs.h"

#include <algorithm>

#include "fx/graph/tensor_meta.h"
#include "fx/passes/partitioner.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/tools_common.h"

namespace fx {
namespace {

bool is_on_cuda(const NestedTensorMeta& meta) {
  if (const TensorMeta* tensor = meta.tensor()) return tensor->device.is_cuda();
  const auto* items = meta.items();
  return !items || std::ranges::all_of(*items, is_on_cuda);
}

// Values that are no tensors do not matter.
bool is_on_cuda(const Node& node) {
  if (const TensorMeta* tensor = tensor_meta(node)) return tensor->device.is_cuda();
  const auto* nested = node.meta().get<NestedTensorMeta>("tensor_meta");
  return !nested || is_on_cuda(*nested);
}

}  // namespace

OperatorSupport cudagraphs_support() {
  return [](const GraphModule&, const Node& node) {
    if (!is_callable(node)) return false;
    // What gives no tensor computes on the CPU.
    if (!node.meta().contains("tensor_meta") || !is_on_cuda(node)) return false;
    return std::ranges::all_of(node.all_input_nodes(),
                               [](const Node* input) { return is_on_cuda(*input); });
  };
}

std::vector<Node*> partition_cudagraphs(GraphModule& module, const Values& inputs) {
  ShapeProp(module).propagate(inputs);
  return CapabilityBasedPartitioner(module, cudagraphs_support(),
                                    {.allows_single_node_partition = true})
      .partition_and_fuse();
}

}  // namespace fx
