// Losses and their gradients. x: the input, g: the gradient of the loss.
#include <ATen/core/Reduction.h>

#include "fx/passes/core_decompositions.h"

namespace fx::core {
namespace {

using at::Scalar;
using at::Tensor;

Tensor reduced(const Tensor& loss, std::int64_t reduction) {
  if (reduction == at::Reduction::Mean) return loss.mean();
  return reduction == at::Reduction::Sum ? loss.sum() : loss;
}

// What a gradient of the reduced loss is for one element.
Tensor spread(const Tensor& g, const Tensor& x, std::int64_t reduction) {
  return reduction == at::Reduction::Mean ? g / static_cast<double>(x.numel()) : g;
}

Tensor weighted(const Tensor& loss, const Tensor& weight) {
  return weight.defined() ? loss * weight : loss;
}

Tensor huber(const Tensor& x, const Tensor& target, double delta) {
  const Tensor size = (x - target).abs();
  return at::where(size <= delta, size * size * 0.5, (size - 0.5 * delta) * delta);
}

void add_regression(Entries& entries) {
  entries.add_wide(
      "aten::mse_loss", +[](const Tensor& x, const Tensor& target, std::int64_t reduction) {
        const Tensor apart = x - target;
        return reduced(apart * apart, reduction);
      });
  entries.add_wide(
      "aten::mse_loss_backward",
      +[](const Tensor& g, const Tensor& x, const Tensor& target, std::int64_t reduction) {
        return spread(g, x, reduction) * (x - target) * 2;
      });
  entries.add_wide(
      "aten::huber_loss",
      +[](const Tensor& x, const Tensor& target, std::int64_t reduction, double delta) {
        return reduced(huber(x, target, delta), reduction);
      });
  entries.add_wide(
      "aten::huber_loss_backward",
      +[](const Tensor& g, const Tensor& x, const Tensor& target, std::int64_t reduction,
          double delta) { return spread(g, x, reduction) * (x - target).clamp(-delta, delta); });
  entries.add_wide(
      "aten::smooth_l1_loss",
      +[](const Tensor& x, const Tensor& target, std::int64_t reduction, double beta) {
        return reduced(beta == 0 ? (x - target).abs() : huber(x, target, beta) / beta, reduction);
      });
  entries.add_wide(
      "aten::smooth_l1_loss_backward", +[](const Tensor& g, const Tensor& x, const Tensor& target,
                                           std::int64_t reduction, double beta) {
        const Tensor apart = x - target;
        const Tensor slope = beta == 0 ? apart.sign() : (apart / beta).clamp(-1, 1);
        return spread(g, x, reduction) * slope;
      });
}

void add_classification(Entries& entries) {
  entries.add_wide(
      "aten::binary_cross_entropy",
      +[](const Tensor& x, const Tensor& target, const Tensor& weight, std::int64_t reduction) {
        constexpr double kLeast = -100;
        const Tensor loss =
            (target - 1) * (-x).log1p().clamp_min(kLeast) - target * x.log().clamp_min(kLeast);
        return reduced(weighted(loss, weight), reduction);
      });
  entries.add_wide(
      "aten::binary_cross_entropy_backward",
      +[](const Tensor& g, const Tensor& x, const Tensor& target, const Tensor& weight,
          std::int64_t reduction) {
        constexpr double kLeast = 1e-12;
        const Tensor slope = (x - target) / ((1 - x) * x).clamp_min(kLeast);
        return spread(weighted(g * slope, weight), x, reduction);
      });
  entries.add_wide(
      "aten::binary_cross_entropy_with_logits",
      +[](const Tensor& x, const Tensor& target, const Tensor& weight, const Tensor& positive,
          std::int64_t reduction) {
        const Tensor log = at::log_sigmoid(x);
        const Tensor loss = positive.defined()
                                ? (1 - target) * x - ((positive - 1) * target + 1) * log
                                : (1 - target) * x - log;
        return reduced(weighted(loss, weight), reduction);
      });
  entries.add_wide(
      "aten::soft_margin_loss", +[](const Tensor& x, const Tensor& target, std::int64_t reduction) {
        return reduced((-x * target).exp().log1p(), reduction);
      });
  entries.add_wide(
      "aten::soft_margin_loss_backward",
      +[](const Tensor& g, const Tensor& x, const Tensor& target, std::int64_t reduction) {
        return spread(g * target * ((target * x).sigmoid() - 1), x, reduction);
      });
}

// The classes of a prediction are dimension 1, or the only one.
std::int64_t class_dim(const Tensor& x) { return x.dim() < 2 ? 0 : 1; }

Tensor along_classes(const Tensor& weight, const Tensor& x) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[static_cast<std::size_t>(class_dim(x))] = weight.size(0);
  return weight.view(shape);
}

std::tuple<Tensor, Tensor> class_loss(const Tensor& x, const Tensor& target, const Tensor& weight,
                                      std::int64_t reduction, std::int64_t ignored) {
  const std::int64_t dim = class_dim(x);
  const Tensor weights = weight.defined() ? along_classes(weight, x).expand(x.sizes()) : Tensor();
  const Tensor index = target.unsqueeze(dim), used = index != ignored;
  const Tensor safe = at::where(used, index, 0);
  const auto taken = [&](const Tensor& from) {
    return at::where(used, from.gather(dim, safe), 0).squeeze(dim);
  };
  const Tensor loss = taken(weights.defined() ? -x * weights : -x);
  if (reduction == at::Reduction::None) return {loss, at::zeros({}, x.options())};
  const Tensor total = weights.defined() ? taken(weights).sum() : used.sum().to(x.scalar_type());
  return {reduction == at::Reduction::Sum ? loss.sum() : loss.sum() / total, total};
}

Tensor class_loss_gradient(const Tensor& grad, const Tensor& x, const Tensor& target,
                           const Tensor& weight, std::int64_t reduction, std::int64_t ignored,
                           const Tensor& total) {
  const std::int64_t dim = class_dim(x);
  Tensor g = reduction == at::Reduction::Mean ? grad / total : grad;
  const Tensor index = target.unsqueeze(dim), used = index != ignored;
  const Tensor chosen = at::zeros_like(x).scatter(dim, at::where(used, index, 0), Scalar(-1.0));
  if (g.dim() > 0 && g.dim() < x.dim()) g = g.unsqueeze(dim);
  if (weight.defined()) g = g * along_classes(weight, x);
  return chosen * at::where(used, g, 0);
}

}  // namespace

void add_losses(Entries& entries) {
  add_regression(entries);
  add_classification(entries);
  entries.add("aten::nll_loss_forward", &class_loss);
  entries.add("aten::nll_loss2d_forward", &class_loss);
  entries.add("aten::nll_loss_backward", &class_loss_gradient);
  entries.add("aten::nll_loss2d_backward", &class_loss_gradient);
}

}  // namespace fx::core
