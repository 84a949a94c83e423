#include "fx/compile/nest_index.h"

#include <algorithm>

#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

/// A part of a reshape: `from` dimensions of its argument are `to` dimensions of its result.
template <typename Fn>
void for_each_part(const Expr& reshape, Fn fn) {
  std::size_t from = 0;
  std::size_t to = 0;
  for (std::size_t i = 0; i < reshape.parts.size(); i += 2) {
    const auto from_end = from + static_cast<std::size_t>(reshape.parts[i]);
    const auto to_end = to + static_cast<std::size_t>(reshape.parts[i + 1]);
    fn(from, from_end, to, to_end);
    from = from_end;
    to = to_end;
  }
}

void add_value(Shapes& shapes, AxisIndex& index, ValueId value, Dim step) {
  for (auto& [known, known_step] : index.values)
    if (known == value) {
      known_step = shapes.add(known_step, step);
      return;
    }
  index.values.emplace_back(value, step);
}

// The digit of `linear` for the dimension with `stride` and `size`: the terms that step by the
// stride, by that times the size of their axis, and so on up to stride * size.
AxisIndex digit(Shapes& shapes, const std::vector<Dim>& axes, const Affine& linear, Dim stride,
                Dim size) {
  AxisIndex out;
  Dim step = kOne;
  while (shapes.example(step) != shapes.example(size)) {
    const Dim wanted = shapes.mul(step, stride);
    const auto term = std::find_if(
        linear.terms.begin(), linear.terms.end(),
        [&](const Affine::Term& t) { return shapes.example(t.step) == shapes.example(wanted); });
    if (term == linear.terms.end()) throw Unsupported("a reshape that mixes the loops");
    // Equal in the example: assumed, and checked in each call.
    shapes.unify(term->step, wanted);
    out.affine.terms.push_back({term->axis, step});
    step = shapes.mul(step, axes[static_cast<std::size_t>(term->axis)]);
    if (shapes.example(step) > shapes.example(size))
      throw Unsupported("a reshape that mixes the loops");
  }
  shapes.unify(step, size);
  std::sort(out.affine.terms.begin(), out.affine.terms.end());
  return out;
}

}  // namespace

AxisIndex substitute(Shapes& shapes, const Affine& outer, const AxisMap& map) {
  std::vector<Affine> inner;
  for (const AxisIndex& index : map) inner.push_back(index.affine);
  AxisIndex out{.affine = substitute(shapes, outer, inner)};
  for (const Affine::Term& term : outer.terms)
    for (const auto& [value, step] : map[static_cast<std::size_t>(term.axis)].values)
      add_value(shapes, out, value, shapes.mul(step, term.step));
  return out;
}

AxisMap reshape_map(Shapes& shapes, const std::vector<Dim>& axes, const Expr& reshape,
                    const Dims& from_dims, const AxisMap& map) {
  AxisMap out(from_dims.size());
  for_each_part(reshape,
                [&](std::size_t from, std::size_t from_end, std::size_t to, std::size_t to_end) {
                  Affine linear;
                  Dim stride = kOne;
                  for (std::size_t d = to_end; d-- > to;) {
                    linear.terms.insert(linear.terms.begin(), {static_cast<int>(d), stride});
                    stride = shapes.mul(stride, reshape.dims[d]);
                  }
                  const AxisIndex index = substitute(shapes, linear, map);
                  std::vector<std::size_t> dims;
                  for (std::size_t d = from; d < from_end; ++d)
                    if (shapes.find(from_dims[d]) != kOne) dims.push_back(d);
                  if (dims.empty()) return;
                  if (dims.size() == 1) {
                    out[dims[0]] = index;
                    return;
                  }
                  if (index.affine.offset != kZero || !index.values.empty())
                    throw Unsupported("a reshape that mixes the loops");
                  stride = kOne;
                  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
                    out[*dim] = digit(shapes, axes, index.affine, stride, from_dims[*dim]);
                    stride = shapes.mul(stride, from_dims[*dim]);
                  }
                });
  return out;
}

void collect_factors(const Shapes& shapes, const Expr& reshape, const Dims& from_dims,
                     std::vector<std::pair<Dim, Dims>>& factors) {
  for_each_part(reshape,
                [&](std::size_t from, std::size_t from_end, std::size_t to, std::size_t to_end) {
                  const auto roots = [&](const Dims& dims, std::size_t begin, std::size_t end) {
                    Dims out;
                    for (std::size_t d = begin; d < end; ++d)
                      if (const Dim dim = shapes.find(dims[d]); dim != kOne) out.push_back(dim);
                    return out;
                  };
                  const Dims many = roots(from_dims, from, from_end);
                  const Dims one = roots(reshape.dims, to, to_end);
                  if (many.size() > 1 && one.size() == 1) factors.emplace_back(one[0], many);
                });
}

}  // namespace fx::loops
