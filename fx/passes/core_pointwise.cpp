// Elementwise operators.
#include <cmath>
#include <limits>
#include <numbers>

#include "fx/passes/core_decompositions.h"

namespace fx::core {
namespace {

using at::Scalar;
using at::Tensor;

// x log y, 0 where x is, nan where y is.
Tensor x_log_y(const Tensor& x, const Tensor& y, const Tensor& log) {
  return at::where(y.isnan(), std::numeric_limits<double>::quiet_NaN(),
                   at::where(x == 0, 0, x * log));
}
Tensor x_times_log(const Tensor& x, const Tensor& y) {
  const Tensor wide = floating(y);
  return x_log_y(floating(x), wide, wide.log());
}
Tensor x_times_log1p(const Tensor& x, const Tensor& y) {
  const Tensor wide = floating(y);
  return x_log_y(floating(x), wide, wide.log1p());
}
Tensor number(const Scalar& value, const Tensor& like) {
  return at::scalar_tensor(value, floating(like).options());
}

// log(e^a + e^b) to a base, about the larger one; infinities of one sign stay.
Tensor log_add(const Tensor& a, const Tensor& b, bool base_two) {
  const Tensor a_first = (a.is_complex() ? at::real(a) : a) >= (b.is_complex() ? at::real(b) : b);
  const Tensor high = at::where(a_first, a, b), low = at::where(a_first, b, a);
  const Tensor sum = a + b, apart = low - high;
  const Tensor rest = base_two ? apart.exp2().log1p() / std::numbers::ln2 : apart.exp().log1p();
  const Tensor infinite = at::logical_and(a == b, a.isinf());
  return at::where(infinite, a, at::where(sum.isnan(), sum, high + rest));
}

Tensor between(const Tensor& start, const Tensor& end, const Tensor& weight) {
  // From the nearer end, so that both ends are met.
  const Tensor near_start = weight.abs() < 0.5;
  return at::where(near_start, start + weight * (end - start), end - (end - start) * (1 - weight));
}

Tensor finite(const Tensor& x, std::optional<double> nan, std::optional<double> high,
              std::optional<double> low) {
  if (at::isIntegralType(x.scalar_type(), true)) return x.clone();
  if (x.is_complex())
    return at::complex(finite(at::real(x), nan, high, low), finite(at::imag(x), nan, high, low));
  double most = 0;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "nan_to_num", [&] {
    most = static_cast<double>(std::numeric_limits<scalar_t>::max());
  });
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor number = at::where(x.isnan(), nan.value_or(0), x);
  return at::where(number == infinity, high.value_or(most),
                   at::where(number == -infinity, low.value_or(-most), number));
}

// Of length 1, or 0. LibTorch divides no complex numbers of float16.
Tensor direction(const Tensor& x) {
  if (!x.is_complex()) return x.sign();
  if (x.scalar_type() == at::kComplexHalf)
    return direction(x.to(at::kComplexFloat)).to(x.scalar_type());
  return at::where(x.abs() == 0, 0, x / x.abs());
}

void add_arithmetic(Entries& entries) {
  entries.add_wide(
      "aten::addcdiv", +[](const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
        return x + a / b * value;
      });
  entries.add_wide(
      "aten::addcmul", +[](const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
        return x + a * b * value;
      });
  entries.add(
      "aten::rsub.Tensor", +[](const Tensor& x, const Tensor& other, const Scalar& alpha) {
        return at::sub(other, x, alpha);
      });
  entries.add(
      "aten::rsub.Scalar", +[](const Tensor& x, const Scalar& other, const Scalar& alpha) {
        return alpha.equal(1) ? other - x : other - x * alpha;
      });
  entries.add(
      "aten::floor_divide",
      +[](const Tensor& x, const Tensor& y) { return at::div(x, y, "floor"); });
  entries.add(
      "aten::floor_divide.Scalar",
      +[](const Tensor& x, const Scalar& y) { return at::div(x, y, "floor"); });
  entries.add(
      "aten::clamp_max",
      +[](const Tensor& x, const Scalar& high) { return at::clamp(x, std::nullopt, high); });
  entries.add(
      "aten::clamp_min",
      +[](const Tensor& x, const Scalar& low) { return at::clamp(x, low, std::nullopt); });
  entries.add(
      "aten::clamp_max.Tensor",
      +[](const Tensor& x, const Tensor& high) { return at::minimum(x, high); });
  entries.add(
      "aten::clamp_min.Tensor",
      +[](const Tensor& x, const Tensor& low) { return at::maximum(x, low); });
  entries.add_wide(
      "aten::lerp.Scalar", +[](const Tensor& start, const Tensor& end, const Scalar& weight) {
        const double w = weight.toDouble();
        return std::abs(w) < 0.5 ? start + (end - start) * w : end - (end - start) * (1 - w);
      });
  entries.add_wide(
      "aten::lerp.Tensor", +[](const Tensor& start, const Tensor& end, const Tensor& weight) {
        return between(start, end, weight);
      });
  entries.add_wide(
      "aten::deg2rad", +[](const Tensor& x) { return floating(x) * (std::numbers::pi / 180); });
  entries.add_wide(
      "aten::rad2deg", +[](const Tensor& x) { return floating(x) * (180 / std::numbers::pi); });
  entries.add("aten::frac", +[](const Tensor& x) { return x - x.trunc(); });
  entries.add("aten::sgn", &direction);
  entries.add(
      "aten::heaviside", +[](const Tensor& x, const Tensor& at_zero) {
        return at::where(
            x == 0, at_zero,
            at::where(at::logical_or(x < 0, x.isnan()), at::zeros_like(x), at::ones_like(x)));
      });
  entries.add(
      "aten::isneginf", +[](const Tensor& x) {
        return at::isFloatingType(x.scalar_type()) ? x == -std::numeric_limits<double>::infinity()
                                                   : at::zeros_like(x, at::kBool);
      });
  entries.add(
      "aten::isposinf", +[](const Tensor& x) {
        return at::isFloatingType(x.scalar_type()) ? x == std::numeric_limits<double>::infinity()
                                                   : at::zeros_like(x, at::kBool);
      });
  entries.add("aten::nan_to_num", &finite);
}

void add_logarithms(Entries& entries) {
  entries.add_wide(
      "aten::logaddexp", +[](const Tensor& a, const Tensor& b) { return log_add(a, b, false); });
  entries.add_wide(
      "aten::logaddexp2", +[](const Tensor& a, const Tensor& b) { return log_add(a, b, true); });
  entries.add_wide(
      "aten::xlogy.Tensor", +[](const Tensor& x, const Tensor& y) { return x_times_log(x, y); });
  entries.add_wide(
      "aten::xlogy.Scalar_Self",
      +[](const Scalar& x, const Tensor& y) { return x_times_log(number(x, y), y); });
  entries.add_wide(
      "aten::xlogy.Scalar_Other",
      +[](const Tensor& x, const Scalar& y) { return x_times_log(x, number(y, x)); });
  entries.add_wide(
      "aten::special_xlog1py",
      +[](const Tensor& x, const Tensor& y) { return x_times_log1p(x, y); });
  entries.add_wide(
      "aten::special_xlog1py.self_scalar",
      +[](const Scalar& x, const Tensor& y) { return x_times_log1p(number(x, y), y); });
  entries.add_wide(
      "aten::special_xlog1py.other_scalar",
      +[](const Tensor& x, const Scalar& y) { return x_times_log1p(x, number(y, x)); });
  entries.add_wide(
      "aten::special_entr", +[](const Tensor& p) {
        const Tensor x = floating(p);
        return at::where(x.isnan(), x,
                         at::where(x > 0, -x * x.log(),
                                   at::where(x == 0, 0, -std::numeric_limits<double>::infinity())));
      });
  entries.add_wide(
      "aten::special_log_ndtr", +[](const Tensor& given) {
        const Tensor x = floating(given), t = x / std::numbers::sqrt2;
        return at::where(x < -1, (at::special_erfcx(-t) / 2).log() - t * t,
                         (-at::erfc(t) / 2).log1p());
      });
  entries.add_wide(
      "aten::mvlgamma", +[](const Tensor& given, std::int64_t order) {
        const Tensor x = floating(given);
        const double p = static_cast<double>(order);
        const Tensor halves = at::arange(0, -p / 2, -0.5, x.options());
        return at::lgamma(x.unsqueeze(-1) + halves).sum(-1) +
               p * (p - 1) / 4 * std::log(std::numbers::pi);
      });
  entries.add_wide(
      "aten::sinc", +[](const Tensor& p) {
        const Tensor x = floating(p) * std::numbers::pi;
        return at::where(x == 0, 1, x.sin() / x);
      });
}

}  // namespace

void add_pointwise(Entries& entries) {
  add_arithmetic(entries);
  add_logarithms(entries);
}

}  // namespace fx::core
