// Calls of modules of torch::nn and of nested graphs, and layers in functional form.

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "tests/random/maker.h"

namespace fx::fuzz {
namespace {

using at::Tensor;
using torch::nn::Linear;

bool is_wide_float(const Item& item) {
  return item.dtype() == at::kFloat || item.dtype() == at::kDouble;
}

// Bounded, so that another order of a layer's sums does not overflow where this one does not.
Item bounded(Maker& m, const Item& x) {
  return m.call({"aten::tanh", "torch.tanh", ".tanh"}, {x}, [t = x.tensor] { return t.tanh(); });
}

// LibTorch's module does not compute in the order of the functional form that a pass may turn it
// into: it multiplies matrices, then adds the bias.
bool linear(Maker& m) {
  const auto picked = m.pick([&](const Item& item) {
    return is_wide_float(item) && item.dim() >= 1 && item.size(-1) > 0 && item.size(-1) <= 16 &&
           m.fits(5 * item.tensor.numel());
  });
  if (!picked) return false;
  const Item x = bounded(m, *picked);
  const auto [path, layer] = m.add_module<torch::nn::LinearImpl>(
      torch::nn::LinearOptions(x.size(-1), m.choices.between(1, 5)).bias(m.choices.chance(70)),
      x.dtype());
  m.mark_inexact(
      m.call_module(path, x, [layer = layer, t = x.tensor] { return layer->forward(t); }));
  return true;
}

bool functional_linear(Maker& m) {
  const auto x = m.pick([&](const Item& item) {
    return is_wide_float(item) && item.dim() >= 1 && item.size(-1) > 0 && item.size(-1) <= 16 &&
           m.fits(3 * item.tensor.numel());
  });
  if (!x) return false;
  const Tensor weight = m.weight(x->dtype(), {3, x->size(-1)});
  const Item w = m.get_attr(m.add_attribute(Maker::Kind::kParameter, weight), weight);
  m.call({"aten::linear", "torch.nn.functional.linear"}, {*x, w},
         [t = x->tensor, weight] { return at::linear(t, weight); });
  return true;
}

bool activation(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_float(); }, /*inexact=*/true);
  if (!x) return false;
  const Tensor t = x->tensor;
  switch (m.choices.below(3)) {
    case 0: {
      const auto [path, relu] = m.add_module<torch::nn::ReLUImpl>(
          torch::nn::ReLUOptions(m.writing() && m.writable(*x) && m.choices.chance(40)),
          x->dtype());
      if (relu->options.inplace()) m.note_write();
      m.call_module(path, *x, [relu = relu, t] { return relu->forward(t); });
      break;
    }
    case 1: {
      auto tanh = std::make_shared<torch::nn::TanhImpl>();
      m.call_module(m.add_made_module(tanh, x->dtype()), *x,
                    [tanh, t] { return tanh->forward(t); });
      break;
    }
    default: {
      if (m.is_inexact(*x->node) || x->dim() < 1) return false;
      const auto [path, softmax] =
          m.add_module<torch::nn::SoftmaxImpl>(torch::nn::SoftmaxOptions(-1), x->dtype());
      m.call_module(path, *x, [softmax = softmax, t] { return softmax->forward(t); });
    }
  }
  return true;
}

bool dropout(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_float(); }, /*inexact=*/true);
  if (!x) return false;
  const auto [path, layer] =
      m.add_module<torch::nn::DropoutImpl>(torch::nn::DropoutOptions(0.5), x->dtype());
  if (m.drawing() && m.choices.chance(40) && !m.is_inexact(*x->node)) {
    layer->train();
    m.note_active_dropout();
  }
  m.call_module(path, *x, [layer = layer, t = x->tensor] { return layer->forward(t); });
  return true;
}

