#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/ops/value.h"

namespace fx {

/// Where the elements of a strided tensor lie.
struct TensorGeometry {
  /// Tells storages apart, also those that are gone; keeps no memory alive.
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t offset;
  c10::ScalarType dtype;
  c10::Device device;
  bool requires_grad;

  /// Of a dense, strided tensor with storage.
  explicit TensorGeometry(const at::Tensor& tensor);
  /// Nothing for other values.
  static std::optional<TensorGeometry> of(const Value& value);

  /// Whether a tensor of the one could be replaced by one of the other: dtype, device, shape and
  /// strides.
  bool same_layout(const TensorGeometry& other) const;
  /// The same elements of the same memory.
  bool same_memory(const TensorGeometry& other) const;
  /// Whether no two elements lie at the same place, as far as sizes and strides show.
  bool is_non_overlapping() const;
  /// A tensor without memory of that layout and offset, to see what a view of it would be.
  at::Tensor meta_tensor() const;
};

/// The geometry of each node's value when the module runs on `inputs`, by node id. Leaves no trace
/// in the module (Isolation). @throws RunError when the module fails.
std::vector<std::optional<TensorGeometry>> record_geometry(GraphModule& module,
                                                           const Values& inputs);

}  // namespace fx
