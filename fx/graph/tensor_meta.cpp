#include "fx/graph/tensor_meta.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "fx/base/error.h"

namespace fx {

TensorMeta::TensorMeta(const at::Tensor& tensor) {
  FX_ASSERT(tensor.defined(), "an undefined tensor has no metadata");
  dtype = tensor.scalar_type();
  shape = tensor.sizes().vec();
  layout = tensor.layout();
  device = tensor.device();
  requires_grad = tensor.requires_grad();
  if (layout != c10::Layout::Strided) return;
  stride = tensor.strides().vec();
  for (c10::MemoryFormat format : {c10::MemoryFormat::Contiguous, c10::MemoryFormat::ChannelsLast,
                                   c10::MemoryFormat::ChannelsLast3d})
    if (!memory_format && tensor.is_contiguous(format)) memory_format = format;
}

std::int64_t TensorMeta::numel() const noexcept {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) count *= extent;
  return count;
}

std::int64_t TensorMeta::nbytes() const noexcept {
  return numel() * static_cast<std::int64_t>(c10::elementSize(dtype));
}

std::string TensorMeta::to_string() const {
  std::string text(short_dtype_name(dtype));
  text += '[';
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  text += ']';
  if (!device.is_cpu()) text += " " + device.str();
  return text;
}

NestedTensorMeta::NestedTensorMeta(const Value& value) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) data = TensorMeta(value.toTensor());
  } else if (is_sequence(value)) {
    std::vector<NestedTensorMeta> items;
    for (const Value& item : elements(value)) items.emplace_back(item);
    data = std::move(items);
  }
}

bool NestedTensorMeta::has_tensors() const noexcept {
  if (tensor()) return true;
  return items() && std::any_of(items()->begin(), items()->end(),
                                [](const NestedTensorMeta& item) { return item.has_tensors(); });
}

std::string NestedTensorMeta::to_string() const {
  if (tensor()) return tensor()->to_string();
  if (!items()) return "-";
  std::string text = "(";
  for (std::size_t i = 0; i < items()->size(); ++i)
    text += (i ? ", " : "") + (*items())[i].to_string();
  return text + (items()->size() == 1 ? ",)" : ")");
}

const TensorMeta* tensor_meta(const Node& node) noexcept {
  return node.meta().get<TensorMeta>("tensor_meta");
}

void set_tensor_meta(Node& node, NestedTensorMeta meta) {
  if (!meta.has_tensors())
    node.meta().erase("tensor_meta");
  else if (meta.tensor())
    node.meta().set("tensor_meta", std::any(*meta.tensor()));
  else
    node.meta().set("tensor_meta", std::any(std::move(meta)));
}

}  // namespace fx
