// Activations and their gradients. x: the input, y: the result, g: the gradient of the result.
#include <cmath>
#include <numbers>

#include "fx/passes/core_decompositions.h"

namespace fx::core {
namespace {

using at::Scalar;
using at::Tensor;

// relu6(x + 3)
Tensor hard(const Tensor& x) { return (x + 3).clamp(0, 6); }

Tensor soft_relu(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  const Tensor scaled = x * beta;
  return at::where(scaled > threshold, x, scaled.exp().log1p() / beta);
}

Tensor leaky_slope(const Tensor& g, const Tensor& x, const Scalar& slope) {
  return at::where(x > 0, g, g * slope);
}

void add_smooth(Entries& entries) {
  entries.add_wide("aten::silu", +[](const Tensor& x) { return x * x.sigmoid(); });
  entries.add_wide(
      "aten::silu_backward", +[](const Tensor& g, const Tensor& x) {
        const Tensor s = x.sigmoid();
        return g * (s * (1 + x * (1 - s)));
      });
  entries.add_wide("aten::mish", +[](const Tensor& x) { return x * soft_relu(x, 1, 20).tanh(); });
  entries.add_wide(
      "aten::mish_backward", +[](const Tensor& g, const Tensor& x) {
        const Tensor t = soft_relu(x, 1, 20).tanh();
        return g * (t + x * x.sigmoid() * (1 - t * t));
      });
  entries.add_wide(
      "aten::sigmoid_backward",
      +[](const Tensor& g, const Tensor& y) { return g * ((1 - y) * y).conj(); });
  entries.add_wide(
      "aten::tanh_backward",
      +[](const Tensor& g, const Tensor& y) { return g * (1 - y * y).conj(); });
  entries.add_wide(
      "aten::softplus", +[](const Tensor& x, const Scalar& beta, const Scalar& threshold) {
        return soft_relu(x, beta, threshold);
      });
  entries.add_wide(
      "aten::softplus_backward",
      +[](const Tensor& g, const Tensor& x, const Scalar& beta, const Scalar& threshold) {
        const Tensor scaled = x * beta;
        const Tensor e = scaled.exp();
        return at::where(scaled > threshold, g, g * e / (e + 1));
      });
  entries.add_wide(
      "aten::gelu_backward", +[](const Tensor& g, const Tensor& x, const std::string& approximate) {
        if (approximate != "tanh") {
          const Tensor cdf = ((x * std::numbers::sqrt2 / 2).erf() + 1) * 0.5;
          const Tensor pdf =
              (x * x * -0.5).exp() * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
          return g * (cdf + x * pdf);
        }
        constexpr double kCube = 0.044715;
        const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
        const Tensor square = x * x;
        const Tensor t = ((x + square * x * kCube) * beta).tanh();
        const Tensor slope = (1 - t * t) * ((square * (3 * kCube) + 1) * beta);
        return g * ((t + 1) * 0.5 + x * 0.5 * slope);
      });
  entries.add_wide(
      "aten::log_sigmoid_forward", +[](const Tensor& x) {
        const Tensor e = x.abs().neg().exp();
        return std::tuple(x.clamp_max(0) - e.log1p(), e);
      });
  entries.add_wide(
      "aten::log_sigmoid_backward", +[](const Tensor& g, const Tensor& x, const Tensor& buffer) {
        const Tensor e = buffer.numel() > 0 ? buffer : x.abs().neg().exp();
        const Tensor part = e / (e + 1);
        return g * at::where(x < 0, 1 - part, part);
      });
  entries.add_wide(
      "aten::logit", +[](const Tensor& given, std::optional<double> eps) {
        const Tensor x = floating(given);
        // From 0.5 on, the lower bound is above the upper one and counts first.
        const Tensor p = eps ? at::where(x < *eps, *eps, x.clamp_max(1 - *eps)) : x;
        return (p / (1 - p)).log();
      });
  entries.add_wide(
      "aten::logit_backward", +[](const Tensor& g, const Tensor& x, std::optional<double> eps) {
        const double low = eps ? *eps : 0, high = 1 - low;
        const Tensor inside = at::logical_and(x >= low, x <= high);
        return at::where(inside, g / (x * (1 - x)),
                         eps ? at::scalar_tensor(0.0, x.options())
                             : at::scalar_tensor(std::nan(""), x.options()));
      });
}

void add_piecewise(Entries& entries) {
  entries.add_wide("aten::hardsigmoid", +[](const Tensor& x) { return hard(x) / 6; });
  entries.add_wide(
      "aten::hardsigmoid_backward", +[](const Tensor& g, const Tensor& x) {
        // Eager's sixth is one of float32 in all dtypes.
        return at::where(at::logical_and(x > -3, x < 3), g * (1.0F / 6.0F), 0);
      });
  entries.add_wide("aten::hardswish", +[](const Tensor& x) { return x * hard(x) / 6; });
  entries.add_wide(
      "aten::hardswish_backward", +[](const Tensor& g, const Tensor& x) {
        return at::where(x <= -3, 0, at::where(x < 3, g * (x / 3 + 0.5), g));
      });
  entries.add_wide(
      "aten::hardtanh_backward",
      +[](const Tensor& g, const Tensor& x, const Scalar& low, const Scalar& high) {
        return at::where(at::logical_or(x <= low, x >= high), 0, g);
      });
  entries.add_wide(
      "aten::celu", +[](const Tensor& x, const Scalar& alpha) {
        return at::elu(x, alpha, 1, 1 / alpha.toDouble());
      });
  entries.add_wide(
      "aten::elu_backward", +[](const Tensor& g, const Scalar& alpha, const Scalar& scale,
                                const Scalar& input_scale, bool is_result, const Tensor& x) {
        const double negative = alpha.toDouble() * scale.toDouble(), inner = input_scale.toDouble();
        const Tensor slope =
            is_result ? (x + negative) * inner : (x * inner).exp() * (negative * inner);
        return at::where(x <= 0, g * slope, g * scale);
      });
  entries.add_wide(
      "aten::leaky_relu_backward", +[](const Tensor& g, const Tensor& x, const Scalar& slope,
                                       bool) { return leaky_slope(g, x, slope); });
  entries.add_wide(
      "aten::rrelu_with_noise_backward",
      +[](const Tensor& g, const Tensor& x, const Tensor& noise, const Scalar& lower,
          const Scalar& upper, bool training, bool) {
        const double slope = (lower.toDouble() + upper.toDouble()) / 2;
        return training && upper.toDouble() - lower.toDouble() > 1e-6 ? g * noise
                                                                      : leaky_slope(g, x, slope);
      });
  entries.add(
      "aten::threshold", +[](const Tensor& x, const Scalar& threshold, const Scalar& value) {
        return at::where(x <= threshold, value, x);
      });
  entries.add(
      "aten::threshold_backward", +[](const Tensor& g, const Tensor& x, const Scalar& threshold) {
        return at::where(x <= threshold, 0, g);
      });
  entries.add(
      "aten::hardshrink", +[](const Tensor& x, const Scalar& lambda) {
        return at::where(at::logical_and(x >= -lambda, x <= lambda), 0, x);
      });
  entries.add_wide(
      "aten::softshrink", +[](const Tensor& x, const Scalar& lambda) {
        // x * 0 keeps nan.
        return at::where(x > lambda, x - lambda, at::where(x < -lambda, x + lambda, x * 0));
      });
  entries.add(
      "aten::_prelu_kernel",
      +[](const Tensor& x, const Tensor& weight) { return at::where(x > 0, x, weight * x); });
  entries.add(
      "aten::_prelu_kernel_backward", +[](const Tensor& g, const Tensor& x, const Tensor& weight) {
        return std::tuple(at::where(x > 0, g, weight * g), at::where(x > 0, 0, x * g));
      });
  entries.add_wide(
      "aten::glu", +[](const Tensor& x, std::int64_t dim) {
        const auto halves = x.chunk(2, dim);
        return halves[0] * halves[1].sigmoid();
      });
  entries.add_wide(
      "aten::glu_backward", +[](const Tensor& g, const Tensor& x, std::int64_t dim) {
        const auto halves = x.chunk(2, dim);
        const Tensor s = halves[1].sigmoid();
        return at::cat({g * s, g * halves[0] * s * (1 - s)}, dim);
      });
}

}  // namespace

void add_activations(Entries& entries) {
  add_smooth(entries);
  add_piecewise(entries);
}

}  // namespace fx::core
