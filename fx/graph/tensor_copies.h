#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <unordered_map>

namespace fx {

/// The memory that a tensor is in: equal for tensors that share it, the tensor itself where there
/// is none to share (sparse and quantized tensors).
const void* memory_key(const at::Tensor& tensor);

/// Copies of tensors that relate to each other as the originals do: the same tensor gives the same
/// copy, tensors that share memory give copies that share memory, with sizes, strides and offsets
/// kept (as copy.deepcopy of Python's tensors does). The memory a tensor is in is copied whole,
/// once. Tensors without strides are cloned by themselves.
class TensorCopies {
 public:
  explicit TensorCopies(std::optional<at::Device> device = std::nullopt) : device_(device) {}

  /// The copy of `tensor`: a leaf that requires a gradient if `tensor` does; undefined for an
  /// undefined one. O(bytes of its memory) the first time.
  at::Tensor operator()(const at::Tensor& tensor);

  /// Makes `copy`, which somebody else made of `tensor`, one of these copies: gives it the memory
  /// of the others, or them its memory.
  void adopt(const at::Tensor& tensor, at::Tensor& copy);

 private:
  at::Tensor data_of(const at::Tensor& tensor);

  std::optional<at::Device> device_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_;
  std::unordered_map<const void*, c10::Storage> memory_;
};

}  // namespace fx
