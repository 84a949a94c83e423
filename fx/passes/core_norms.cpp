// Gradients of normalisations, of dropout and of embeddings. g: the gradient of the result.
#include <numeric>

#include "fx/passes/core_decompositions.h"

namespace fx::core {
namespace {

using at::Tensor;
using Mask = c10::List<bool>;  // which gradients are wanted
using Gradients = std::tuple<Tensor, Tensor, Tensor>;

Tensor like(const Tensor& x, const Tensor& other) {
  return x.defined() ? x.to(other.scalar_type()) : x;
}

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(std::max<std::int64_t>(end - begin, 0)));
  std::iota(dims.begin(), dims.end(), begin);
  return dims;
}

Tensor sum_over(const Tensor& x, const std::vector<std::int64_t>& dims, bool keep = false) {
  return dims.empty() ? x : x.sum(dims, keep);
}

Gradients layer_norm_backward(const Tensor& grad, const Tensor& x,
                              const std::vector<std::int64_t>& shape, const Tensor& mean,
                              const Tensor& rstd, const Tensor& weight, const Tensor& bias,
                              const Mask& mask) {
  const std::int64_t outer = x.dim() - static_cast<std::int64_t>(shape.size());
  const auto inner_dims = range(outer, x.dim()), outer_dims = range(0, outer);
  const Tensor g = wide(grad), normal = (wide(x) - wide(mean)) * wide(rstd);
  Gradients out;
  if (mask.get(0)) {
    const Tensor scaled = weight.defined() ? g * wide(weight) : g;
    const double count = static_cast<double>(c10::multiply_integers(shape));
    const Tensor part = scaled.sum(inner_dims, true) / count;
    const Tensor slope = (scaled * normal).sum(inner_dims, true) / count;
    std::get<0>(out) = like((scaled - part - normal * slope) * wide(rstd), x);
  }
  if (mask.get(1) && weight.defined())
    std::get<1>(out) = like(sum_over(g * normal, outer_dims), weight);
  if (mask.get(2) && bias.defined()) std::get<2>(out) = like(sum_over(g, outer_dims), bias);
  return out;
}

Gradients group_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean,
                              const Tensor& rstd, const Tensor& weight, std::int64_t n,
                              std::int64_t channels, std::int64_t area, std::int64_t groups,
                              const Mask& mask) {
  const std::int64_t each = channels / groups;
  const std::vector<std::int64_t> shape{n, groups, each, area};
  const Tensor g = wide(grad).reshape(shape);
  const Tensor scale = wide(rstd).reshape({n, groups, 1, 1});
  const Tensor normal = (wide(x).reshape(shape) - wide(mean).reshape({n, groups, 1, 1})) * scale;
  Gradients out;
  if (mask.get(0)) {
    const Tensor scaled = weight.defined() ? g * wide(weight).reshape({1, groups, each, 1}) : g;
    const Tensor part = scaled.mean({2, 3}, true), slope = (scaled * normal).mean({2, 3}, true);
    std::get<0>(out) = like(((scaled - part - normal * slope) * scale).reshape(x.sizes()), x);
  }
  if (mask.get(1)) std::get<1>(out) = like((g * normal).sum({0, 3}).reshape({channels}), x);
  if (mask.get(2)) std::get<2>(out) = like(g.sum({0, 3}).reshape({channels}), x);
  return out;
}

Gradients batch_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight,
                              const Tensor& running_mean, const Tensor& running_var,
                              const Tensor& save_mean, const Tensor& save_invstd, bool train,
                              double eps, const Mask& mask) {
  std::vector<std::int64_t> others = range(0, x.dim());
  others.erase(others.begin() + 1);
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = x.size(1);
  const auto along = [&](const Tensor& values) { return wide(values).reshape(shape); };
  const Tensor mean = train ? along(save_mean) : along(running_mean);
  const Tensor scale = train ? along(save_invstd) : (along(running_var) + eps).rsqrt();
  const Tensor g = wide(grad), normal = (wide(x) - mean) * scale;
  Gradients out;
  if (mask.get(0)) {
    const Tensor scaled = weight.defined() ? g * along(weight) : g;
    Tensor centred = scaled;
    if (train)
      centred = scaled - scaled.mean(others, true) - normal * (scaled * normal).mean(others, true);
    std::get<0>(out) = like(centred * scale, x);
  }
  const Tensor& kind = weight.defined() ? weight : x;
  if (mask.get(1)) std::get<1>(out) = like((g * normal).sum(others), kind);
  if (mask.get(2)) std::get<2>(out) = like(g.sum(others), kind);
  return out;
}

Tensor embedding_backward(const Tensor& g, const Tensor& indices, std::int64_t rows,
                          std::int64_t padding, bool by_frequency) {
  Tensor part = wide(g);
  const Tensor index = indices.to(at::kLong);
  if (by_frequency) {
    const Tensor counts =
        at::zeros({rows}, index.options()).index_put({index}, at::ones_like(index), true);
    part = part / counts.index({index}).unsqueeze(-1);
  }
  part = at::where((index == padding).unsqueeze(-1), 0, part);
  const Tensor out = at::zeros({rows, part.size(-1)}, part.options());
  return like(out.index_put({index}, part, /*accumulate=*/true), g);
}

// Weights that are a direction times a length along a dimension, and the norms.
std::tuple<Tensor, Tensor> weight_norm(const Tensor& v, const Tensor& g, std::int64_t dim) {
  std::vector<std::int64_t> others = range(0, v.dim());
  others.erase(others.begin() + dim);
  const Tensor wide_v = wide(v), norm = (wide_v * wide_v).sum(others, true).sqrt();
  return {like(wide_v * (wide(g) / norm), v), norm.to(g.scalar_type())};
}

}  // namespace

void add_norms(Entries& entries) {
  entries.add("aten::_weight_norm_interface", &weight_norm);
  entries.add("aten::native_layer_norm_backward", &layer_norm_backward);
  entries.add("aten::native_group_norm_backward", &group_norm_backward);
  entries.add("aten::native_batch_norm_backward", &batch_norm_backward);
  entries.add("aten::embedding_dense_backward", &embedding_backward);
  entries.add(
      "aten::native_dropout_backward", +[](const Tensor& g, const Tensor& mask, double scale) {
        return g * mask.to(g.scalar_type()) * scale;
      });
}

}  // namespace fx::core
