// Operators that return views of their operand, and some that only rearrange it.

#include <algorithm>

#include "tests/random/maker.h"

namespace fx::fuzz {
namespace {

using at::Tensor;

// Views keep what they are views of, rounding and all.
std::optional<Item> pick_view(Maker& m, std::int64_t min_dim) {
  return m.pick([min_dim](const Item& item) { return item.dim() >= min_dim; }, /*inexact=*/true);
}

std::int64_t pick_dim(Maker& m, const Item& x) {
  const std::int64_t dim = m.choices.between(0, x.dim() - 1);
  return m.choices.chance(30) ? dim - x.dim() : dim;
}

bool transpose(Maker& m) {
  const auto x = pick_view(m, 2);
  if (!x) return false;
  const std::int64_t a = pick_dim(m, *x), b = pick_dim(m, *x);
  m.call({"aten::transpose.int", "torch.transpose", ".transpose"}, {*x, a, b},
         [t = x->tensor, a, b] { return t.transpose(a, b); });
  return true;
}

bool turn(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.dim() <= 2; }, true);
  if (!x) return false;
  m.call({"aten::t", "torch.t", ".t"}, {*x}, [t = x->tensor] { return t.t(); });
  return true;
}

bool permute(Maker& m) {
  const auto x = pick_view(m, 2);
  if (!x) return false;
  Shape dims;
  for (std::int64_t d = 0; d < x->dim(); ++d)
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(m.choices.below(dims.size() + 1)), d);
  m.call({"aten::permute", "torch.permute", ".permute"}, {*x, ints(dims)},
         [t = x->tensor, dims] { return t.permute(dims); });
  return true;
}

bool slice(Maker& m) {
  const auto x = pick_view(m, 1);
  if (!x) return false;
  const std::int64_t dim = pick_dim(m, *x), size = x->size(dim);
  const std::int64_t start = m.choices.between(-1, size), step = m.choices.between(1, 2);
  const std::int64_t end = m.choices.chance(40) ? INT64_MAX : m.choices.between(start, size + 1);
  m.call({"aten::slice.Tensor"}, {*x, dim, start, end, step},
         [t = x->tensor, dim, start, end, step] { return t.slice(dim, start, end, step); });
  return true;
}

bool select(Maker& m) {
  const auto x =
      m.pick([](const Item& item) { return item.dim() >= 1 && item.tensor.numel() > 0; }, true);
  if (!x) return false;
  const std::int64_t dim = pick_dim(m, *x);
  const std::int64_t index = m.choices.between(-x->size(dim), x->size(dim) - 1);
  m.call({"aten::select.int", "torch.select", ".select"}, {*x, dim, index},
         [t = x->tensor, dim, index] { return t.select(dim, index); });
  return true;
}

// x[i], x[a:b, None, ...] and the like.
bool index_like_python(Maker& m) {
  const auto x = pick_view(m, 1);
  if (!x) return false;
  const std::int64_t size = x->size(0), last = x->dim() - 1;
  const Tensor t = x->tensor;
  switch (m.choices.below(4)) {
    case 0: {
      if (size == 0) return false;
      const std::int64_t index = m.choices.between(-size, size - 1);
      m.call({"operator.getitem"}, {*x, index}, [t, index] { return t.select(0, index); });
      break;
    }
    case 1: {
      const std::int64_t start = m.choices.between(0, size);
      m.call({"operator.getitem"}, {*x, Argument::slice(start, {}, {})},
             [t, start] { return t.slice(0, start); });
      break;
    }
    case 2:
      m.call({"operator.getitem"},
             {*x, Argument::tuple({Argument::ellipsis(), Argument::slice({}, {}, 2)})},
             [t, last] { return t.slice(last, 0, INT64_MAX, 2); });
      break;
    default:
      m.call({"operator.getitem"}, {*x, Argument::tuple({Argument(), Argument::slice({}, 2, {})})},
             [t] { return t.unsqueeze(0).slice(1, 0, 2); });
  }
  return true;
}

bool expand(Maker& m) {
  const auto x =
      m.pick([](const Item& item) { return item.dim() < 5 && item.tensor.numel() <= 64; }, true);
  if (!x) return false;
  Shape shape = x->tensor.sizes().vec();
  for (std::int64_t& size : shape)
    if (size == 1 && m.choices.chance(60)) size = m.choices.between(0, 4);
  if (m.choices.chance(50)) shape.insert(shape.begin(), m.choices.between(1, 3));
  if (!m.fits(numel_of(shape))) return false;
  m.call({"aten::expand", ".expand"}, {*x, ints(shape)},
         [t = x->tensor, shape] { return t.expand(shape); });
  return true;
}

