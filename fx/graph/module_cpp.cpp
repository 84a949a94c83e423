#include "fx/graph/module_cpp.h"

#include <torch/nn/modules.h>

#include <typeindex>
#include <unordered_map>

#include "fx/base/text.h"
#include "fx/graph/cpp_values.h"

namespace fx::cpp {
namespace {

namespace nn = torch::nn;

struct Context {
  const std::string& path;
  const std::string& input;
  const TensorSource& tensor;

  std::string weight(const char* name) const { return tensor(path + "." + name); }
  // An undefined parameter is no parameter.
  std::string weight(const char* name, const at::Tensor& value) const {
    return value.defined() ? weight(name) : "std::nullopt";
  }
};
using Result = std::optional<std::string>;

std::string source(bool value) { return value ? "true" : "false"; }
std::string source(std::int64_t value) { return std::to_string(value); }
std::string source(double value) { return float_literal(value); }
std::string source(const std::string& value) { return string_literal(value); }
template <typename Range>
std::string ints(const Range& items) {
  std::string out = "std::vector<std::int64_t>{";
  bool first = true;
  for (std::int64_t item : items) {
    out += (first ? "" : ", ") + std::to_string(item);
    first = false;
  }
  return out + "}";
}
template <std::size_t D>
std::string source(const torch::ExpandingArray<D>& items) {
  return ints(*items);
}
template <typename T>
std::string source(const std::optional<T>& value) {
  return value ? source(*value) : "std::nullopt";
}

// "at::name(input, a, b)"
template <typename... Args>
std::string call(const char* name, const std::string& input, const Args&... args) {
  std::string out = std::string("at::") + name + "(" + input;
  ((out += ", ", out += args), ...);
  return out + ")";
}

// relu(x) or relu_(x)
template <typename... Args>
std::string call_inplace(const char* name, bool inplace, const std::string& input,
                         const Args&... args) {
  return call((std::string(name) + (inplace ? "_" : "")).c_str(), input, args...);
}

template <std::size_t D, typename Impl>
Result conv(const Impl& m, const Context& c) {
  if (!std::holds_alternative<torch::enumtype::kZeros>(m.options.padding_mode())) return {};
  const auto& padding = m.options.padding();
  std::string pad;
  if (std::holds_alternative<torch::enumtype::kSame>(padding))
    pad = "\"same\"";
  else if (std::holds_alternative<torch::enumtype::kValid>(padding))
    pad = "\"valid\"";
  else
    pad = source(std::get<torch::ExpandingArray<D>>(padding));
  return call(("conv" + std::to_string(D) + "d").c_str(), c.input, c.weight("weight"),
              c.weight("bias", m.bias), source(m.options.stride()), pad,
              source(m.options.dilation()), source(m.options.groups()));
}

template <typename Impl>
Result batch_norm(const Impl& m, const Context& c) {
  const bool tracks = m.running_mean.defined();
  const bool batch_statistics = m.is_training() || !tracks;
  // A cumulative average depends on the number of batches seen so far.
  if (m.is_training() && tracks && !m.options.momentum()) return {};
  const std::string norm =
      call("batch_norm", c.input, c.weight("weight", m.weight), c.weight("bias", m.bias),
           c.weight("running_mean", m.running_mean), c.weight("running_var", m.running_var),
           source(batch_statistics), source(m.options.momentum().value_or(0.0)),
           source(m.options.eps()), "true");
  if (!m.is_training() || !m.num_batches_tracked.defined()) return norm;
  return "(" + c.weight("num_batches_tracked") + ".add_(1), " + norm + ")";
}

template <typename Impl>
Result dropout(const char* name, const Impl& m, const Context& c) {
  return call_inplace(name, m.options.inplace(), c.input, source(m.options.p()),
                      source(m.is_training()));
}

template <typename Impl>
Result max_pool(const char* name, const Impl& m, const Context& c) {
  return call(name, c.input, source(m.options.kernel_size()), source(m.options.stride()),
              source(m.options.padding()), source(m.options.dilation()),
              source(m.options.ceil_mode()));
}

template <typename Impl>
std::string avg_pool(const char* name, const Impl& m, const Context& c) {
  return call(name, c.input, source(m.options.kernel_size()), source(m.options.stride()),
              source(m.options.padding()), source(m.options.ceil_mode()),
              source(m.options.count_include_pad()));
}

template <typename Impl>
Result adaptive_pool(const char* name, const Impl& m, const Context& c) {
  std::vector<std::int64_t> sizes;
  for (const auto& size : *m.options.output_size()) {
    if (!size) return {};
    sizes.push_back(*size);
  }
  return call(name, c.input, ints(sizes));
}

std::string with_divisor(std::string pool, const std::optional<std::int64_t>& divisor) {
  pool.pop_back();
  return pool + ", " + source(divisor) + ")";
}

using Writer = Result (*)(const nn::Module&, const Context&);

// FX_MODULE(class, expression over m, the module, and c, its context).
const std::unordered_map<std::type_index, Writer>& writers() {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::type_index, Writer>;
#define FX_MODULE(Class, ...)                                                          \
  t->emplace(typeid(nn::Class##Impl), [](const nn::Module& module, const Context& c) { \
    [[maybe_unused]] const auto& m = dynamic_cast<const nn::Class##Impl&>(module);     \
    return Result(__VA_ARGS__);                                                        \
  })
    FX_MODULE(Linear, call("linear", c.input, c.weight("weight"), c.weight("bias", m.bias)));
    FX_MODULE(Identity, c.input);
    FX_MODULE(Conv1d, conv<1>(m, c));
    FX_MODULE(Conv2d, conv<2>(m, c));
    FX_MODULE(Conv3d, conv<3>(m, c));
    FX_MODULE(BatchNorm1d, batch_norm(m, c));
    FX_MODULE(BatchNorm2d, batch_norm(m, c));
    FX_MODULE(BatchNorm3d, batch_norm(m, c));
    FX_MODULE(LayerNorm, call("layer_norm", c.input, ints(m.options.normalized_shape()),
                              c.weight("weight", m.weight), c.weight("bias", m.bias),
                              source(m.options.eps()), "true"));
    FX_MODULE(GroupNorm, call("group_norm", c.input, source(m.options.num_groups()),
                              c.weight("weight", m.weight), c.weight("bias", m.bias),
                              source(m.options.eps()), "true"));
    FX_MODULE(Embedding, m.options.max_norm() ? Result()
                                              : call("embedding", c.weight("weight"), c.input,
                                                     source(m.options.padding_idx().value_or(-1)),
                                                     source(m.options.scale_grad_by_freq()),
                                                     source(m.options.sparse())));
    FX_MODULE(Dropout, dropout("dropout", m, c));
    FX_MODULE(Dropout2d, dropout("feature_dropout", m, c));
    FX_MODULE(Dropout3d, dropout("feature_dropout", m, c));
    FX_MODULE(AlphaDropout, dropout("alpha_dropout", m, c));
    FX_MODULE(FeatureAlphaDropout, dropout("feature_alpha_dropout", m, c));
    FX_MODULE(ReLU, call_inplace("relu", m.options.inplace(), c.input));
    FX_MODULE(ReLU6, call_inplace("relu6", m.options.inplace(), c.input));
    FX_MODULE(SELU, call_inplace("selu", m.options.inplace(), c.input));
    FX_MODULE(LeakyReLU, call_inplace("leaky_relu", m.options.inplace(), c.input,
                                      source(m.options.negative_slope())));
    FX_MODULE(ELU, call_inplace("elu", m.options.inplace(), c.input, source(m.options.alpha())));
    FX_MODULE(CELU, call_inplace("celu", m.options.inplace(), c.input, source(m.options.alpha())));
    FX_MODULE(Hardtanh, call_inplace("hardtanh", m.options.inplace(), c.input,
                                     source(m.options.min_val()), source(m.options.max_val())));
    FX_MODULE(Threshold, call_inplace("threshold", m.options.inplace(), c.input,
                                      source(m.options.threshold()), source(m.options.value())));
    FX_MODULE(GELU, call("gelu", c.input, source(m.options.approximate())));
    FX_MODULE(SiLU, call("silu", c.input));
    FX_MODULE(Mish, call("mish", c.input));
    FX_MODULE(Sigmoid, call("sigmoid", c.input));
    FX_MODULE(Tanh, call("tanh", c.input));
    FX_MODULE(LogSigmoid, call("log_sigmoid", c.input));
    FX_MODULE(Softplus,
              call("softplus", c.input, source(m.options.beta()), source(m.options.threshold())));
    FX_MODULE(Softmax, call("softmax", c.input, source(m.options.dim())));
    FX_MODULE(LogSoftmax, call("log_softmax", c.input, source(m.options.dim())));
    FX_MODULE(PReLU, call("prelu", c.input, c.weight("weight")));
    FX_MODULE(Flatten,
              call("flatten", c.input, source(m.options.start_dim()), source(m.options.end_dim())));
    FX_MODULE(MaxPool1d, max_pool("max_pool1d", m, c));
    FX_MODULE(MaxPool2d, max_pool("max_pool2d", m, c));
    FX_MODULE(MaxPool3d, max_pool("max_pool3d", m, c));
    FX_MODULE(AvgPool1d, avg_pool("avg_pool1d", m, c));
    FX_MODULE(AvgPool2d, with_divisor(avg_pool("avg_pool2d", m, c), m.options.divisor_override()));
    FX_MODULE(AvgPool3d, with_divisor(avg_pool("avg_pool3d", m, c), m.options.divisor_override()));
    FX_MODULE(AdaptiveAvgPool1d,
              call("adaptive_avg_pool1d", c.input, source(m.options.output_size())));
    FX_MODULE(AdaptiveAvgPool2d, adaptive_pool("adaptive_avg_pool2d", m, c));
    FX_MODULE(AdaptiveAvgPool3d, adaptive_pool("adaptive_avg_pool3d", m, c));
    FX_MODULE(PixelShuffle, call("pixel_shuffle", c.input, source(m.options.upscale_factor())));
    FX_MODULE(PixelUnshuffle,
              call("pixel_unshuffle", c.input, source(m.options.downscale_factor())));
#undef FX_MODULE
    return t;
  }();
  return *table;
}

}  // namespace

std::optional<std::string> module_expression(const nn::Module& module, const std::string& path,
                                             const std::string& input, const TensorSource& tensor) {
  if (dynamic_cast<const nn::SequentialImpl*>(&module)) {
    std::string text = input;
    for (const auto& child : module.named_children()) {
      auto step = module_expression(*child.value(), path + "." + child.key(), text, tensor);
      if (!step) return std::nullopt;
      text = std::move(*step);
    }
    return text;
  }
  auto found = writers().find(typeid(module));
  if (found == writers().end()) return std::nullopt;
  return found->second(module, Context{path, input, tensor});
}

}  // namespace fx::cpp
