// Reductions and products of matrices.
#include <cmath>
#include <limits>
#include <numeric>

#include "fx/passes/core_decompositions.h"

namespace fx::core {
namespace {

using at::Scalar;
using at::Tensor;
using Dims = std::optional<std::vector<std::int64_t>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::int64_t> all_dims(const Tensor& x) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(x.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

std::vector<std::int64_t> given(const Tensor& x, const Dims& dims) {
  return dims && !dims->empty() ? *dims : all_dims(x);
}

Tensor vector_norm(const Tensor& x, const Scalar& order, const Dims& dims, bool keep) {
  const double p = order.toDouble();
  const std::vector<std::int64_t> over = given(x, dims);
  if (p == 0) return x.ne(0).to(x.abs().scalar_type()).sum(over, keep);
  const Tensor size = x.abs();
  if (p == kInfinity) return size.amax(over, keep);
  if (p == -kInfinity) return size.amin(over, keep);
  if (p == 1) return size.sum(over, keep);
  if (p == 2) return (x.is_complex() ? size * size : x * x).sum(over, keep).sqrt();
  return size.pow(p).sum(over, keep).pow(1 / p);
}

// The norm of x in a dtype; narrow ones are rounded to at both ends, not in between.
Tensor norm_of(const Tensor& x, const Scalar& order, const Dims& dims, bool keep,
               std::optional<at::ScalarType> dtype) {
  if (!dtype) return vector_norm(x, order, dims, keep);
  const bool is_narrow = *dtype == at::kHalf || *dtype == at::kBFloat16;
  const Tensor converted = x.to(*dtype);
  const Tensor norm =
      vector_norm(is_narrow ? converted.to(at::kFloat) : converted, order, dims, keep);
  return is_narrow ? norm.to(*dtype) : norm;
}

// exp of differences from the largest, where that is finite.
Tensor log_sum_exp(const Tensor& x, const std::vector<std::int64_t>& dims, bool keep) {
  const Tensor wide = at::isIntegralType(x.scalar_type(), true) ? x.to(at::kFloat) : x;
  if (wide.numel() == 0) return wide.exp().sum(dims, keep).log();
  const Tensor high = (wide.is_complex() ? at::real(wide) : wide).amax(dims, true);
  const Tensor shift = at::where(high.abs() == kInfinity, 0, high);
  const Tensor sum = (wide - shift).exp().sum(dims, keep).log();
  return sum + (keep || dims.empty() ? shift : shift.squeeze(dims));
}

// The deviation from the variance: `correction` is what is taken from the count.
Tensor var_of(const Tensor& x, const Dims& dims, const std::optional<Scalar>& correction,
              bool keep) {
  return at::var(x, dims ? at::OptionalIntArrayRef(*dims) : at::OptionalIntArrayRef(), correction,
                 keep);
}

void add_sums(Entries& entries) {
  entries.add(
      "aten::sum", +[](const Tensor& x, std::optional<at::ScalarType> dtype) {
        return at::sum(x, std::vector<std::int64_t>(), false, dtype);
      });
  entries.add(
      "aten::nansum",
      +[](const Tensor& x, const Dims& dims, bool keep, std::optional<at::ScalarType> dtype) {
        const Tensor numbers = at::isFloatingType(x.scalar_type()) ? at::where(x.isnan(), 0, x) : x;
        return at::sum(numbers, given(x, dims), keep, dtype);
      });
  entries.add(
      "aten::count_nonzero.dim_IntList",
      +[](const Tensor& x, const std::vector<std::int64_t>& dims) {
        return x.ne(0).sum(dims.empty() ? all_dims(x) : dims);
      });
  entries.add(
      "aten::count_nonzero", +[](const Tensor& x, std::optional<std::int64_t> dim) {
        return x.ne(0).sum(dim ? std::vector<std::int64_t>{*dim} : all_dims(x));
      });
  entries.add(
      "aten::all", +[](const Tensor& x) {
        const Tensor none = x.logical_not().any().logical_not();
        return x.scalar_type() == at::kByte ? none.to(at::kByte) : none;
      });
  entries.add(
      "aten::all.dim", +[](const Tensor& x, std::int64_t dim, bool keep) {
        const Tensor none = x.logical_not().any(dim, keep).logical_not();
        return x.scalar_type() == at::kByte ? none.to(at::kByte) : none;
      });
  entries.add(
      "aten::all.dims", +[](const Tensor& x, const Dims& dims, bool keep) {
        const Tensor none =
            at::any(x.logical_not(),
                    dims ? at::OptionalIntArrayRef(*dims) : at::OptionalIntArrayRef(), keep)
                .logical_not();
        return x.scalar_type() == at::kByte ? none.to(at::kByte) : none;
      });
  entries.add(
      "aten::aminmax", +[](const Tensor& x, std::optional<std::int64_t> dim, bool keep) {
        const std::vector<std::int64_t> over = dim ? std::vector<std::int64_t>{*dim} : all_dims(x);
        return std::tuple(x.amin(over, keep), x.amax(over, keep));
      });
  entries.add_wide(
      "aten::logsumexp", +[](const Tensor& x, const std::vector<std::int64_t>& dims, bool keep) {
        return log_sum_exp(x, dims, keep);
      });
  entries.add(
      "aten::std.correction",
      +[](const Tensor& x, const Dims& dims, const std::optional<Scalar>& correction, bool keep) {
        return var_of(x, dims, correction, keep).sqrt();
      });
  entries.add(
      "aten::std_mean.correction",
      +[](const Tensor& x, const Dims& dims, const std::optional<Scalar>& correction, bool keep) {
        return std::tuple(var_of(x, dims, correction, keep).sqrt(), x.mean(given(x, dims), keep));
      });
  entries.add(
      "aten::var_mean.correction",
      +[](const Tensor& x, const Dims& dims, const std::optional<Scalar>& correction, bool keep) {
        return std::tuple(var_of(x, dims, correction, keep), x.mean(given(x, dims), keep));
      });
}

void add_norms_of_vectors(Entries& entries) {
  entries.add_wide(
      "aten::linalg_vector_norm",
      +[](const Tensor& x, const Scalar& order, const Dims& dims, bool keep,
          std::optional<at::ScalarType> dtype) { return norm_of(x, order, dims, keep, dtype); });
  entries.add_wide(
      "aten::norm.Scalar", +[](const Tensor& x, const Scalar& order) {
        return norm_of(x, order, std::nullopt, false, std::nullopt);
      });
  entries.add_wide(
      "aten::norm.ScalarOpt_dim", +[](const Tensor& x, const std::optional<Scalar>& order,
                                      const std::vector<std::int64_t>& dims, bool keep) {
        return norm_of(x, order.value_or(2), dims, keep, std::nullopt);
      });
  entries.add_wide(
      "aten::norm.ScalarOpt_dtype",
      +[](const Tensor& x, const std::optional<Scalar>& order, at::ScalarType dtype) {
        return norm_of(x, order.value_or(2), std::nullopt, false, dtype);
      });
  entries.add_wide(
      "aten::norm.ScalarOpt_dim_dtype",
      +[](const Tensor& x, const std::optional<Scalar>& order,
          const std::vector<std::int64_t>& dims, bool keep,
          at::ScalarType dtype) { return norm_of(x, order.value_or(2), dims, keep, dtype); });
  entries.add_wide(
      "aten::renorm",
      +[](const Tensor& x, const Scalar& order, std::int64_t dim, const Scalar& most) {
        std::vector<std::int64_t> others;
        for (std::int64_t i = 0; i < x.dim(); ++i)
          if (i != (dim < 0 ? dim + x.dim() : dim)) others.push_back(i);
        const Tensor size = vector_norm(x, order, others, true);
        constexpr double kAway = 1e-7;
        return x * at::where(size > most, at::reciprocal(size + kAway) * most, 1);
      });
  entries.add(
      "aten::_euclidean_dist", +[](const Tensor& a, const Tensor& b) {
        const Tensor a2 = (a * a).sum(-1, true), b2 = (b * b).sum(-1, true);
        const Tensor left = at::cat({a * -2, a2, at::ones_like(a2)}, -1);
        const Tensor right = at::cat({b, at::ones_like(b2), b2}, -1);
        return left.matmul(right.mT()).clamp_min(0).sqrt();
      });
}

// A factor in the dtype of a tensor.
Scalar in_dtype(const Scalar& factor, const Tensor& x) {
  if (x.scalar_type() == at::kBool) return static_cast<std::int64_t>(factor.toBool());
  return at::isIntegralType(x.scalar_type(), false) ? Scalar(factor.toLong()) : factor;
}

// alpha * product + beta * x in the dtype of the product; what beta = 0 takes away is not looked
// at.
Tensor scaled_sum(const Tensor& x, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  const Scalar by = in_dtype(alpha, product), of_x = in_dtype(beta, product);
  const Tensor scaled = by.equal(1) ? product : product * by;
  const Tensor sum = of_x.equal(0) ? scaled : (of_x.equal(1) ? x : x * of_x) + scaled;
  return sum.to(product.scalar_type());
}

Tensor product_sum(const Tensor& a, const Tensor& b, std::int64_t dim) {
  const Tensor product = a * b;
  return product.sum(dim, false, product.scalar_type());
}

void add_products(Entries& entries) {
  entries.add_wide(
      "aten::mv", +[](const Tensor& m, const Tensor& v) { return product_sum(m, v, 1); });
  entries.add_wide(
      "aten::dot", +[](const Tensor& a, const Tensor& b) { return product_sum(a, b, 0); });
  entries.add_wide(
      "aten::vdot", +[](const Tensor& a, const Tensor& b) { return product_sum(a.conj(), b, 0); });
  entries.add("aten::trace", +[](const Tensor& m) { return m.diagonal().sum(); });
  entries.add_wide(
      "aten::addr",
      +[](const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,
          const Scalar& alpha) { return scaled_sum(x, a.unsqueeze(1) * b, beta, alpha); });
  entries.add_wide(
      "aten::addmv",
      +[](const Tensor& x, const Tensor& m, const Tensor& v, const Scalar& beta,
          const Scalar& alpha) { return scaled_sum(x, product_sum(m, v, 1), beta, alpha); });
  entries.add_wide(
      "aten::baddbmm", +[](const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,
                           const Scalar& alpha) { return scaled_sum(x, a.bmm(b), beta, alpha); });
  entries.add(
      "aten::linalg_cross", +[](const Tensor& a, const Tensor& b, std::int64_t dim) {
        const auto turned = [&](const Tensor& x, std::int64_t by) {
          const auto wrap = [](std::int64_t i) { return (i % 3 + 3) % 3; };
          return at::stack(
              {x.select(dim, wrap(by)), x.select(dim, wrap(by + 1)), x.select(dim, wrap(by + 2))},
              dim);
        };
        return turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1);
      });
}

// Attention by products, in float32 at least: the result, and the logarithm of each row's sum.
std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                     double, bool is_causal, const Tensor& mask,
                                     std::optional<double> scale) {
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = at::matmul(wide(query), wide(key).transpose(-2, -1)) * factor;
  if (is_causal) {
    const Tensor seen = at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool));
    scores = at::where(seen.tril(), scores, -kInfinity);
  }
  if (mask.defined())
    scores =
        mask.scalar_type() == at::kBool ? at::where(mask, scores, -kInfinity) : scores + wide(mask);
  // Rows of which nothing is seen are zeros.
  const Tensor high = scores.amax(-1, true);
  const Tensor part = (scores - at::where(high == -kInfinity, 0, high)).exp();
  const Tensor sum = part.sum(-1, true);
  const Tensor result = at::matmul(part, wide(value)) / at::where(sum == 0, 1, sum);
  return {result.to(query.scalar_type()), log_sum_exp(scores, {-1}, false)};
}

void add_softmax(Entries& entries) {
  entries.add("aten::_scaled_dot_product_flash_attention_for_cpu", &attention);
  entries.add_wide(
      "aten::_softmax_backward_data",
      +[](const Tensor& g, const Tensor& y, std::int64_t dim, at::ScalarType dtype) {
        const Tensor part = g * y;
        return (part - y * part.sum(dim, true)).to(dtype);
      });
  entries.add_wide(
      "aten::_log_softmax_backward_data",
      +[](const Tensor& g, const Tensor& y, std::int64_t dim, at::ScalarType dtype) {
        return (g - y.exp() * g.sum(dim, true)).to(dtype);
      });
  entries.add(
      "aten::_safe_softmax",
      +[](const Tensor& x, std::int64_t dim, std::optional<at::ScalarType> dtype) {
        const Tensor empty = (x == -kInfinity).all(dim, true);
        return at::where(empty, 0, at::softmax(x, dim, dtype));
      });
}

}  // namespace

void add_reductions(Entries& entries) {
  add_sums(entries);
  add_norms_of_vectors(entries);
  add_products(entries);
  add_softmax(entries);
}

}  // namespace fx::core
