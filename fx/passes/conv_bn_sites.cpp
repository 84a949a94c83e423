#include "fx/passes/conv_bn_sites.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <typeinfo>

#include "fx/analysis/alias.h"
#include "fx/graph/module_types.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/named_arguments.h"

namespace fx {
namespace {

Node* input_of(const Node& call) {
  const Argument* input = call.num_args() > 0 ? &call.args()[0] : call.find_kwarg("input");
  return input ? input->node_or_null() : nullptr;
}

bool is_absent(const Argument* argument) { return !argument || argument->is_none(); }

bool is_false_or_missing(const Argument* flag) {
  return !flag || (flag->kind() == Argument::Kind::kBool && !flag->to_bool());
}

bool is_operator(const Function& function) {
  return function.kind() == FunctionKind::kOperator || function.kind() == FunctionKind::kTorch;
}

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

// Exactly this class: a derived one may do something else.
template <typename Impl>
Impl* as_exactly(torch::nn::Module& module) {
  return typeid(module) == typeid(Impl) ? dynamic_cast<Impl*>(&module) : nullptr;
}

template <typename Impl>
bool take_weights(torch::nn::Module& module, int spatial_dims, LayerSite& layer) {
  auto* impl = as_exactly<Impl>(module);
  if (!impl) return false;
  layer.spatial_dims = spatial_dims;
  layer.weight = impl->weight;
  layer.bias = impl->bias;
  return true;
}

}  // namespace

ConvBnFinder::ConvBnFinder(GraphModule& module) : module_(module) {
  const AliasAnalysis aliases(module.graph());
  if (!aliases.writes_attributes()) return;
  for (const Node& node : module.graph().nodes())
    if (node.op() == Opcode::kGetAttr && aliases.is_written(node))
      if (const at::Tensor tensor = module.find_tensor(node.target().str());
          tensor.defined() && tensor.has_storage())
        written_.insert(tensor.storage().unsafeGetStorageImpl());
}

bool ConvBnFinder::is_constant(const at::Tensor& tensor) const {
  return tensor.defined() && tensor.is_floating_point() && tensor.layout() == at::kStrided &&
         !written_.contains(tensor.storage().unsafeGetStorageImpl());
}

bool ConvBnFinder::has_constants(const ChannelAffine& affine) const {
  return is_constant(affine.mean) && is_constant(affine.variance) &&
         (!affine.weight.defined() || is_constant(affine.weight)) &&
         (!affine.bias.defined() || is_constant(affine.bias));
}

// The tensor that an argument of a functional call reads from an attribute.
at::Tensor ConvBnFinder::constant_of(const Argument* argument) const {
  const Node* node = argument ? argument->node_or_null() : nullptr;
  if (!node || node->op() != Opcode::kGetAttr) return {};
  const at::Tensor tensor = module_.find_tensor(node->target().str());
  if (!is_constant(tensor) || (module_.is_training() && tensor.requires_grad())) return {};
  return tensor;
}

// --- normalisations ------------------------------------------------------------------------------

std::optional<NormalizationSite> ConvBnFinder::normalization_at(Node& node) const {
  if (node.op() == Opcode::kCallFunction) return functional_normalization(node);
  if (node.op() != Opcode::kCallModule) return std::nullopt;
  const auto called = module_.find_submodule(node.target().str());
  if (!called || called->is_training()) return std::nullopt;
  if (auto* bn = as_exactly<torch::nn::BatchNorm1dImpl>(*called))
    return module_normalization(node, *bn, 1);
  if (auto* bn = as_exactly<torch::nn::BatchNorm2dImpl>(*called))
    return module_normalization(node, *bn, 2);
  if (auto* bn = as_exactly<torch::nn::BatchNorm3dImpl>(*called))
    return module_normalization(node, *bn, 3);
  return std::nullopt;
}

template <typename BatchNorm>
std::optional<NormalizationSite> ConvBnFinder::module_normalization(Node& node, BatchNorm& bn,
                                                                    int dims) const {
  NormalizationSite found;
  found.node = &node;
  found.input = input_of(node);
  found.spatial_dims = dims;
  found.affine = {bn.running_mean, bn.running_var, bn.weight, bn.bias, bn.options.eps()};
  found.results = {&node};
  if (!found.input || !has_constants(found.affine)) return std::nullopt;
  return found;
}

std::optional<NormalizationSite> ConvBnFinder::functional_normalization(Node& node) const {
  static constexpr std::array<std::string_view, 5> kNames = {
      "_batch_norm_no_update", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
      "batch_norm", "native_batch_norm"};
  const Function& function = *node.target().function();
  if (!is_operator(function) || !contains(kNames, function.base_name())) return std::nullopt;
  const auto args = NamedArguments::of(node);
  if (!args || !is_false_or_missing(args->find("training"))) return std::nullopt;
  const Argument* eps = args->find("eps");
  const Argument* input = args->find("input");
  if (!eps || eps->kind() != Argument::Kind::kFloat || !input || !input->is_node())
    return std::nullopt;
  NormalizationSite found;
  found.node = &node;
  found.input = &input->node();
  found.affine.mean = constant_of(args->find("running_mean"));
  found.affine.variance = constant_of(args->find("running_var"));
  found.affine.eps = eps->to_double();
  for (auto [name, into] :
       {std::pair("weight", &found.affine.weight), std::pair("bias", &found.affine.bias)}) {
    if (is_absent(args->find(name))) continue;
    *into = constant_of(args->find(name));
    if (!into->defined()) return std::nullopt;
  }
  if (!has_constants(found.affine)) return std::nullopt;
  if (function.base_name() == "batch_norm") {
    found.results = {&node};
    return found;
  }
  // Several results: only the first one may be used.
  for (Node* user : node.users()) {
    if (!user->calls("operator.getitem") || user->num_args() != 2 ||
        !(user->args()[1] == Argument(0)))
      return std::nullopt;
    found.results.push_back(user);
  }
  if (found.results.empty()) return std::nullopt;
  return found;
}

// --- layers --------------------------------------------------------------------------------------

std::optional<LayerSite> ConvBnFinder::layer_at(Node& node) const {
  if (node.op() == Opcode::kCallModule) return module_layer(node);
  if (node.op() == Opcode::kCallFunction) return functional_layer(node);
  return std::nullopt;
}

std::optional<LayerSite> ConvBnFinder::module_layer(Node& node) const {
  LayerSite layer;
  layer.node = &node;
  layer.module = module_.find_submodule(node.target().str());
  if (!layer.module || layer.module->is_training()) return std::nullopt;
  if (!take_weights<torch::nn::Conv1dImpl>(*layer.module, 1, layer) &&
      !take_weights<torch::nn::Conv2dImpl>(*layer.module, 2, layer) &&
      !take_weights<torch::nn::Conv3dImpl>(*layer.module, 3, layer) &&
      !take_weights<torch::nn::LinearImpl>(*layer.module, 0, layer))
    return std::nullopt;
  if (!is_constant(layer.weight) || (layer.bias.defined() && !is_constant(layer.bias)))
    return std::nullopt;
  return layer;
}

std::optional<LayerSite> ConvBnFinder::functional_layer(Node& node) const {
  static constexpr std::array<std::string_view, 5> kNames = {"conv1d", "conv2d", "conv3d",
                                                             "convolution", "linear"};
  const Function& function = *node.target().function();
  if (!is_operator(function) || !contains(kNames, function.base_name())) return std::nullopt;
  const auto args = NamedArguments::of(node);
  if (!args || !is_false_or_missing(args->find("transposed"))) return std::nullopt;
  LayerSite layer;
  layer.node = &node;
  layer.weight = constant_of(args->find("weight"));
  const auto weight_position = args->position("weight");
  const auto bias_position = args->position("bias");
  if (!layer.weight.defined() || !weight_position || !bias_position) return std::nullopt;
  layer.weight_node = args->find("weight")->node_or_null();
  layer.weight_position = *weight_position;
  layer.bias_position = *bias_position;
  layer.spatial_dims = static_cast<int>(layer.weight.dim()) - 2;
  if (!is_absent(args->find("bias"))) {
    layer.bias = constant_of(args->find("bias"));
    layer.bias_node = args->find("bias")->node_or_null();
    if (!layer.bias.defined()) return std::nullopt;
  }
  const std::string_view name = function.base_name();
  const int by_name = name == "linear"        ? 0
                      : name == "convolution" ? layer.spatial_dims
                                              : name[4] - '0';
  if (by_name != layer.spatial_dims) return std::nullopt;
  return layer;
}

// --- pairs ---------------------------------------------------------------------------------------

bool ConvBnFinder::fit(const LayerSite& layer, const NormalizationSite& bn,
                       bool assume_linear_2d) const {
  // The layer's own result is gone afterwards.
  if (layer.node->num_users() != 1) return false;
  if (layer.weight.dim() < 2 || bn.affine.mean.dim() != 1 ||
      layer.weight.size(0) != bn.affine.mean.size(0))
    return false;
  if (layer.spatial_dims == 0)
    return (bn.spatial_dims == 1 || bn.spatial_dims == -1) &&
           (assume_linear_2d || has_rank_two(*layer.node));
  if (bn.spatial_dims != -1 && bn.spatial_dims != layer.spatial_dims) return false;
  const TensorMeta* meta = tensor_meta(*layer.node);
  return !meta || meta->dim() == layer.spatial_dims + 2;
}

// Whether the value surely has two axes: from its metadata, or from what made it.
bool ConvBnFinder::has_rank_two(const Node& value) const {
  for (const Node* node = &value; node; node = input_of(*node)) {
    if (const TensorMeta* meta = tensor_meta(*node)) return meta->dim() == 2;
    if (node->op() == Opcode::kCallModule) {
      static constexpr std::array<std::string_view, 7> kKeepRank = {
          "BatchNorm1d", "Dropout", "GELU", "Linear", "ReLU", "Sigmoid", "Tanh"};
      const auto called = module_.find_submodule(node->target().str());
      if (!called) return false;
      if (const auto* flatten = as_exactly<torch::nn::FlattenImpl>(*called))
        return flatten->options.start_dim() == 1 && flatten->options.end_dim() == -1;
      const ModuleType* type = find_module_type(*called);
      if (!type || !contains(kKeepRank, type->short_name)) return false;
    } else if (node->op() == Opcode::kCallFunction || node->op() == Opcode::kCallMethod) {
      static constexpr std::array<std::string_view, 7> kKeepRank = {
          "batch_norm", "dropout", "gelu", "linear", "relu", "sigmoid", "tanh"};
      const std::string_view name = node->op() == Opcode::kCallMethod
                                        ? std::string_view(node->target().str())
                                        : node->target().function()->base_name();
      if (name == "addmm" || name == "mm") return true;
      if (name == "flatten") {
        const auto args = NamedArguments::of(*node);
        return args && args->find("start_dim") && *args->find("start_dim") == Argument(1) &&
               *args->find("end_dim") == Argument(-1);
      }
      if (!contains(kKeepRank, name)) return false;
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace fx
