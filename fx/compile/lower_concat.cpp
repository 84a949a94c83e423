#include <algorithm>

#include "fx/compile/lower_index.h"
#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"

/// Results put together from parts: each element is read from the part in which it lies.
namespace fx::loops {
namespace {

// More parts than this are left to eager: each is tried for each element.
constexpr std::size_t kMaxParts = 8;

std::vector<Num> tensors_of(const Call& call) {
  const LowerArg* list = call.find("tensors");
  if (list == nullptr || list->items.empty()) call.unsupported("no tensors");
  if (list->items.size() > kMaxParts) call.unsupported("so many parts");
  std::vector<Num> out;
  for (const LowerArg& item : list->items) {
    if (!item.tensor || item.is_number) call.unsupported("a constant tensor");
    out.emplace_back(call.program(), *item.tensor);
  }
  return out;
}

c10::ScalarType common_type(const Call& call, const std::vector<Num>& parts) {
  // As at::result_type: tensors with dimensions first.
  c10::ScalarType type = parts[0].type();
  for (const Num& part : parts) {
    if ((part.dim() == 0) != (parts[0].dim() == 0)) call.unsupported("tensors of different ranks");
    type = c10::promoteTypes(type, part.type());
  }
  return type;
}

// The tensors one after the other along `dim`.
Tensor concatenation(TensorProgram& program, const Tensors& parts, std::int64_t dim) {
  Shapes& shapes = program.shapes();
  const auto d = static_cast<std::size_t>(dim);
  Dims dims = parts[0].dims;
  Dims starts;
  Dim total = kZero;
  for (const Tensor& part : parts) {
    if (part.dim() != parts[0].dim()) throw Unsupported("tensors of different ranks");
    for (std::size_t other = 0; other < dims.size(); ++other) {
      if (other == d) continue;
      shapes.unify(dims[other], part.dims[other]);
      dims[other] = shapes.find(dims[other]);
    }
    starts.push_back(total);
    total = shapes.add(total, part.dims[d]);
  }
  if (parts.size() == 1) return parts[0];
  dims[d] = shapes.size(total);
  Tensor out = Num::number(program, parts[0].type, 0).tensor();
  for (std::size_t i = parts.size(); i-- > 0;) {
    std::vector<Affine> at = identity_index(parts[i].dim());
    at[d].offset = shapes.sub(kZero, starts[i]);
    std::vector<std::uint8_t> guards(dims.size(), kNoGuard);
    // Those beyond a part were found in parts behind it.
    guards[d] = i == 0 ? kGuardHigh : i + 1 == parts.size() ? kGuardLow : kGuardBoth;
    out = program.pad(parts[i], dims, std::move(at), std::move(guards), out);
  }
  return out;
}

}  // namespace

Tensors lower_cat(const Call& call) {
  const std::vector<Num> parts = tensors_of(call);
  const c10::ScalarType type = common_type(call, parts);
  Tensors tensors;
  for (const Num& part : parts) {
    // Those of no elements and one dimension count for nothing, whatever the others are.
    if (part.dim() == 0) call.unsupported("tensors without dimensions");
    for (Dim dim : part.tensor().dims)
      if (call.program().shapes().example(dim) == 0) call.unsupported("a part of nothing");
    tensors.push_back(part.cast(type).tensor());
  }
  return {concatenation(call.program(), tensors, wrap_dim(call.integer("dim"), tensors[0].dim()))};
}

Tensors lower_stack(const Call& call) {
  const std::vector<Num> parts = tensors_of(call);
  const c10::ScalarType type = common_type(call, parts);
  const std::int64_t dim = wrap_dim(call.integer("dim"), parts[0].dim() + 1);
  Tensors tensors;
  for (const Num& part : parts) {
    if (part.dim() != parts[0].dim()) call.unsupported("tensors of different ranks");
    tensors.push_back(call.program().unsqueeze(part.cast(type).tensor(), dim));
  }
  return {concatenation(call.program(), tensors, dim)};
}

Tensors lower_constant_pad(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  Shapes& shapes = call.program().shapes();
  const std::vector<std::int64_t> pad = call.ints("pad");
  if (pad.size() % 2 != 0 || pad.size() / 2 > x.dims.size()) call.unsupported("a pad of others");
  std::vector<Affine> at = identity_index(x.dim());
  std::vector<std::uint8_t> guards(x.dims.size(), kNoGuard);
  Dims dims = x.dims;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    const std::size_t d = dims.size() - 1 - i;
    const std::int64_t low = pad[2 * i];
    const std::int64_t high = pad[2 * i + 1];
    if (shapes.example(dims[d]) == 0) call.unsupported("a part of nothing");
    const Dim cut =
        shapes.constant(-std::min<std::int64_t>(low, 0) - std::min<std::int64_t>(high, 0));
    assume_at_most(shapes, cut, dims[d]);
    const Dim size = shapes.add(dims[d], shapes.constant(low + high));
    if (shapes.example(size) <= 0) call.unsupported("nothing is left");
    dims[d] = shapes.size(size);
    at[d].offset = shapes.constant(-low);
    guards[d] = static_cast<std::uint8_t>((low > 0 ? kGuardLow : 0) | (high > 0 ? kGuardHigh : 0));
    // What is cut off at one end may be all that there was before the other.
    if (low < 0 || high < 0) guards[d] = kGuardBoth;
  }
  // Where nothing is added eager does not look at the value.
  const bool fills = std::any_of(pad.begin(), pad.end(), [](std::int64_t n) { return n > 0; });
  const Num value = fills && call.has("value") ? call.checked_number("value", x.type).cast(x.type)
                                               : call.number(x.type, 0);
  return {call.program().pad(x, std::move(dims), std::move(at), std::move(guards), value.tensor())};
}

