#include <limits>

#include "fx/compile/lower_index.h"
#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"

/// Views of a part of a tensor: the same memory at other indices.
namespace fx::loops {

std::vector<Affine> identity_index(std::int64_t rank) {
  std::vector<Affine> at;
  for (int d = 0; d < static_cast<int>(rank); ++d) at.push_back(Affine::of_axis(d));
  return at;
}

Tensor part_of(TensorProgram& program, const Tensor& x, std::int64_t dim, Dim start, Dim length,
               Dim step) {
  std::vector<Affine> at = identity_index(x.dim());
  Dims dims = x.dims;
  const auto d = static_cast<std::size_t>(dim);
  dims[d] = program.shapes().size(length);
  at[d].offset = start;
  if (dims[d] == kOne)
    at[d].terms.clear();
  else
    at[d].terms[0].step = step;
  return program.view(x, std::move(dims), std::move(at));
}

Num index_along(TensorProgram& program, const Dims& dims, std::size_t dim) {
  Tensor index = program.index(dims[dim]);
  for (std::size_t d = dim + 1; d < dims.size(); ++d) index = program.unsqueeze(index, index.dim());
  return {program, std::move(index)};
}

void assume_at_most(Shapes& shapes, Dim a, Dim b) { shapes.unify(shapes.min(a, b), a); }

namespace {

// More results than this are left to eager.
constexpr std::int64_t kMaxParts = 64;

// A dimension of a tensor argument, which must have one.
struct Along {
  TensorProgram& program;
  Tensor x;
  std::int64_t dim;

