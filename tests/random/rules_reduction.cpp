// Reductions, normalisations along a dimension, matrix products.

#include "tests/random/maker.h"

namespace fx::fuzz {
namespace {

using at::Tensor;

bool has_dim(const Item& item) { return item.dim() >= 1; }
bool has_elements(const Item& item) { return item.dim() >= 1 && item.tensor.numel() > 0; }

bool sum(Maker& m) {
  const auto x = m.pick();
  if (!x) return false;
  const Tensor t = x->tensor;
  if (x->dim() == 0 || m.choices.chance(30)) {
    m.call({"aten::sum", "torch.sum", ".sum"}, {*x}, [t] { return t.sum(); });
    return true;
  }
  const Shape dims = {m.choices.between(-1, x->dim() - 1)};
  const bool keep = m.choices.chance(50);
  m.call({"aten::sum.dim_IntList", "torch.sum", ".sum"}, {*x, ints(dims), keep},
         [t, dims, keep] { return t.sum(dims, keep); });
  return true;
}

bool mean(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_float() && item.dim() >= 1; },
                        /*inexact=*/true);
  if (!x) return false;
  const Shape dims = {m.choices.between(0, x->dim() - 1)};
  m.call({"aten::mean.dim", "torch.mean", ".mean"}, {*x, ints(dims)}, {{"keepdim", true}},
         [t = x->tensor, dims] { return t.mean(dims, true); });
  return true;
}

bool extreme(Maker& m) {
  const auto x = m.pick(has_elements);
  if (!x) return false;
  const Shape dims = {m.choices.between(0, x->dim() - 1)};
  const Tensor t = x->tensor;
  switch (m.choices.below(3)) {
    case 0:
      m.call({"aten::amax", "torch.amax", ".amax"}, {*x, ints(dims)},
             [t, dims] { return t.amax(dims); });
      break;
    case 1:
      m.call({"aten::amin", "torch.amin"}, {*x, ints(dims), true},
             [t, dims] { return t.amin(dims, true); });
      break;
    default:
      if (x->is_bool()) return false;
      m.call({"aten::argmax", "torch.argmax", ".argmax"}, {*x, dims[0]},
             [t, dim = dims[0]] { return t.argmax(dim); });
  }
  return true;
}

bool any_or_all(Maker& m) {
  const auto x = m.pick(has_dim);
  if (!x) return false;
  const std::int64_t dim = m.choices.between(0, x->dim() - 1);
  const Tensor t = x->tensor;
  if (m.choices.chance(50))
    m.call({"aten::any.dim", "torch.any"}, {*x, dim}, [t, dim] { return t.any(dim); });
  else
    m.call({"aten::all", "torch.all", ".all"}, {*x}, [t] { return t.all(); });
  return true;
}

// Two results, values and indices.
bool values_and_indices(Maker& m) {
  const auto x = m.pick(has_elements);
  if (!x || x->is_bool()) return false;
  const std::int64_t dim = m.choices.between(0, x->dim() - 1);
  const Tensor t = x->tensor;
  auto both = [](std::tuple<Tensor, Tensor> pair) {
    return std::vector<Tensor>{std::get<0>(pair), std::get<1>(pair)};
  };
  switch (m.choices.below(3)) {
    case 0:
      m.call_list({"aten::max.dim", "torch.max", ".max"}, {*x, dim},
                  [t, dim, both] { return both(t.max(dim)); });
      break;
    case 1:
      m.call_list({"aten::sort", "torch.sort", ".sort"}, {*x, dim},
                  [t, dim, both] { return both(t.sort(dim)); });
      break;
    default:
      m.call_list({"aten::topk", "torch.topk"}, {*x, 1, dim},
                  [t, dim, both] { return both(t.topk(1, dim)); });
  }
  return true;
}

bool softmax(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_float() && item.dim() >= 1; });
  if (!x) return false;
  const std::int64_t dim = m.choices.between(-1, x->dim() - 1);
  const Tensor t = x->tensor;
  if (m.choices.chance(60))
    m.call({"aten::softmax.int", "torch.softmax", "torch.nn.functional.softmax"}, {*x, dim},
           [t, dim] { return t.softmax(dim); });
  else
    m.call({"aten::log_softmax.int", "torch.log_softmax"}, {*x, dim},
           [t, dim] { return t.log_softmax(dim); });
  return true;
}

bool layer_norm(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_float() && has_elements(item); });
  if (!x) return false;
  const Shape shape = {x->size(-1)};
  m.call({"aten::layer_norm", "torch.nn.functional.layer_norm"}, {*x, ints(shape)},
         [t = x->tensor, shape] { return at::layer_norm(t, shape); });
  return true;
}

bool variance(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_float() && has_elements(item); });
  if (!x) return false;
  const Shape dims = {m.choices.between(0, x->dim() - 1)};
  const Tensor t = x->tensor;
  if (m.choices.chance(50))
    m.call({"aten::var.correction"}, {*x, ints(dims)}, {{"correction", 0}},
           [t, dims] { return t.var(dims, 0); });
  else
    m.call({"aten::logsumexp", "torch.logsumexp"}, {*x, ints(dims)},
           [t, dims] { return t.logsumexp(dims); });
  return true;
}

bool scan(Maker& m) {
  const auto x = m.pick(has_dim);
  if (!x) return false;
  const std::int64_t dim = m.choices.between(0, x->dim() - 1);
  m.call({"aten::cumsum", "torch.cumsum", ".cumsum"}, {*x, dim},
         [t = x->tensor, dim] { return t.cumsum(dim); });
  return true;
}

