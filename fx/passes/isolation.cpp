#include "fx/passes/isolation.h"

#include <algorithm>
#include <unordered_set>

#include "fx/analysis/alias.h"
#include "fx/graph/module_types.h"
#include "fx/graph/tensor_copies.h"
#include "fx/ops/value_tensors.h"
#include "fx/passes/nested.h"

namespace fx {
Isolation::Isolation(GraphModule& module, Values& inputs) {
  const AliasAnalysis aliases(module.graph());
  TensorCopies copies;
  if (aliases.writes_inputs())
    for (Value& input : inputs)
      input = map_tensors(input, [&](const at::Tensor& tensor) -> Value { return copies(tensor); });
  std::vector<c10::Device> devices;
  auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() &&
        std::find(devices.begin(), devices.end(), tensor.device()) == devices.end())
      devices.push_back(tensor.device());
  };
  for (const at::Tensor& tensor : module.parameters()) add(tensor);
  for (const Value& input : inputs) for_each_tensor(input, add);
  generators_.emplace(devices);
  if (aliases.writes_attributes()) copy_attributes(module, aliases, copies);
}

void Isolation::copy_attributes(GraphModule& module, const AliasAnalysis& aliases,
                                TensorCopies& copies) {
  std::unordered_set<const void*> written;
  std::vector<at::Tensor> candidates;
  for (const Node& node : module.graph().nodes()) {
    if (node.op() == Opcode::kGetAttr) {
      const at::Tensor tensor = module.find_tensor(node.target().str());
      if (!tensor.defined()) continue;
      candidates.push_back(tensor);
      if (aliases.is_written(node)) written.insert(memory_key(tensor));
    } else if (node.op() == Opcode::kCallModule) {
      const auto called = module.find_submodule(node.target().str());
      if (!called) continue;
      // A module with a graph of its own may return an attribute, which this graph then writes to.
      const ModuleType* type = find_module_type(*called);
      const bool may_be_written = node.is_impure(/*impure_random=*/false) ||
                                  (!(type && type->is_leaf) && aliases.is_written(node));
      auto add = [&](const at::Tensor& tensor) {
        if (!tensor.defined()) return;
        candidates.push_back(tensor);
        if (may_be_written) written.insert(memory_key(tensor));
      };
      for (const at::Tensor& tensor : called->buffers()) add(tensor);
      for (const at::Tensor& tensor : called->parameters()) add(tensor);
      if (auto* nested = dynamic_cast<GraphModule*>(called.get()))
        for_each_graph_module(*nested, [&](GraphModule& inner) {
          for (const auto& [path, constant] : inner.constants()) add(constant);
        });
    }
  }
  std::unordered_set<const void*> done;
  for (at::Tensor& tensor : candidates) {
    if (!written.contains(memory_key(tensor)) || !done.insert(tensor.unsafeGetTensorImpl()).second)
      continue;
    at::Tensor own = tensor.variable_data();
    const at::Tensor copy = copies(tensor).detach();
    originals_.tensors.emplace_back(tensor, std::move(own));
    tensor.set_data(copy);
  }
}

Isolation::Originals::~Originals() {
  for (auto& [tensor, memory] : tensors) tensor.set_data(memory);
}

}  // namespace fx
