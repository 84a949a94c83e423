// Tensors made of nothing but sizes: by full and arange.
#include <cmath>

#include "fx/passes/core_decompositions.h"

namespace fx::core {
namespace {

using at::Scalar;
using at::Tensor;
using Ints = std::vector<std::int64_t>;
using Dtype = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Pinned = std::optional<bool>;
using Format = std::optional<at::MemoryFormat>;

at::TensorOptions options(Dtype dtype, Layout layout, Device device) {
  return at::TensorOptions().dtype(dtype).layout(layout).device(device);
}

template <int kValue>
Tensor filled(const Ints& sizes, Dtype dtype, Layout layout, Device device, Pinned) {
  const at::ScalarType kind = dtype.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
  return at::full(sizes, kValue, options(kind, layout, device));
}

template <int kValue>
Tensor filled_like(const Tensor& x, Dtype dtype, Layout layout, Device device, Pinned,
                   Format format) {
  return at::full_like(x, kValue, options(dtype, layout, device), format);
}

template <int kValue>
Tensor filled_new(const Tensor& x, const Ints& sizes, Dtype dtype, Layout layout, Device device,
                  Pinned) {
  const at::TensorOptions made = x.options().merge_in(options(dtype, layout, device));
  return at::full(sizes, kValue, made);
}

// Floating where an end is, else int64.
Dtype kind_of(Dtype dtype, std::initializer_list<Scalar> ends) {
  if (dtype) return dtype;
  for (const Scalar& end : ends)
    if (end.isFloatingPoint()) return at::typeMetaToScalarType(at::get_default_dtype());
  return at::kLong;
}

}  // namespace

void add_factories(Entries& entries) {
  entries.add("aten::zeros", &filled<0>);
  entries.add("aten::ones", &filled<1>);
  entries.add("aten::zeros_like", &filled_like<0>);
  entries.add("aten::ones_like", &filled_like<1>);
  entries.add("aten::new_zeros", &filled_new<0>);
  entries.add("aten::new_ones", &filled_new<1>);
  entries.add(
      "aten::new_full", +[](const Tensor& x, const Ints& sizes, const Scalar& value, Dtype dtype,
                            Layout layout, Device device, Pinned) {
        return at::full(sizes, value, x.options().merge_in(options(dtype, layout, device)));
      });
  entries.add("aten::zero", +[](const Tensor& x) { return at::full_like(x, 0); });
  entries.add(
      "aten::fill.Scalar",
      +[](const Tensor& x, const Scalar& value) { return at::full_like(x, value); });
  entries.add(
      "aten::fill.Tensor", +[](const Tensor& x, const Tensor& value) {
        return value.to(x.scalar_type()).expand(x.sizes()).clone(at::MemoryFormat::Contiguous);
      });
  entries.add(
      "aten::arange", +[](const Scalar& end, Dtype dtype, Layout layout, Device device, Pinned) {
        return at::arange(0, end, 1, options(kind_of(dtype, {end}), layout, device));
      });
  entries.add(
      "aten::arange.start", +[](const Scalar& start, const Scalar& end, Dtype dtype, Layout layout,
                                Device device, Pinned) {
        return at::arange(start, end, 1, options(kind_of(dtype, {start, end}), layout, device));
      });
  entries.add(
      "aten::eye.m", +[](std::int64_t rows, std::int64_t columns, Dtype dtype, Layout layout,
                         Device device, Pinned) {
        const auto count = [&](std::int64_t size) {
          return at::arange(0, size, 1, options(at::kLong, layout, device));
        };
        const at::ScalarType kind =
            dtype.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
        return (count(rows).unsqueeze(-1) == count(columns)).to(kind);
      });
  entries.add(
      "aten::eye", +[](std::int64_t side, Dtype dtype, Layout layout, Device device, Pinned) {
        return at::eye(side, side, options(dtype, layout, device));
      });
}

}  // namespace fx::core
