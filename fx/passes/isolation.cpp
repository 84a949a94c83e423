#include "fx/passes/isolation.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "fx/analysis/alias.h"

namespace fx {
namespace {

const void* storage_key(const at::Tensor& tensor) {
  return tensor.has_storage() ? static_cast<const void*>(tensor.storage().unsafeGetStorageImpl())
                              : tensor.unsafeGetTensorImpl();
}

// A tensor like `original` whose memory is that of `copies`, one copy a storage.
at::Tensor on_copied_memory(const at::Tensor& original,
                            std::unordered_map<const void*, at::Tensor>& copies) {
  const at::Tensor data = original.detach();
  if (!data.has_storage() || data.layout() != at::kStrided) return data.clone();
  at::Tensor& copy = copies[storage_key(data)];
  if (!copy.defined()) {
    // All bytes of the storage, so that views keep their offsets.
    const auto bytes = static_cast<std::int64_t>(data.storage().nbytes());
    at::Tensor whole =
        at::empty({0}, data.options().dtype(at::kByte)).set_(data.storage(), 0, {bytes}, {1});
    copy = whole.clone();
  }
  return at::empty({0}, data.options())
      .set_(copy.storage(), data.storage_offset(), data.sizes(), data.strides());
}

void for_each_tensor(const Value& value, auto&& fn) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) fn(value.toTensor());
  } else if (is_sequence(value)) {
    for (const Value& item : elements(value)) for_each_tensor(item, fn);
  }
}

}  // namespace

Isolation::Isolation(GraphModule& module, Values& inputs) {
  const AliasAnalysis aliases(module.graph());
  if (aliases.writes_inputs())
    for (Value& input : inputs) input = clone_tensors(input);
  std::vector<c10::Device> devices;
  auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() &&
        std::find(devices.begin(), devices.end(), tensor.device()) == devices.end())
      devices.push_back(tensor.device());
  };
  for (const at::Tensor& tensor : module.parameters()) add(tensor);
  for (const Value& input : inputs) for_each_tensor(input, add);
  generators_.emplace(devices);
  if (aliases.writes_attributes()) copy_attributes(module, aliases);
}

void Isolation::copy_attributes(GraphModule& module, const AliasAnalysis& aliases) {
  std::unordered_set<const void*> written;
  std::vector<at::Tensor> candidates;
  for (const Node& node : module.graph().nodes()) {
    if (node.op() == Opcode::kGetAttr) {
      const at::Tensor tensor = module.find_tensor(node.target().str());
      if (!tensor.defined()) continue;
      candidates.push_back(tensor);
      if (aliases.is_written(node)) written.insert(storage_key(tensor));
    } else if (node.op() == Opcode::kCallModule) {
      const auto called = module.find_submodule(node.target().str());
      if (!called) continue;
      const bool impure = node.is_impure(/*impure_random=*/false);
      auto add = [&](const at::Tensor& tensor) {
        if (!tensor.defined()) return;
        candidates.push_back(tensor);
        if (impure) written.insert(storage_key(tensor));
      };
      for (const at::Tensor& tensor : called->buffers()) add(tensor);
      for (const at::Tensor& tensor : called->parameters()) add(tensor);
    }
  }
  std::unordered_map<const void*, at::Tensor> copies;
  std::unordered_set<const void*> done;
  for (at::Tensor& tensor : candidates) {
    if (!written.contains(storage_key(tensor)) || !done.insert(tensor.unsafeGetTensorImpl()).second)
      continue;
    at::Tensor own = tensor.variable_data();
    at::Tensor copy = on_copied_memory(tensor, copies);
    originals_.emplace_back(tensor, std::move(own));
    tensor.set_data(copy);
  }
}

Isolation::~Isolation() {
  for (auto& [tensor, own] : originals_) tensor.set_data(own);
}

}  // namespace fx
