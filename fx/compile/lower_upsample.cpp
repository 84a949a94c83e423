#include <cmath>
#include <optional>

#include "fx/compile/lower_index.h"
#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"

/// Interpolation that repeats elements 2, 4, ... times: element i of the result is element i >> k
/// of the input.
namespace fx::loops {
namespace {

// Eager computes places in floats. Up to here all numbers on its way are exact, or rounded to what
// has the same integer part.
constexpr std::int64_t kMaxSize = 1 << 18;
constexpr int kMaxShift = 5;

std::vector<std::optional<double>> scales_of(const Call& call, std::size_t count) {
  std::vector<std::optional<double>> scales(count);
  if (call.has("scale_factors")) {
    const Value& list = call.find("scale_factors")->constant;
    if (!is_sequence(list) || elements(list).size() != count) call.unsupported("other scales");
    for (std::size_t d = 0; d < count; ++d) {
      if (!elements(list)[d].isDouble()) call.unsupported("other scales");
      scales[d] = elements(list)[d].toDouble();
    }
  }
  static constexpr const char* kNames[] = {"scales_h", "scales_w"};
  for (std::size_t d = 0; d < count; ++d)
    if (const char* name = count == 1 ? "scales" : kNames[d]; call.has(name))
      scales[d] = call.real(name);
  return scales;
}

// How often each element of a dimension is repeated, as a power of two, for sizes like those of the
// example and, where these are no part of the call, for all sizes.
int shift_of(const Call& call, Dim in, std::optional<std::int64_t> out,
             std::optional<double> scale) {
  const std::int64_t size = call.program().shapes().example(in);
  const double factor =
      out ? static_cast<double>(*out) / static_cast<double>(size) : scale.value_or(0);
  int exponent = 0;
  if (std::frexp(factor, &exponent) != 0.5 || exponent < 1 || exponent - 1 > kMaxShift ||
      (scale && *scale != factor))
    call.unsupported("interpolation by other factors than 1, 2, 4, ...");
  return exponent - 1;
}

Tensors nearest(const Call& call, std::size_t count) {
  TensorProgram& program = call.program();
  Shapes& shapes = program.shapes();
  const Num x = call.tensor(call.has("self") ? "self" : "input");
  const auto rank = static_cast<std::size_t>(x.dim());
  if (rank != count + 2) call.unsupported("resizing other dimensions");
  if (!is_floating(x.type())) call.unsupported("interpolation of integers");
  for (Dim dim : x.tensor().dims)
    if (shapes.example(dim) == 0) call.unsupported("resizing nothing");
  const std::vector<std::optional<double>> scales = scales_of(call, count);
  std::vector<std::int64_t> sizes;
  if (call.has("output_size")) sizes = call.ints("output_size");
  if (!sizes.empty() && sizes.size() != count) call.unsupported("other sizes");

  Dims dims = x.tensor().dims;
  std::vector<Affine> at = identity_index(x.dim());
  std::vector<int> gathered;
  std::vector<int> shifts;
  for (std::size_t d = 0; d < count; ++d) {
    const std::size_t at_dim = rank - count + d;
    const Dim in = dims[at_dim];
    const auto out = sizes.empty() ? std::nullopt : std::optional(sizes[d]);
    const int shift = shift_of(call, in, out, scales[d]);
    if (shift == 0 && !out) continue;
    const Dim wanted = shapes.mul(in, shapes.constant(std::int64_t{1} << shift));
    if (out) shapes.unify(wanted, shapes.constant(*out));
    dims[at_dim] = shapes.size(wanted);
    assume_at_most(shapes, wanted, shapes.constant(kMaxSize));
    if (shift == 0) continue;
    at[at_dim] = {};
    gathered.push_back(static_cast<int>(at_dim));
    shifts.push_back(shift);
  }
  Tensors places;
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    const Num index = index_along(program, dims, static_cast<std::size_t>(gathered[i]));
    // In range, since the size of the result is that of the input, shifted.
    places.push_back(index.apply(Op::kShr, index.number(shifts[i])).tensor());
  }
  if (gathered.empty()) call.unsupported("a copy");
  return {program.gather(x.tensor(), dims, std::move(at), std::move(gathered), places)};
}

}  // namespace

Tensors lower_upsample_nearest1d(const Call& call) { return nearest(call, 1); }
Tensors lower_upsample_nearest2d(const Call& call) { return nearest(call, 2); }

}  // namespace fx::loops
