// Whole nets as C++ users write them: torch::nn, own modules, in-place updates, views, loops.
#include "tests/models/residual.h"
#include "tests/models/zoo.h"

namespace fx::zoo {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using at::Tensor;

struct ResNet : nn::Module {
  Tensor forward(Tensor x) {
    x = F::max_pool2d(stem->forward(x), F::MaxPool2dFuncOptions(3).stride(2).padding(1));
    x = blocks->forward(x).mean({2, 3});
    return head(x);
  }
  nn::Sequential stem = register_module(
      "stem", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 8, 7).stride(2).padding(3)),
                             nn::BatchNorm2d(8), nn::ReLU(nn::ReLUOptions(true))));
  nn::Sequential blocks = register_module(
      "blocks", nn::Sequential(Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 16, 1)));
  nn::Linear head = register_module("head", nn::Linear(16, 5));
};

// Huang et al. 2016: features are concatenated.
struct DenseNet : nn::Module {
  DenseNet() {
    for (int i = 0; i < 3; ++i)
      layers->push_back(
          nn::Sequential(nn::BatchNorm2d(4 + 4 * i), nn::ReLU(nn::ReLUOptions(true)),
                         nn::Conv2d(nn::Conv2dOptions(4 + 4 * i, 4, 3).padding(1).bias(false))));
    register_module("layers", layers);
  }
  Tensor forward(Tensor x) {
    Tensors features{x};
    for (const auto& layer : *layers)
      features.push_back(layer->as<nn::SequentialImpl>()->forward(torch::cat(features, 1)));
    return F::adaptive_avg_pool2d(torch::cat(features, 1), F::AdaptiveAvgPool2dFuncOptions(1))
        .flatten(1);
  }
  nn::ModuleList layers;
};

// Howard et al. 2019: depthwise convolutions, squeeze and excite, hard swish.
struct MobileNet : nn::Module {
  Tensor forward(Tensor x) {
    x = torch::hardswish(expand->forward(x));
    x = depthwise->forward(x);
    torch::hardswish_(x);
    x = x * torch::hardsigmoid(squeeze->forward(x.mean({2, 3}, true)));
    return project->forward(x);
  }
  nn::Sequential expand = register_module(
      "expand", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(4, 12, 1).bias(false)),
                               nn::BatchNorm2d(nn::BatchNorm2dOptions(12).momentum(0.01))));
  nn::Sequential depthwise = register_module(
      "depthwise",
      nn::Sequential(
          nn::Conv2d(nn::Conv2dOptions(12, 12, 3).stride(2).padding(1).groups(12).bias(false)),
          nn::BatchNorm2d(12)));
  nn::Sequential squeeze = register_module(
      "squeeze", nn::Sequential(nn::Conv2d(12, 4, 1), nn::ReLU(), nn::Conv2d(4, 12, 1)));
  nn::Sequential project =
      register_module("project", nn::Sequential(nn::Conv2d(12, 6, 1), nn::BatchNorm2d(6)));
};

// Ronneberger et al. 2015: skip connections by size.
struct UNet : nn::Module {
  Tensor forward(Tensor x) {
    const Tensor top = torch::relu(in(x));
    const Tensor deep = torch::relu(mid(F::max_pool2d(top, F::MaxPool2dFuncOptions(2))));
    const Tensor wide =
        F::interpolate(deep, F::InterpolateFuncOptions()
                                 .size(std::vector<std::int64_t>{top.size(2), top.size(3)})
                                 .mode(torch::kBilinear)
                                 .align_corners(false));
    return out(torch::cat({top, wide}, 1));
  }
  nn::Conv2d in = register_module("in", nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1)));
  nn::Conv2d mid = register_module("mid", nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(1)));
  nn::Conv2d out = register_module("out", nn::Conv2d(10, 2, 1));
};

// Radford et al. 2015: generator and discriminator in one step.
struct Dcgan : nn::Module {
  Tensors forward(const Tensor& noise) {
    const Tensor fake = generator->forward(noise.view({noise.size(0), 6, 1, 1}));
    const Tensor score = discriminator->forward(fake).view({-1});
    return {fake, score, F::binary_cross_entropy(score, torch::ones_like(score))};
  }
  nn::Sequential generator = register_module(
      "generator",
      nn::Sequential(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(6, 8, 4).bias(false)),
                     nn::BatchNorm2d(8), nn::ReLU(nn::ReLUOptions(true)),
                     nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 1, 4).stride(2).padding(1)),
                     nn::Tanh()));
  nn::Sequential discriminator = register_module(
      "discriminator",
      nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 8, 4).stride(2).padding(1)),
                     nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)),
                     nn::Conv2d(8, 1, 4), nn::Sigmoid()));
};

