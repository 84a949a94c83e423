#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace fx::loops {

/// A tensor with undefined contents and these sizes and strides, which must be dense. Large ones
/// get memory that an earlier one gave back: fresh memory from the operating system costs a page
/// fault every 4 kB, which is more than most kernels cost. What is given back is kept up to a limit
/// (set_pool_limit), oldest first out. Thread safe; the memory goes back when the last tensor that
/// shares it goes, in whatever thread.
at::Tensor empty_from_pool(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType type);

/// Bytes that are kept for reuse at most; 256 MB at first. Frees what is above it now.
void set_pool_limit(std::size_t bytes);
/// Bytes that wait for reuse.
std::size_t pool_bytes();

}  // namespace fx::loops