Tensors lower_pad(const Call& call) {
  if (call.text("mode") != "constant") call.unsupported("padding that is not constant");
  return lower_constant_pad(call);
}

Tensors lower_roll(const Call& call) {
  const Tensor x = call.tensor("self").tensor();
  Shapes& shapes = call.program().shapes();
  std::vector<std::int64_t> shifts = call.ints("shifts");
  std::vector<std::int64_t> dims = call.ints("dims");
  if (shifts.size() != dims.size() || dims.empty()) call.unsupported("a roll of all dimensions");
  Tensor out = x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t dim = wrap_dim(dims[i], x.dim());
    if (x.dim() == 0) call.unsupported("a tensor without dimensions");
    const Dim size = x.dims[static_cast<std::size_t>(dim)];
    if (shapes.example(size) == 0) call.unsupported("a part of nothing");
    // Element 0 moves by the shift, from the end if that is negative.
    const Dim shift = shapes.constant(std::abs(shifts[i]));
    if (shifts[i] == 0 || size == kOne) continue;
    if (shapes.example(shift) >= shapes.example(size)) call.unsupported("a roll all around");
    assume_at_most(shapes, shapes.add(shift, kOne), size);
    const Dim start = shifts[i] > 0 ? shapes.sub(size, shift) : shift;
    const Tensor first = part_of(call.program(), out, dim, start, shapes.sub(size, start));
    const Tensor second = part_of(call.program(), out, dim, kZero, start);
    out = concatenation(call.program(), {first, second}, dim);
    shapes.unify(out.dims[static_cast<std::size_t>(dim)], size);
  }
  return {out};
}

namespace {

// Elements on one side of a diagonal of the last two dimensions, zeros elsewhere.
Tensors triangle(const Call& call, bool lower) {
  const Num x = call.tensor("self");
  if (x.dim() < 2) call.unsupported("a triangle of less than two dimensions");
  TensorProgram& program = call.program();
  const Dim rows = x.tensor().dims[static_cast<std::size_t>(x.dim() - 2)];
  const Dim columns = x.tensor().dims[static_cast<std::size_t>(x.dim() - 1)];
  const Num row(program, program.unsqueeze(program.index(rows), 1));
  const Num column(program, program.index(columns));
  const Num beyond = column - row;
  const c10::Scalar diagonal = call.integer("diagonal");
  const Num keep = lower ? beyond <= diagonal : beyond >= diagonal;
  return {select(keep, x, 0).tensor()};
}

}  // namespace

Tensors lower_tril(const Call& call) { return triangle(call, true); }
Tensors lower_triu(const Call& call) { return triangle(call, false); }

Tensors lower_glu(const Call& call) {
  const Num x = call.tensor("self");
  if (!is_floating(x.type()) || x.dim() == 0) call.unsupported("glu of others");
  TensorProgram& program = call.program();
  Shapes& shapes = program.shapes();
  const std::int64_t dim = wrap_dim(call.integer("dim"), x.dim());
  const Dim size = x.tensor().dims[static_cast<std::size_t>(dim)];
  const Dim half = shapes.floor_div(size, shapes.constant(2));
  if (shapes.example(size) % 2 != 0) call.unsupported("halves of an odd size");
  shapes.unify(shapes.mul(half, shapes.constant(2)), size);
  const auto part = [&](Dim start) {
    return Num(program, part_of(program, x.tensor(), dim, start, half)).cast(opmath(x.type()));
  };
  const Num gate = part(half);
  return result(part(kZero) * (1 / (1 + exp(-gate))), x.type());
}

}  // namespace fx::loops