bool unsqueeze(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.dim() < 5; }, true);
  if (!x) return false;
  const std::int64_t dim = m.choices.between(-x->dim() - 1, x->dim());
  m.call({"aten::unsqueeze", "torch.unsqueeze", ".unsqueeze"}, {*x, dim},
         [t = x->tensor, dim] { return t.unsqueeze(dim); });
  return true;
}

bool squeeze(Maker& m) {
  const auto x = pick_view(m, 1);
  if (!x) return false;
  const std::int64_t dim = pick_dim(m, *x);
  m.call({"aten::squeeze.dim", "torch.squeeze", ".squeeze"}, {*x, dim},
         [t = x->tensor, dim] { return t.squeeze(dim); });
  return true;
}

// Another shape for the same number of elements: dimensions merged, split, put in.
Shape reshaped(Maker& m, Shape shape) {
  for (std::size_t i = 1 + m.choices.below(2); i > 0; --i) {
    const std::size_t at = m.choices.below(shape.size() + 1);
    const auto position = shape.begin() + static_cast<std::ptrdiff_t>(at);
    if (at + 1 < shape.size() && m.choices.chance(50)) {
      shape[at] *= shape[at + 1];
      shape.erase(position + 1);
    } else if (at < shape.size() && shape[at] % 2 == 0 && shape[at] > 0) {
      shape[at] /= 2;
      shape.insert(position, 2);
    } else if (shape.size() < 5) {
      shape.insert(position, 1);
    }
  }
  return shape;
}

bool reshape(Maker& m) {
  const auto x = m.pick({}, true);
  if (!x) return false;
  const Shape shape = reshaped(m, x->tensor.sizes().vec());
  if (x->tensor.is_contiguous() && m.choices.chance(50)) {
    m.call({"aten::view", ".view"}, {*x, ints(shape)},
           [t = x->tensor, shape] { return t.view(shape); });
  } else {
    m.call({"aten::reshape", "torch.reshape", ".reshape"}, {*x, ints(shape)},
           [t = x->tensor, shape] { return t.reshape(shape); });
  }
  return true;
}

// x.view(x.size(0), -1): the number is a node.
bool view_by_size(Maker& m) {
  const auto x = m.pick(
      [](const Item& item) {
        return item.dim() >= 1 && item.tensor.numel() > 0 && item.tensor.is_contiguous();
      },
      true);
  if (!x) return false;
  m.call_int({".size"}, {*x, 0}, x->size(0));
  const auto [node, size] = *m.pick_int();
  if (node->args()[0].node_or_null() != x->node || size != x->size(0)) return true;
  m.call({".view"}, {*x, *node, -1}, [t = x->tensor, n = size] { return t.view({n, -1}); });
  return true;
}

bool flatten(Maker& m) {
  const auto x = m.pick({}, true);
  if (!x) return false;
  m.call({"aten::flatten.using_ints", "torch.flatten", ".flatten"}, {*x},
         [t = x->tensor] { return t.flatten(); });
  return true;
}

bool diagonal(Maker& m) {
  const auto x = pick_view(m, 2);
  if (!x) return false;
  m.call({"aten::diagonal", "torch.diagonal"}, {*x}, [t = x->tensor] { return t.diagonal(); });
  return true;
}

bool split(Maker& m) {
  const auto x =
      m.pick([](const Item& item) { return item.dim() >= 1 && item.tensor.numel() > 0; }, true);
  if (!x) return false;
  const std::int64_t dim = m.choices.between(0, x->dim() - 1), size = x->size(dim);
  const Tensor t = x->tensor;
  switch (m.choices.below(4)) {
    case 0:
      m.call_list({"aten::split.Tensor", "torch.split", ".split"}, {*x, (size + 1) / 2, dim},
                  [t, dim, part = (size + 1) / 2] { return t.split(part, dim); });
      break;
    case 1:
      m.call_list({"aten::chunk", "torch.chunk", ".chunk"}, {*x, 2, dim},
                  [t, dim] { return t.chunk(2, dim); });
      break;
    case 2: {
      const Shape parts = {1, size - 1};
      m.call_list({"aten::split_with_sizes"}, {*x, ints(parts), dim},
                  [t, parts, dim] { return t.split_with_sizes(parts, dim); });
      break;
    }
    default:
      if (size > 4) return false;
      m.call_list({"aten::unbind.int", "torch.unbind"}, {*x, dim},
                  [t, dim] { return t.unbind(dim); });
  }
  return true;
}