bool layer_norm(Maker& m) {
  const auto x = m.pick([](const Item& item) {
    return is_wide_float(item) && item.dim() >= 1 && item.tensor.numel() > 0;
  });
  if (!x) return false;
  const auto [path, layer] = m.add_module<torch::nn::LayerNormImpl>(
      torch::nn::LayerNormOptions({x->size(-1)}), x->dtype());
  m.call_module(path, *x, [layer = layer, t = x->tensor] { return layer->forward(t); });
  return true;
}

bool embedding(Maker& m) {
  const auto x =
      m.pick([&](const Item& item) { return item.is_int() && m.fits(3 * item.tensor.numel()); });
  if (!x) return false;
  const Item wide = m.call({".to", "aten::to.dtype"}, {*x, at::kLong},
                           [t = x->tensor] { return t.to(at::kLong); });
  const Item index = m.call({"aten::bitwise_and.Scalar", "operator.and_"}, {wide, 3},
                            [t = wide.tensor] { return at::bitwise_and(t, 3); });
  m.protect(index);
  const auto [path, layer] =
      m.add_module<torch::nn::EmbeddingImpl>(torch::nn::EmbeddingOptions(4, 3), at::kFloat);
  m.call_module(path, index, [layer = layer, t = index.tensor] { return layer->forward(t); });
  return true;
}

bool sequential(Maker& m) {
  const auto x = m.pick([&](const Item& item) {
    return item.dtype() == at::kFloat && item.dim() >= 1 && item.size(-1) > 0 &&
           item.size(-1) <= 16 && m.fits(4 * item.tensor.numel());
  });
  if (!x) return false;
  std::shared_ptr<torch::nn::SequentialImpl> both;
  {
    const RngGuard guard;
    both = std::make_shared<torch::nn::SequentialImpl>(Linear(x->size(-1), 4), torch::nn::ReLU());
  }
  m.call_module(m.add_made_module(both, at::kFloat), *x,
                [both, t = x->tensor] { return both->forward(t); });
  return true;
}

// --- a layer and a normalisation that fuse_conv_bn merges ----------------------------------------

// `x` with dimensions of size 1 in front until it has `rank` of them.
Item of_rank(Maker& m, Item x, std::int64_t rank) {
  while (x.dim() < rank)
    x = m.call({"aten::unsqueeze", ".unsqueeze"}, {x, 0},
               [t = x.tensor] { return t.unsqueeze(0); });
  return x;
}

template <typename Conv, typename Norm, typename ConvOptions>
void conv_and_norm(Maker& m, const Item& x) {
  const std::int64_t in = x.size(1), out = m.choices.between(1, 4);
  std::int64_t kernel = 3;
  for (std::int64_t d = 2; d < x.dim(); ++d) kernel = std::min(kernel, x.size(d));
  const auto [conv_path, conv] =
      m.add_module<Conv>(ConvOptions(in, out, kernel).bias(m.choices.chance(50)), x.dtype());
  const Item y =
      m.call_module(conv_path, x, [conv = conv, t = x.tensor] { return conv->forward(t); });
  const auto [norm_path, norm] = m.add_module<Norm>(torch::nn::BatchNormOptions(out), x.dtype());
  const Item z =
      m.call_module(norm_path, y, [norm = norm, t = y.tensor] { return norm->forward(t); });
  m.mark_inexact(z);
}

std::optional<Item> pick_image(Maker& m, std::int64_t rank) {
  return m.pick([&](const Item& item) {
    return is_wide_float(item) && item.dim() <= rank && item.tensor.numel() > 0 &&
           m.fits(4 * item.tensor.numel()) &&
           (item.dim() < rank - 1 || item.size(1 + item.dim() - rank) <= 9);
  });
}

bool conv1d_and_norm(Maker& m) {
  const auto x = pick_image(m, 3);
  if (!x) return false;
  conv_and_norm<torch::nn::Conv1dImpl, torch::nn::BatchNorm1dImpl, torch::nn::Conv1dOptions>(
      m, of_rank(m, bounded(m, *x), 3));
  return true;
}