  Shapes& shapes() const { return program.shapes(); }
  Dim size() const { return shapes().find(x.dims[static_cast<std::size_t>(dim)]); }
};

Along along(const Call& call, std::int64_t dim) {
  Tensor x = call.tensor("self").tensor();
  if (x.dim() == 0) call.unsupported("a tensor without dimensions");
  dim = wrap_dim(dim, x.dim());
  return {call.program(), std::move(x), dim};
}

Along along(const Call& call) { return along(call, call.integer("dim")); }

// Where an index that counts from the end when it is negative stands, within [0, size].
Dim position(const Along& a, std::int64_t index) {
  Shapes& shapes = a.shapes();
  if (index == 0) return kZero;
  if (index == std::numeric_limits<std::int64_t>::max()) return a.size();
  if (index > 0) return shapes.min(shapes.constant(index), a.size());
  return shapes.max(shapes.add(a.size(), shapes.constant(index)), kZero);
}

// Where the element of an index that must be there stands.
Dim place(const Along& a, std::int64_t index) {
  Shapes& shapes = a.shapes();
  if (index >= 0) {
    const Dim found = shapes.constant(index);
    assume_at_most(shapes, shapes.add(found, kOne), a.size());
    return found;
  }
  assume_at_most(shapes, shapes.constant(-index), a.size());
  return shapes.add(a.size(), shapes.constant(index));
}

// Parts of `length` elements each, the last of what is left.
Tensors equal_parts(const Call& call, const Along& a, Dim length) {
  Shapes& shapes = a.shapes();
  if (shapes.example(length) == 0 || shapes.example(a.size()) == 0)
    call.unsupported("parts of nothing");
  const Dim number = shapes.ceil_div(a.size(), length);
  const std::int64_t count = shapes.example(number);
  if (count > kMaxParts) call.unsupported("so many parts");
  shapes.unify(number, shapes.constant(count));
  Tensors out;
  for (std::int64_t i = 0; i < count; ++i) {
    const Dim start = shapes.mul(shapes.constant(i), length);
    const Dim left = shapes.sub(a.size(), start);
    out.push_back(part_of(a.program, a.x, a.dim, start, i + 1 < count ? length : left));
  }
  return out;
}

Tensors parts_of_sizes(const Call& call, const std::vector<std::int64_t>& sizes) {
  const Along a = along(call);
  std::int64_t sum = 0;
  Tensors out;
  for (std::int64_t size : sizes) {
    if (size < 0) call.unsupported("a negative size");
    out.push_back(
        part_of(a.program, a.x, a.dim, a.shapes().constant(sum), a.shapes().constant(size)));
    sum += size;
  }
  if (sum != a.shapes().example(a.size())) call.unsupported("sizes that do not fit");
  a.shapes().unify(a.size(), a.shapes().constant(sum));
  return out;
}

Tensor without_dim(const Along& a, Dim place) {
  std::vector<Affine> at;
  Dims dims;
  for (std::int64_t d = 0; d < a.x.dim(); ++d) {
    if (d == a.dim) {
      at.push_back({.offset = place});
    } else {
      at.push_back(Affine::of_axis(static_cast<int>(dims.size())));
      dims.push_back(a.x.dims[static_cast<std::size_t>(d)]);
    }
  }
  return a.program.view(a.x, std::move(dims), std::move(at));
}

}  // namespace

Tensors lower_slice(const Call& call) {
  const Along a = along(call);
  Shapes& shapes = a.shapes();
  const std::int64_t step = call.integer("step");
  if (step <= 0) call.unsupported("a step that is not positive");
  const Dim start = position(a, call.integer("start", 0));
  const Dim end = position(a, call.integer("end", std::numeric_limits<std::int64_t>::max()));
  const Dim last = end == a.size() || start == kZero ? end : shapes.max(end, start);
  const Dim by = shapes.constant(step);
  return {part_of(a.program, a.x, a.dim, start, shapes.ceil_div(shapes.sub(last, start), by), by)};
}

Tensors lower_select(const Call& call) {
  const Along a = along(call);
  return {without_dim(a, place(a, call.integer("index")))};
}

Tensors lower_narrow(const Call& call) {
  const Along a = along(call);
  Shapes& shapes = a.shapes();
  const std::int64_t first = call.integer("start");
  const std::int64_t length = call.integer("length");
  if (length < 0) call.unsupported("a negative length");
  const Dim start = first < 0 ? place(a, first) : shapes.constant(first);
  assume_at_most(shapes, shapes.add(start, shapes.constant(length)), a.size());
  return {part_of(a.program, a.x, a.dim, start, shapes.constant(length))};
}

Tensors lower_chunk(const Call& call) {
  const Along a = along(call);
  const std::int64_t chunks = call.integer("chunks");
  if (chunks <= 0) call.unsupported("no chunks");
  return equal_parts(call, a, a.shapes().ceil_div(a.size(), a.shapes().constant(chunks)));
}

Tensors lower_split(const Call& call) {
  const Along a = along(call);
  const std::int64_t size = call.integer("split_size");
  if (size <= 0) call.unsupported("parts of nothing");
  return equal_parts(call, a, a.shapes().constant(size));
}

Tensors lower_split_sizes(const Call& call) {
  return parts_of_sizes(call, call.ints("split_size"));
}
Tensors lower_split_with_sizes(const Call& call) {
  return parts_of_sizes(call, call.ints("split_sizes"));
}

Tensors lower_unbind(const Call& call) {
  const Along a = along(call);
  const std::int64_t count = a.shapes().example(a.size());
  if (count > kMaxParts) call.unsupported("so many parts");
  a.shapes().unify(a.size(), a.shapes().constant(count));
  Tensors out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(without_dim(a, a.shapes().constant(i)));
  return out;
}

Tensors lower_flip(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  Shapes& shapes = call.program().shapes();
  std::vector<Affine> at = identity_index(x.dim());
  for (std::int64_t dim : wrap_dims(call.ints("dims"), x.dim())) {
    const auto d = static_cast<std::size_t>(dim);
    if (x.dims[d] == kOne) continue;
    at[d].offset = shapes.sub(x.dims[d], kOne);
    at[d].terms[0].step = shapes.constant(-1);
  }
  return {call.program().view(x, x.dims, std::move(at))};
}

Tensors lower_diagonal(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  Shapes& shapes = call.program().shapes();
  if (x.dim() < 2) call.unsupported("a diagonal of less than two dimensions");
  const std::int64_t row = wrap_dim(call.integer("dim1"), x.dim());
  const std::int64_t column = wrap_dim(call.integer("dim2"), x.dim());
  if (row == column) call.unsupported("a dimension twice");
  const std::int64_t offset = call.integer("offset");
  const Dim down = shapes.constant(offset < 0 ? -offset : 0);
  const Dim right = shapes.constant(offset > 0 ? offset : 0);
  const auto rest = [&](std::int64_t dim, Dim from) {
    return shapes.sub(x.dims[static_cast<std::size_t>(dim)], from);
  };
  // Sizes are not negative: only a part of one may be.
  Dim length = shapes.min(rest(row, down), rest(column, right));
  if (offset != 0) length = shapes.max(length, kZero);
  std::vector<Affine> at(x.dims.size());
  Dims dims;
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    if (d == row || d == column) continue;
    at[static_cast<std::size_t>(d)] = Affine::of_axis(static_cast<int>(dims.size()));
    dims.push_back(x.dims[static_cast<std::size_t>(d)]);
  }
  const Affine axis = Affine::of_axis(static_cast<int>(dims.size()));
  at[static_cast<std::size_t>(row)] = {down, axis.terms};
  at[static_cast<std::size_t>(column)] = {right, axis.terms};
  dims.push_back(shapes.size(length));
  return {call.program().view(x, std::move(dims), std::move(at))};
}

Tensors lower_unfold(const Call& call) {
  const Along a = along(call, call.integer("dimension"));
  Shapes& shapes = a.shapes();
  const std::int64_t size = call.integer("size");
  const std::int64_t step = call.integer("step");
  if (size <= 0 || step <= 0) call.unsupported("windows of nothing");
  assume_at_most(shapes, shapes.constant(size), a.size());
  const Dim by = shapes.constant(step);
  const Dim windows =
      shapes.add(shapes.floor_div(shapes.sub(a.size(), shapes.constant(size)), by), kOne);
  std::vector<Affine> at = identity_index(a.x.dim());
  Dims dims = a.x.dims;
  const auto d = static_cast<std::size_t>(a.dim);
  dims[d] = shapes.size(windows);
  dims.push_back(shapes.size(shapes.constant(size)));
  at[d] = {.terms = {{static_cast<int>(a.dim), by}, {static_cast<int>(a.x.dim()), kOne}}};
  return {a.program.view(a.x, std::move(dims), std::move(at))};
}

}  // namespace fx::loops
