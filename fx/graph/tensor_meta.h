#pragma once

#include <c10/core/Device.h>
#include <torch/headeronly/core/Layout.h>
#include <torch/headeronly/core/MemoryFormat.h>
#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fx/graph/node.h"
#include "fx/ops/value.h"

namespace fx {

/// What is known of a tensor without its data (torch.fx's TensorMetadata).
struct TensorMeta {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;  ///< empty for sparse tensors
  /// The first of contiguous, channels_last and channels_last_3d that the strides fit, or nothing.
  std::optional<c10::MemoryFormat> memory_format;
  c10::Layout layout = c10::Layout::Strided;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  bool requires_grad = false;

  TensorMeta() = default;
  /// @throws InternalError for an undefined tensor.
  explicit TensorMeta(const at::Tensor& tensor);

  std::int64_t dim() const noexcept { return static_cast<std::int64_t>(shape.size()); }
  /// Number of elements; 1 for a zero-dimensional tensor.
  std::int64_t numel() const noexcept;
  /// numel() times the element size: what the values need, whatever the strides.
  std::int64_t nbytes() const noexcept;
  /// "f32[2, 3]"; a device other than the CPU follows: "f32[2, 3] cuda:0".
  std::string to_string() const;

  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;
};

/// The same for any value: a tensor, a sequence of such (tuples and lists alike), or something that
/// holds no tensor.
struct NestedTensorMeta {
  std::variant<std::monostate, TensorMeta, std::vector<NestedTensorMeta>> data;

  NestedTensorMeta() = default;
  explicit NestedTensorMeta(const Value& value);

  const TensorMeta* tensor() const noexcept { return std::get_if<TensorMeta>(&data); }
  const std::vector<NestedTensorMeta>* items() const noexcept {
    return std::get_if<std::vector<NestedTensorMeta>>(&data);
  }
  bool has_tensors() const noexcept;
  /// "f32[2, 3]", "(f32[2], i64[2])"; "-" stands for what holds no tensor.
  std::string to_string() const;

  friend bool operator==(const NestedTensorMeta&, const NestedTensorMeta&) = default;
};

/// The tensor_meta of a node: meta()["tensor_meta"] as a TensorMeta, or null when it is absent or
/// describes a sequence (then the entry is a NestedTensorMeta).
const TensorMeta* tensor_meta(const Node& node) noexcept;

/// Sets meta()["tensor_meta"]: a TensorMeta for a tensor, a NestedTensorMeta for a sequence with
/// tensors. Removes the entry when `meta` holds no tensor.
void set_tensor_meta(Node& node, NestedTensorMeta meta);

}  // namespace fx