// Kingma and Welling 2013: random numbers between encoder and decoder.
struct Vae : nn::Module {
  Tensors forward(const Tensor& x) {
    const Tensors code = encoder(x).chunk(2, -1);
    const Tensor z = code[0] + torch::randn_like(code[0]) * (0.5 * code[1]).exp();
    const Tensor y = torch::sigmoid(decoder(z));
    const Tensor divergence = -0.5 * (1 + code[1] - code[0].pow(2) - code[1].exp()).sum();
    return {y, F::binary_cross_entropy(y, torch::sigmoid(x.detach())) + divergence};
  }
  nn::Linear encoder = register_module("encoder", nn::Linear(6, 8));
  nn::Linear decoder = register_module("decoder", nn::Linear(4, 6));
};

template <typename Recurrent>
struct LanguageModel : nn::Module {
  Tensor forward(const Tensor& ids) { return head(drop(std::get<0>(recurrent(drop(embed(ids)))))); }
  nn::Embedding embed = register_module("embed", nn::Embedding(11, 6));
  nn::Dropout drop = register_module("drop", nn::Dropout(0.2));
  Recurrent recurrent = register_module("recurrent", Recurrent(6, 8));
  nn::Linear head = register_module("head", nn::Linear(8, 11));
};

struct Translator : nn::Module {
  Tensor forward(const Tensor& source, const Tensor& target) {
    const Tensor later = torch::ones({target.size(0), target.size(0)}, torch::kBool).triu_(1);
    return head(transformer(embed(source), embed(target), torch::Tensor(),
                            torch::zeros({target.size(0), target.size(0)}, embed->weight.options())
                                .masked_fill_(later, -1e9)));
  }
  nn::Embedding embed = register_module("embed", nn::Embedding(11, 8));
  nn::Transformer transformer = register_module(
      "transformer", nn::Transformer(nn::TransformerOptions(8, 2, 1, 1).dim_feedforward(12)));
  nn::Linear head = register_module("head", nn::Linear(8, 11));
};

// One step of a decoder that writes keys and values into the cache of the caller.
struct Gpt : nn::Module {
  Tensor forward(const Tensor& ids, Tensor keys, Tensor values) {
    const std::int64_t batch = ids.size(0), steps = ids.size(1), past = 2;
    Tensor x = embed(ids) + position(torch::arange(past, past + steps));
    const Tensors parts = qkv(norm(x)).chunk(3, -1);
    const auto heads = [&](const Tensor& t) {
      return t.view({batch, steps, 2, 4}).transpose(1, 2);
    };
    keys.slice(2, past, past + steps).copy_(heads(parts[1]).detach());
    values.narrow(2, past, steps) = heads(parts[2]).detach();
    values.index_put_(
        {at::indexing::Slice(), at::indexing::Slice(), at::indexing::Slice(past, past + steps)},
        heads(parts[2]).detach());
    const Tensor all = keys.slice(2, 0, past + steps), seen = values.slice(2, 0, past + steps);
    Tensor score = heads(parts[0]).matmul(all.transpose(-2, -1)) / 2.0;
    const Tensor later = torch::ones({steps, past + steps}, torch::kBool).triu(past + 1);
    score.masked_fill_(later, -std::numeric_limits<double>::infinity());
    x = x + score.softmax(-1).matmul(seen).transpose(1, 2).reshape({batch, steps, 8});
    return F::linear(x, embed->weight);
  }
  nn::Embedding embed = register_module("embed", nn::Embedding(11, 8));
  nn::Embedding position = register_module("position", nn::Embedding(16, 8));
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({8})));
  nn::Linear qkv = register_module("qkv", nn::Linear(8, 24));
};

// Kipf and Welling 2016, messages along edges by scatter.
struct GraphConvolution : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& edges) {
    const Tensor from = edges[0], to = edges[1];
    Tensor degree = torch::zeros({x.size(0)}, x.options());
    degree.scatter_add_(0, to, torch::ones({to.size(0)}, x.options()));
    const Tensor scale = degree.clamp_min(1).rsqrt();
    const Tensor message = linear(x).index_select(0, from) *
                           (scale.index_select(0, from) * scale.index_select(0, to)).unsqueeze(1);
    Tensor out = torch::zeros({x.size(0), 5}, x.options());
    out.index_add_(0, to, message);
    return torch::log_softmax(out.relu(), 1);
  }
  nn::Linear linear = register_module("linear", nn::Linear(4, 5));
};

