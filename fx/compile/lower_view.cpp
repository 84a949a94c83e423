#include <algorithm>
#include <numeric>
#include <optional>

#include "fx/compile/lower_table.h"

/// Other orders of dimensions, broadcasts, dimensions of size 1; conversions and copies.
namespace fx::loops {
namespace {

Tensors swapped(const Call& call, std::int64_t a, std::int64_t b) {
  const Tensor x = call.tensor("self").tensor();
  a = wrap_dim(a, x.dim());
  b = wrap_dim(b, x.dim());
  std::vector<std::int64_t> order = all_dims(x.dim());
  if (!order.empty())
    std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return {call.program().permute(x, order)};
}

Tensors squeezed(const Call& call, const std::vector<std::int64_t>& dims) {
  Tensor x = call.tensor("self").tensor();
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim)
    if (x.dims[static_cast<std::size_t>(*dim)] == kOne) x = call.program().squeeze(x, *dim);
  return {x};
}

/// The sizes as symbols; one that is -1 is what is left of `elements`.
Dims sizes_of(const Call& call, const std::vector<std::int64_t>& sizes, Dim elements) {
  Shapes& shapes = call.program().shapes();
  Dims dims;
  Dim known = kOne;
  std::optional<std::size_t> wild;
  for (std::int64_t size : sizes) {
    if (size < -1 || size == 0) call.unsupported(call.name() + " of other dimensions");
    if (size == -1 && wild) call.unsupported("two sizes to be found");
    if (size == -1) wild = dims.size();
    dims.push_back(size == -1 ? kOne : shapes.constant(size));
    known = shapes.mul(known, dims.back());
  }
  if (wild) dims[*wild] = shapes.size(shapes.floor_div(elements, known));
  return dims;
}

Dim product_of(Shapes& shapes, Dims::const_iterator begin, Dims::const_iterator end) {
  return std::accumulate(begin, end, kOne, [&](Dim a, Dim b) { return shapes.mul(a, b); });
}

/// `x` with dimensions [first, last) as the dimensions `middle`, which have the same elements.
Tensors reshaped(const Call& call, const Tensor& x, std::int64_t first, std::int64_t last,
                 const Dims& middle) {
  Dims dims(x.dims.begin(), x.dims.begin() + first);
  dims.insert(dims.end(), middle.begin(), middle.end());
  dims.insert(dims.end(), x.dims.begin() + last, x.dims.end());
  return {call.program().reshape(x, dims)};
}

Tensors viewed(const Call& call, const std::vector<std::int64_t>& sizes) {
  const Tensor x = call.tensor("self").tensor();
  const Dim elements = product_of(call.program().shapes(), x.dims.begin(), x.dims.end());
  return reshaped(call, x, 0, x.dim(), sizes_of(call, sizes, elements));
}

/// What factories and conversions may ask of the result: a strided tensor of this device whose
/// strides eager derives from the input or from its sizes.
void check_options(const Call& call) {
  if (call.has("layout") && call.integer("layout") != 0) call.unsupported("a layout");
  if (call.has("pin_memory") && call.flag("pin_memory")) call.unsupported("pinned memory");
  if (const LowerArg* device = call.find("device"))
    if (!device->constant.isDevice() || !device->constant.toDevice().is_cpu())
      call.unsupported("another device");
  if (!call.has("memory_format")) return;
  const auto format = static_cast<c10::MemoryFormat>(call.integer("memory_format"));
  if (format != c10::MemoryFormat::Contiguous && format != c10::MemoryFormat::Preserve)
    call.unsupported("a memory format");
}

Tensors filled_like(const Call& call, const c10::Scalar& value) {
  check_options(call);
  const Num x = call.tensor("self");
  const c10::ScalarType type = call.dtype().value_or(x.type());
  return {call.number(type, value).expand(x.tensor().dims).tensor()};
}

}  // namespace

Tensors lower_permute(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  std::vector<std::int64_t> dims = call.ints("dims");
  if (static_cast<std::int64_t>(dims.size()) != x.dim()) call.unsupported("permute of others");
  wrap_dims(dims, x.dim());
  for (std::int64_t& dim : dims) dim = wrap_dim(dim, x.dim());
  return {call.program().permute(x, dims)};
}

Tensors lower_transpose(const Call& call) {
  return swapped(call, call.integer("dim0"), call.integer("dim1"));
}

Tensors lower_swapaxes(const Call& call) {
  return swapped(call, call.integer("axis0"), call.integer("axis1"));
}

Tensors lower_t(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  if (x.dim() > 2) call.unsupported("t of more than two dimensions");
  return x.dim() < 2 ? Tensors{x} : swapped(call, 0, 1);
}