// --- the same elements in new memory -------------------------------------------------------------

bool flip(Maker& m) {
  const auto x = pick_view(m, 1);
  if (!x) return false;
  const Shape dims = {m.choices.between(0, x->dim() - 1)};
  m.call({"aten::flip", "torch.flip", ".flip"}, {*x, ints(dims)},
         [t = x->tensor, dims] { return t.flip(dims); });
  return true;
}

bool copy(Maker& m) {
  const auto x = m.pick({}, true);
  if (!x) return false;
  if (m.choices.chance(50))
    m.call({"aten::clone", "torch.clone", ".clone"}, {*x}, [t = x->tensor] { return t.clone(); });
  else
    m.call({"aten::contiguous", ".contiguous"}, {*x}, [t = x->tensor] { return t.contiguous(); });
  return true;
}

bool join(Maker& m) {
  const auto x = m.pick([&](const Item& item) { return m.fits(2 * item.tensor.numel()); }, true);
  if (!x) return false;
  const auto y = m.pick(
      [&](const Item& item) {
        return item.tensor.sizes() == x->tensor.sizes() && item.dtype() == x->dtype();
      },
      true);
  if (!y) return false;
  const Tensor a = x->tensor, b = y->tensor;
  const Argument both = m.choices.chance(50) ? Argument::list({*x, *y}) : Argument::tuple({*x, *y});
  if (x->dim() >= 1 && m.choices.chance(60)) {
    const std::int64_t dim = pick_dim(m, *x);
    m.call({"aten::cat", "torch.cat"}, {both, dim}, [a, b, dim] { return at::cat({a, b}, dim); });
  } else {
    m.call({"aten::stack", "torch.stack"}, {both}, [a, b] { return at::stack({a, b}); });
  }
  return true;
}

bool repeat(Maker& m) {
  const auto x = m.pick([&](const Item& item) { return m.fits(2 * item.tensor.numel()); }, true);
  if (!x) return false;
  Shape times(static_cast<std::size_t>(x->dim()) + 1, 1);
  times[m.choices.below(times.size())] = 2;
  m.call({"aten::repeat", ".repeat"}, {*x, ints(times)},
         [t = x->tensor, times] { return t.repeat(times); });
  return true;
}

bool index_select(Maker& m) {
  const auto x =
      m.pick([](const Item& item) { return item.dim() >= 1 && item.tensor.numel() > 0; });
  if (!x) return false;
  const std::int64_t dim = m.choices.between(0, x->dim() - 1);
  Tensor index = at::empty({m.choices.between(0, 3)}, at::kLong);
  for (std::int64_t i = 0; i < index.numel(); ++i)
    index.mutable_data_ptr<std::int64_t>()[i] = m.choices.between(0, x->size(dim) - 1);
  if (!m.fits(3 * x->tensor.numel())) return false;
  const Item which = m.get_attr(m.add_attribute(Maker::Kind::kConstant, index), index);
  // A copy: another operator may write other numbers to the attribute.
  const Item inside = m.call({"aten::remainder.Scalar"}, {which, x->size(dim)},
                             [index, n = x->size(dim)] { return at::remainder(index, n); });
  m.protect(inside);
  m.call({"aten::index_select", "torch.index_select", ".index_select"}, {*x, dim, inside},
         [t = x->tensor, dim, i = inside.tensor] { return t.index_select(dim, i); });
  return true;
}

}  // namespace

std::span<const Rule> view_rules() {
  static constexpr Rule kRules[] = {
      {"transpose", 3, transpose},
      {"turn", 1, turn},
      {"permute", 2, permute},
      {"slice", 3, slice},
      {"select", 2, select},
      {"index_like_python", 3, index_like_python},
      {"expand", 2, expand},
      {"unsqueeze", 2, unsqueeze},
      {"squeeze", 1, squeeze},
      {"reshape", 3, reshape},
      {"view_by_size", 1, view_by_size},
      {"flatten", 1, flatten},
      {"diagonal", 1, diagonal},
      {"split", 3, split},
      {"flip", 2, flip},
      {"copy", 2, copy},
      {"join", 3, join},
      {"repeat", 1, repeat},
      {"index_select", 1, index_select},
  };
  return kRules;
}

}  // namespace fx::fuzz
