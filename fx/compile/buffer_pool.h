#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

namespace fx::loops {

/// A tensor with undefined contents and these sizes and strides, which must be dense. Large ones
/// get memory that an earlier one gave back: fresh memory from the operating system costs a page
/// fault every 4 kB, which is more than most kernels cost. What is given back is kept up to a limit
/// (set_pool_limit), oldest first out. Thread safe; the memory goes back when the last tensor that
/// shares it goes, in whatever thread.
at::Tensor empty_from_pool(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType type);

/// While it lives, empty_from_pool() on this thread hands out these tensors, in this order, as long
/// as they have the sizes, strides and dtypes that are asked for; then it goes back to the pool.
class OfferedTensors {
 public:
  explicit OfferedTensors(std::span<const at::Tensor> tensors) noexcept;
  OfferedTensors(const OfferedTensors&) = delete;
  OfferedTensors& operator=(const OfferedTensors&) = delete;
  ~OfferedTensors();

 private:
  std::span<const at::Tensor> outer_;
};

/// Bytes that are kept for reuse at most; 256 MB at first. Frees what is above it now.
void set_pool_limit(std::size_t bytes);
/// Bytes that wait for reuse.
std::size_t pool_bytes();

}  // namespace fx::loops