bool triangle(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.dim() >= 2; });
  if (!x) return false;
  m.call({"aten::tril", "torch.tril", ".tril"}, {*x}, [t = x->tensor] { return t.tril(); });
  return true;
}

bool can_multiply(const Item& item) {
  return item.dtype() == at::kFloat || item.dtype() == at::kDouble;
}

// Bounded, so that another order of the sums does not overflow where this one does not.
Item bounded(Maker& m, const Item& x) {
  return m.call({"aten::tanh", "torch.tanh", ".tanh"}, {x}, [t = x.tensor] { return t.tanh(); });
}

void product(Maker& m, const Item& x, const Item& y) {
  m.mark_inexact(m.call({"aten::mm", "torch.matmul", "aten::matmul", "operator.matmul", ".matmul"},
                        {x, y}, [a = x.tensor, b = y.tensor] { return at::mm(a, b); }));
}

// Products with the same right-hand side, which merge_matmul merges: of a value as a matrix, and of
// its cosines, with its transpose.
bool two_products(Maker& m) {
  const auto picked = m.pick([&](const Item& item) {
    if (!can_multiply(item) || item.dim() < 1 || item.size(-1) == 0) return false;
    const std::int64_t rows = item.tensor.numel() / item.size(-1);
    return item.size(-1) <= 16 && m.fits(2 * rows * rows);
  });
  if (!picked) return false;
  Item x = bounded(m, *picked);
  if (x.dim() == 1)
    x = m.call({"aten::unsqueeze"}, {x, 0}, [t = x.tensor] { return t.unsqueeze(0); });
  else if (x.dim() > 2)
    x = m.call({"aten::flatten.using_ints", "torch.flatten"}, {x, 0, -2},
               [t = x.tensor] { return t.flatten(0, -2); });
  const Item right = m.call({"aten::t", "torch.t"}, {x}, [t = x.tensor] { return t.t(); });
  const Item y = m.call({"aten::cos"}, {x}, [t = x.tensor] { return t.cos(); });
  std::vector<Item> products;
  for (const Item& left : {x, y}) {
    products.push_back(m.call({"aten::mm"}, {left, right},
                              [a = left.tensor, b = right.tensor] { return at::mm(a, b); }));
    m.mark_inexact(products.back());
  }
  // A product that nobody reads is not merged.
  m.call({"aten::cat", "torch.cat"}, {Argument::list({products[0], products[1]})},
         [a = products[0].tensor, b = products[1].tensor] { return at::cat({a, b}); });
  return true;
}

// A product with another value that fits, or with the transpose of the first one.
bool matmul(Maker& m) {
  const auto x = m.pick([](const Item& item) { return can_multiply(item) && item.dim() >= 1; });
  if (!x) return false;
  auto fits = [&](const Item& item) {
    if (item.dtype() != x->dtype() || item.dim() < 1) return false;
    const std::int64_t inner = item.dim() == 1 ? item.size(0) : item.size(-2);
    if (inner != x->size(-1)) return false;
    Shape left = x->tensor.sizes().vec(), right = item.tensor.sizes().vec();
    const std::int64_t rows = left.size() >= 2 ? left[left.size() - 2] : 1;
    const std::int64_t columns = right.size() >= 2 ? right.back() : 1;
    left.resize(left.size() - std::min<std::size_t>(left.size(), 2));
    right.resize(right.size() - std::min<std::size_t>(right.size(), 2));
    const auto batch = broadcast(left, right);
    return batch && m.fits(numel_of(*batch) * rows * columns);
  };
  auto y = m.pick(fits);
  if (!y && x->dim() >= 2 && m.fits(x->tensor.numel() * x->size(-2))) {
    y = m.call({"aten::transpose.int", ".transpose"}, {*x, -1, -2},
               [t = x->tensor] { return t.transpose(-1, -2); });
  }
  if (!y) return false;
  // Products of matrices may be merged with others, which adds in another order.
  if (x->dim() == 2 && y->dim() == 2) {
    const Item left = bounded(m, *x), right = bounded(m, *y);
    product(m, left, right);
    return true;
  }
  m.call({"aten::matmul", "torch.matmul", "operator.matmul", ".matmul"}, {*x, *y},
         [a = x->tensor, b = y->tensor] { return at::matmul(a, b); });
  return true;
}

bool einsum(Maker& m) {
  const auto x = m.pick([](const Item& item) { return can_multiply(item) && item.dim() == 2; });
  if (!x || !m.fits(x->size(0) * x->size(0))) return false;
  m.call({"torch.einsum"}, {"ij,kj->ik", Argument::list({*x, *x})},
         [t = x->tensor] { return at::einsum("ij,kj->ik", {t, t}); });
  return true;
}

}  // namespace

std::span<const Rule> reduction_rules() {
  static constexpr Rule kRules[] = {
      {"sum", 3, sum},
      {"mean", 2, mean},
      {"extreme", 2, extreme},
      {"any_or_all", 1, any_or_all},
      {"values_and_indices", 2, values_and_indices},
      {"softmax", 2, softmax},
      {"layer_norm", 1, layer_norm},
      {"variance", 1, variance},
      {"scan", 1, scan},
      {"triangle", 1, triangle},
      {"matmul", 3, matmul},
      {"two_products", 3, two_products},
      {"einsum", 1, einsum},
  };
  return kRules;
}

}  // namespace fx::fuzz