bool conv2d_and_norm(Maker& m) {
  const auto x = pick_image(m, 4);
  if (!x) return false;
  conv_and_norm<torch::nn::Conv2dImpl, torch::nn::BatchNorm2dImpl, torch::nn::Conv2dOptions>(
      m, of_rank(m, bounded(m, *x), 4));
  return true;
}

// In functional form, with attributes for the weights.
bool functional_conv_and_norm(Maker& m) {
  const auto picked = pick_image(m, 3);
  if (!picked) return false;
  const Item x = of_rank(m, bounded(m, *picked), 3);
  const std::int64_t out = m.choices.between(1, 3);
  auto attribute = [&](const Tensor& tensor) {
    return m.get_attr(m.add_attribute(Maker::Kind::kBuffer, tensor), tensor);
  };
  const Item weight = attribute(m.weight(x.dtype(), {out, x.size(1), 1}));
  const Item conv = m.call({"aten::conv1d", "torch.conv1d"}, {x, weight},
                           [t = x.tensor, w = weight.tensor] { return at::conv1d(t, w); });
  const Item mean = attribute(m.values(x.dtype(), {out}, false));
  const Item variance = attribute(m.values(x.dtype(), {out}, false).abs().add_(0.5));
  const Item norm = m.call(
      {"aten::batch_norm"}, {conv, Argument(), Argument(), mean, variance, false, 0.1, 1e-5, false},
      [t = conv.tensor, mean = mean.tensor, variance = variance.tensor] {
        return at::batch_norm(t, {}, {}, mean, variance, false, 0.1, 1e-5, false);
      });
  m.mark_inexact(norm);
  return true;
}

bool linear_and_norm(Maker& m) {
  const auto picked = m.pick([&](const Item& item) {
    return is_wide_float(item) && item.dim() <= 2 && item.tensor.numel() > 0 &&
           (item.dim() == 0 || item.size(-1) <= 9) && m.fits(4 * item.tensor.numel());
  });
  if (!picked) return false;
  // Flattened, so that the pass knows the rank.
  Item x = of_rank(m, bounded(m, *picked), 2);
  x = m.call({"aten::flatten.using_ints", "torch.flatten"}, {x, 1},
             [t = x.tensor] { return t.flatten(1); });
  const std::int64_t out = m.choices.between(1, 4);
  const auto [linear_path, linear] =
      m.add_module<torch::nn::LinearImpl>(torch::nn::LinearOptions(x.size(1), out), x.dtype());
  const Item y =
      m.call_module(linear_path, x, [linear = linear, t = x.tensor] { return linear->forward(t); });
  const auto [norm_path, norm] =
      m.add_module<torch::nn::BatchNorm1dImpl>(torch::nn::BatchNormOptions(out), x.dtype());
  const Item z =
      m.call_module(norm_path, y, [norm = norm, t = y.tensor] { return norm->forward(t); });
  m.mark_inexact(z);
  return true;
}

bool nested(Maker& m) {
  std::vector<Item> inputs;
  for (std::size_t i = 1 + m.choices.below(2); i > 0; --i)
    if (const auto x = m.pick()) inputs.push_back(*x);
  return !inputs.empty() && m.call_nested(inputs);
}

}  // namespace

std::span<const Rule> module_rules() {
  static constexpr Rule kRules[] = {
      {"linear_module", 4, linear},
      {"functional_linear", 2, functional_linear},
      {"activation_module", 3, activation},
      {"dropout_module", 2, dropout},
      {"layer_norm_module", 1, layer_norm},
      {"embedding_module", 1, embedding},
      {"sequential_module", 1, sequential},
      {"conv1d_and_norm", 1, conv1d_and_norm},
      {"conv2d_and_norm", 1, conv2d_and_norm},
      {"functional_conv_and_norm", 1, functional_conv_and_norm},
      {"linear_and_norm", 1, linear_and_norm},
      {"nested", 2, nested},
  };
  return kRules;
}

}  // namespace fx::fuzz
