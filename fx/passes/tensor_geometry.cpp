#include "fx/passes/tensor_geometry.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "fx/interpret/interpreter.h"
#include "fx/passes/isolation.h"

namespace fx {
namespace {

class GeometryRecorder : public Interpreter {
 public:
  explicit GeometryRecorder(GraphModule& module)
      : Interpreter(module), geometry(module.graph().id_bound()) {}

  void record_value(Node& node, const Value& value) override {
    geometry[node.id()] = TensorGeometry::of(value);
  }

  std::vector<std::optional<TensorGeometry>> geometry;
};

}  // namespace

TensorGeometry::TensorGeometry(const at::Tensor& tensor)
    : storage(tensor.storage().getWeakStorageImpl()),
      sizes(tensor.sizes().vec()),
      strides(tensor.strides().vec()),
      offset(tensor.storage_offset()),
      dtype(tensor.scalar_type()),
      device(tensor.device()),
      requires_grad(tensor.requires_grad()) {}

std::optional<TensorGeometry> TensorGeometry::of(const Value& value) {
  if (!value.isTensor()) return std::nullopt;
  const at::Tensor& tensor = value.toTensor();
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage() ||
      tensor.is_quantized() || tensor.is_conj() || tensor.is_neg())
    return std::nullopt;
  return TensorGeometry(tensor);
}

bool TensorGeometry::same_layout(const TensorGeometry& other) const {
  return dtype == other.dtype && device == other.device && sizes == other.sizes &&
         strides == other.strides;
}

bool TensorGeometry::same_memory(const TensorGeometry& other) const {
  return storage == other.storage && offset == other.offset && same_layout(other);
}

bool TensorGeometry::is_non_overlapping() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, size
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] > 1) dims.emplace_back(strides[i], sizes[i]);
  }
  std::sort(dims.begin(), dims.end());
  // Each step of a dimension has to reach over all that the smaller ones span.
  std::int64_t span = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < span) return false;
    span += stride * (size - 1);
  }
  return true;
}

at::Tensor TensorGeometry::meta_tensor() const {
  std::int64_t end = offset + 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) break;
    end += strides[i] * (sizes[i] - 1);
  }
  return at::empty({end}, at::TensorOptions().dtype(dtype).device(at::kMeta))
      .as_strided(sizes, strides, offset);
}

std::vector<std::optional<TensorGeometry>> record_geometry(GraphModule& module,
                                                           const Values& inputs) {
  Values copies = inputs;
  const Isolation isolation(module, copies);
  GeometryRecorder recorder(module);
  recorder.run(std::move(copies));
  return std::move(recorder.geometry);
}

}  // namespace fx
