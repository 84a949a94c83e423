#include "fx/graph/tensor_copies.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

namespace fx {
namespace {

// Whether the tensor is a strided window on plain memory.
bool has_plain_memory(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_quantized() &&
         !tensor.is_meta();
}

// Whether the tensor is all of its memory, each element once.
bool fills_its_memory(const at::Tensor& tensor) {
  return tensor.storage_offset() == 0 && tensor.is_non_overlapping_and_dense() &&
         tensor.nbytes() == tensor.storage().nbytes() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor window(const c10::Storage& memory, const at::Tensor& like) {
  at::Tensor out = at::empty({0}, like.options().device(memory.device()))
                       .set_(memory, like.storage_offset(), like.sizes(), like.strides());
  if (like.is_conj()) out = at::_conj(out);
  if (like.is_neg()) out = at::_neg_view(out);
  return out;
}

c10::Storage copied(const c10::Storage& memory, const at::Tensor& tensor,
                    std::optional<at::Device> device) {
  const auto bytes = static_cast<std::int64_t>(memory.nbytes());
  const at::Tensor whole = at::empty({0}, tensor.options().dtype(at::kByte).requires_grad(false))
                               .set_(memory, 0, {bytes}, {1});
  return (device ? whole.to(*device, /*non_blocking=*/false, /*copy=*/true) : whole.clone())
      .storage();
}

// What an operator gave may be written to while gradients are recorded, and a leaf may not. Behind
// the copy the gradient ends.
void become_result(const at::Tensor& copy) {
  const auto node = c10::make_intrusive<torch::autograd::Error>(
      "what this copy was made of is no part of its graph");
  const auto number = static_cast<std::uint32_t>(node->add_input_metadata(copy));
  torch::autograd::impl::set_gradient_edge(copy, {node, number});
}

}  // namespace

const void* memory_key(const at::Tensor& tensor) {
  return has_plain_memory(tensor)
             ? static_cast<const void*>(tensor.storage().unsafeGetStorageImpl())
             : tensor.unsafeGetTensorImpl();
}

at::Tensor TensorCopies::data_of(const at::Tensor& tensor) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  const auto copy_of = [&](const at::Tensor& data) {
    return device_ ? data.to(*device_, /*non_blocking=*/false, /*copy=*/true) : data.clone();
  };
  if (!has_plain_memory(tensor)) return copy_of(tensor.detach());
  auto found = memory_.find(memory_key(tensor));
  if (found == memory_.end()) {
    if (fills_its_memory(tensor)) {
      const at::Tensor copy = copy_of(tensor);  // with the same strides
      memory_.emplace(memory_key(tensor), copy.storage());
      return copy;
    }
    found = memory_.emplace(memory_key(tensor), copied(tensor.storage(), tensor, device_)).first;
  }
  return window(found->second, tensor);
}

at::Tensor TensorCopies::operator()(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  at::Tensor& copy = tensors_[tensor.unsafeGetTensorImpl()];
  if (!copy.defined()) {
    copy = data_of(tensor);
    if (tensor.requires_grad() && !tensor.is_leaf())
      become_result(copy);
    else
      copy.set_requires_grad(tensor.requires_grad());
  }
  return copy;
}

void TensorCopies::adopt(const at::Tensor& tensor, at::Tensor& copy) {
  if (!tensor.defined() || !copy.defined()) return;
  const bool same_window = has_plain_memory(tensor) && has_plain_memory(copy) &&
                           tensor.storage().nbytes() == copy.storage().nbytes() &&
                           tensor.storage_offset() == copy.storage_offset() &&
                           tensor.strides() == copy.strides();
  if (!same_window || !memory_.emplace(memory_key(tensor), copy.storage()).second)
    copy.set_data(data_of(tensor));
  tensors_.emplace(tensor.unsafeGetTensorImpl(), copy);
}

}  // namespace fx