// A wave on a string by finite differences, boundary written in place at each step.
Tensors wave(const Tensor& start, const Tensor& speed) {
  Tensor before = start.clone(), now = start.clone();
  for (int step = 0; step < 4; ++step) {
    Tensor next = 2 * now - before;
    next.slice(1, 1, -1) +=
        speed * (now.slice(1, 2) - 2 * now.slice(1, 1, -1) + now.slice(1, 0, -2));
    next.select(1, 0).zero_();
    next.select(1, -1).fill_(0);
    before = now;
    now = next;
  }
  return {now, (now - before).square().sum()};
}

// Forces of springs between particles: distances, a mask, scatter by index_put with accumulation.
Tensors springs(const Tensor& place, const Tensor& pairs) {
  const Tensor apart = place.index({pairs[0]}) - place.index({pairs[1]});
  const Tensor length = apart.norm(2, 1, true).clamp_min(1e-3);
  const Tensor force = torch::where(length < 2, (1 - length) * apart / length, 0.0);
  Tensor total = torch::zeros_like(place);
  total.index_put_({pairs[0]}, force, /*accumulate=*/true);
  total.index_put_({pairs[1]}, -force, /*accumulate=*/true);
  return {place + 0.1 * total, total};
}

// Gradients taken inside the program: an energy and its forces.
Tensors energy(const Tensor& place) {
  const torch::AutoGradMode enabled(true);
  const Tensor x = place.detach().requires_grad_();
  const Tensor value = (x * x).sum() + x.prod(1).sin().sum();
  return {value.detach(), -torch::autograd::grad({value}, {x})[0]};
}

// A buffer that follows what it sees.
struct RunningMean : nn::Module {
  Tensor forward(const Tensor& x) {
    if (is_training()) {
      const torch::NoGradGuard no_grad;
      mean.mul_(0.9).add_(x.mean(0), 0.1);
      steps += 1;
    }
    return (x - mean) * weight;
  }
  Tensor mean = register_buffer("mean", torch::zeros({6}));
  Tensor steps = register_buffer("steps", torch::zeros({}, torch::kLong));
  Tensor weight = register_parameter("weight", torch::ones({6}));
};

template <typename Net>
Case net_case(std::string name, std::string options, std::vector<Input> inputs,
              std::shared_ptr<Net> net) {
  auto run = [net](Tensors& in) -> Tensors {
    if constexpr (requires { net->forward(in[0], in[1], in[2]); })
      return tensors(net->forward(in[0], in[1], in[2]));
    else if constexpr (requires { net->forward(in[0], in[1]); })
      return tensors(net->forward(in[0], in[1]));
    else
      return tensors(net->forward(in[0]));
  };
  return {std::move(name), std::move(options), std::move(inputs), run, net};
}

}  // namespace

void add_nets(Cases& cases) {
  const Input image = normal({kBatch, 3, 16, 16}), ids = indices(11, {5, kBatch});
  auto add = [&](std::string name, std::string what, std::vector<Input> inputs, auto net) {
    cases.push_back(net_case(std::move(name), std::move(what), std::move(inputs), net));
  };
  add("ResNet", "basic blocks", {normal({kBatch, 3, 32, 32})}, std::make_shared<ResNet>());
  add("DenseNet", "one block", {normal({kBatch, 4, 6, 6})}, std::make_shared<DenseNet>());
  add("MobileNet", "one block", {normal({kBatch, 4, 8, 8})}, std::make_shared<MobileNet>());
  add("UNet", "two levels", {image}, std::make_shared<UNet>());
  add("DCGAN", "generator and discriminator", {normal({kBatch, 6})}, std::make_shared<Dcgan>());
  add("VAE", "random code", {normal({kBatch, 6})}, std::make_shared<Vae>());
  add("LSTM language model", "", {ids}, std::make_shared<LanguageModel<nn::LSTM>>());
  add("GRU language model", "", {ids}, std::make_shared<LanguageModel<nn::GRU>>());
  add("Transformer", "encoder and decoder", {ids, indices(11, {4, kBatch})},
      std::make_shared<Translator>());
  add("GPT decoder", "a step with a cache of keys and values",
      {indices(11, {kBatch, 3}), still(normal({kBatch, 2, 8, 4})),
       still(normal({kBatch, 2, 8, 4}))},
      std::make_shared<Gpt>());
  add("Graph convolution", "messages by scatter", {normal({6, 4}), indices(6, {2, 9})},
      std::make_shared<GraphConvolution>());
  add("Running mean", "a buffer written under NoGradGuard", {normal({kBatch, 6})},
      std::make_shared<RunningMean>());
  FX_ZOO_CALL(Wave, ({normal({kBatch, 12}), uniform({})}), wave(in[0], in[1]));
  FX_ZOO_CALL(Springs, ({normal({6, 3}), indices(6, {2, 8})}), springs(in[0], in[1]));
  FX_ZOO_CALL(Energy, ({still(normal({kBatch, 6}))}), energy(in[0]));
}

}  // namespace fx::zoo