Tensors lower_mT(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  if (x.dim() == 0) return {x};
  if (x.dim() == 1) call.unsupported("mT of one dimension");
  return swapped(call, -2, -1);
}

Tensors lower_movedim(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  std::vector<std::int64_t> from = call.ints("source");
  std::vector<std::int64_t> to = call.ints("destination");
  wrap_dims(from, x.dim());
  wrap_dims(to, x.dim());
  if (from.size() != to.size()) call.unsupported("source and destination of different lengths");
  if (x.dim() == 0) return {x};
  std::vector<std::int64_t> order(x.dims.size(), -1);
  std::vector<bool> moved(x.dims.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t source = wrap_dim(from[i], x.dim());
    order[static_cast<std::size_t>(wrap_dim(to[i], x.dim()))] = source;
    moved[static_cast<std::size_t>(source)] = true;
  }
  std::size_t next = 0;
  for (std::int64_t& place : order) {
    if (place >= 0) continue;
    while (moved[next]) ++next;
    place = static_cast<std::int64_t>(next++);
  }
  return {call.program().permute(x, order)};
}

Tensors lower_numpy_T(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  std::vector<std::int64_t> order = all_dims(x.dim());
  std::reverse(order.begin(), order.end());
  return {call.program().permute(x, order)};
}

Tensors lower_unsqueeze(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  return {call.program().unsqueeze(x, wrap_dim(call.integer("dim"), x.dim() + 1))};
}

Tensors lower_squeeze(const Call& call) {
  const std::int64_t rank = call.tensor("self").dim();
  return squeezed(call, call.has("dim") ? wrap_dims(call.ints("dim"), rank) : all_dims(rank));
}

Tensors lower_expand(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  const std::vector<std::int64_t> sizes = call.ints("size");
  if (sizes.size() < x.dims.size()) call.unsupported("expand to fewer dimensions");
  const std::size_t added = sizes.size() - x.dims.size();
  Dims dims;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < -1 || (sizes[d] == -1 && d < added)) call.unsupported("a negative size");
    dims.push_back(sizes[d] == -1 ? x.dims[d - added] : call.program().shapes().constant(sizes[d]));
  }
  return {call.program().expand(x, dims)};
}

Tensors lower_expand_as(const Call& call) {
  return {call.tensor("self").expand(call.tensor("other").tensor().dims).tensor()};
}

Tensors lower_view(const Call& call) { return viewed(call, call.ints("size")); }
Tensors lower_reshape(const Call& call) { return viewed(call, call.ints("shape")); }

Tensors lower_flatten(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  const std::int64_t first = wrap_dim(call.integer("start_dim"), x.dim());
  const std::int64_t last = wrap_dim(call.integer("end_dim"), x.dim());
  if (first > last) call.unsupported("flatten of no dimensions");
  if (x.dim() == 0) return {call.program().unsqueeze(x, 0)};
  Shapes& shapes = call.program().shapes();
  const Dim product = product_of(shapes, x.dims.begin() + first, x.dims.begin() + last + 1);
  return reshaped(call, x, first, last + 1, {shapes.size(product)});
}

Tensors lower_unflatten(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  if (x.dim() == 0) call.unsupported("a tensor without dimensions");
  const std::int64_t dim = wrap_dim(call.integer("dim"), x.dim());
  const Dim size = x.dims[static_cast<std::size_t>(dim)];
  return reshaped(call, x, dim, dim + 1, sizes_of(call, call.ints("sizes"), size));
}

Tensors lower_clone(const Call& call) {
  check_options(call);
  return {call.tensor("self").tensor()};
}

Tensors lower_to(const Call& call) {
  check_options(call);
  const Num x = call.tensor("self");
  return {x.cast(call.dtype().value_or(x.type())).tensor()};
}

Tensors lower_type_as(const Call& call) {
  check_options(call);
  return {call.tensor("self").cast(call.tensor("other").type()).tensor()};
}

Tensors lower_fill(const Call& call) {
  const Num x = call.tensor("self");
  const Num value = call.checked_number("value", x.type()).cast(x.type());
  return {value.expand(x.tensor().dims).tensor()};
}

Tensors lower_zeros_like(const Call& call) { return filled_like(call, 0); }
Tensors lower_ones_like(const Call& call) { return filled_like(call, 1); }

Tensors lower_full_like(const Call& call) {
  check_options(call);
  const Num x = call.tensor("self");
  const c10::ScalarType type = call.dtype().value_or(x.type());
  const Num value = call.checked_number("fill_value", type).cast(type);
  return {value.expand(x.tensor().dims).tensor()};
}

}  // namespace fx::loops
