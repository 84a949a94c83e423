#include "fx/passes/fuse_conv_bn.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>

#include "fx/graph/module_access.h"
#include "fx/passes/attribute_uses.h"
#include "fx/passes/conv_bn_sites.h"
#include "fx/passes/nested.h"

namespace fx {

WeightAndBias fuse_bn_into(const at::Tensor& weight, const at::Tensor& bias,
                           const ChannelAffine& bn) {
  const at::NoGradGuard no_grad;
  auto wide = [](const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); };
  at::Tensor scale = (wide(bn.variance) + bn.eps).rsqrt();
  if (bn.weight.defined()) scale = scale * wide(bn.weight);
  std::vector<std::int64_t> by_channel(static_cast<std::size_t>(weight.dim()), 1);
  by_channel[0] = -1;
  at::Tensor shift = (bias.defined() ? wide(bias) : at::zeros_like(scale)) - wide(bn.mean);
  shift = shift * scale;
  if (bn.bias.defined()) shift = shift + wide(bn.bias);
  return {(wide(weight) * scale.reshape(by_channel)).to(weight.scalar_type()),
          shift.to(bias.defined() ? bias.scalar_type() : weight.scalar_type())};
}

namespace {

// A copy of the module that has these weights; the module itself is left alone.
template <typename Impl>
std::shared_ptr<torch::nn::Module> copy_with(const Impl& old, const WeightAndBias& weights) {
  auto made = std::make_shared<Impl>(old);
  made->options.bias(true);
  made->weight = weights.weight;
  made->bias = weights.bias;
  detail::assign(detail::parameters(*made), "weight", made->weight);
  detail::assign(detail::parameters(*made), "bias", made->bias);
  return made;
}

std::shared_ptr<torch::nn::Module> copy_with(const torch::nn::Module& old,
                                             const WeightAndBias& weights) {
  if (auto* conv = dynamic_cast<const torch::nn::Conv1dImpl*>(&old))
    return copy_with(*conv, weights);
  if (auto* conv = dynamic_cast<const torch::nn::Conv2dImpl*>(&old))
    return copy_with(*conv, weights);
  if (auto* conv = dynamic_cast<const torch::nn::Conv3dImpl*>(&old))
    return copy_with(*conv, weights);
  return copy_with(dynamic_cast<const torch::nn::LinearImpl&>(old), weights);
}

class Fuser {
 public:
  Fuser(GraphModule& module, const TreeUses& tree, const FuseConvBnOptions& options)
      : module_(module),
        graph_(module.graph()),
        options_(options),
        finder_(module),
        uses_(module),
        tree_(tree) {}

  std::int64_t run() {
    std::int64_t fused = 0;
    for (Node& node : graph_.nodes()) {
      std::optional<NormalizationSite> bn = finder_.normalization_at(node);
      if (!bn) continue;
      std::optional<LayerSite> layer = finder_.layer_at(*bn->input);
      if (!layer || !finder_.fit(*layer, *bn, options_.assume_linear_2d)) continue;
      fuse(*layer, *bn);
      ++fused;
    }
    for (const std::string& path : left_behind_)
      delete_unused_attribute(module_, uses_, tree_, path);
    return fused;
  }

 private:
  void fuse(const LayerSite& layer, const NormalizationSite& bn) {
    WeightAndBias fused = fuse_bn_into(layer.weight, layer.bias, bn.affine);
    fused.weight.set_requires_grad(layer.weight.requires_grad());
    fused.bias.set_requires_grad(layer.weight.requires_grad());
    if (layer.module)
      set_module(layer, fused);
    else
      set_arguments(layer, fused);
    for (Node* result : bn.results) {
      result->replace_all_uses_with(*layer.node);
      if (result != bn.node) graph_.erase_node(*result);
    }
    const std::vector<Node*> inputs = bn.node->all_input_nodes();
    erase(*bn.node);
    erase_unused_reads(inputs);
  }

  void set_module(const LayerSite& layer, const WeightAndBias& fused) {
    const std::string path = layer.node->target().str();
    const bool only_use = uses_.of_module(*layer.module) == 1 && uses_.at_or_below(path) == 1;
    uses_.remove(*layer.node);
    if (only_use && may_replace(path)) {
      module_.set_submodule(path, copy_with(*layer.module, fused));
    } else {
      const std::string own = fresh(path);
      module_.set_submodule(own, copy_with(*layer.module, fused));
      layer.node->set_target(own);
      left_behind_.push_back(path);
    }
    uses_.add(*layer.node);
  }

  void set_arguments(const LayerSite& layer, const WeightAndBias& fused) {
    const std::vector<Node*> inputs = layer.node->all_input_nodes();
    const std::string weight_path = layer.weight_node->target().str();
    const std::string bias_path =
        layer.bias_node ? layer.bias_node->target().str() : new_bias_path(weight_path);
    const auto guard = graph_.inserting_before(*layer.node);
    set_argument(layer, layer.weight_position, "weight", layer.weight_node, weight_path,
                 weight_path, fused.weight);
    set_argument(layer, layer.bias_position, "bias", layer.bias_node, bias_path, weight_path,
                 fused.bias);
    erase_unused_reads(inputs);
  }

  // Stores `tensor` at `path`, or at a path of its own if something else uses what is there, and
  // lets the layer read it.
  void set_argument(const LayerSite& layer, std::size_t position, std::string_view name, Node* old,
                    const std::string& path, const std::string& like, const at::Tensor& tensor) {
    const bool only_use = old && old->num_users() == 1 &&
                          uses_.of_tensor(module_.find_tensor(path)) == 1 && may_replace(path);
    if (only_use) {
      uses_.remove(*old);
      store(path, like, tensor);
      uses_.add(*old);
      return;
    }
    const bool is_free = !old && module_.attr_kind(path) == GraphOwner::AttrKind::kMissing &&
                         is_own_attribute(module_, path);
    const std::string to = is_free ? path : fresh(path);
    store(to, like, tensor);
    Node& read = graph_.get_attr(to);
    uses_.add(read);
    Node& node = *layer.node;
    if (position < node.num_args())
      node.update_arg(static_cast<std::int64_t>(position), read);
    else if (position == node.num_args() && !node.has_kwarg(name))
      node.insert_arg(static_cast<std::int64_t>(position), read);
    else
      node.update_kwarg(name, read);
  }

  // Whether what stands there belongs to this graph alone, if only one of its nodes uses it.
  bool may_replace(const std::string& path) const {
    return is_own_attribute(module_, path) && !tree_.is_used_by_others(module_, path);
  }

  // As what the weight is: a parameter, buffer or constant.
  void store(const std::string& to, const std::string& like, const at::Tensor& tensor) {
    switch (module_.attr_kind(like)) {
      case GraphOwner::AttrKind::kParameter:
        return module_.set_parameter(to, tensor);
      case GraphOwner::AttrKind::kBuffer:
        return module_.set_buffer(to, tensor);
      default:
        return module_.set_constant(to, tensor);
    }
  }

  static std::string new_bias_path(const std::string& weight_path) {
    constexpr std::string_view kLeaf = "weight";
    const bool named_weight =
        weight_path == kLeaf || weight_path.ends_with("." + std::string(kLeaf));
    return named_weight ? weight_path.substr(0, weight_path.size() - kLeaf.size()) + "bias"
                        : weight_path + "_bias";
  }

  std::string fresh(const std::string& path) const {
    return module_.fresh_attribute(flat_path(path) + "_fused");
  }

  void erase(Node& node) {
    if (node.op() == Opcode::kCallModule || node.op() == Opcode::kGetAttr) {
      left_behind_.push_back(node.target().str());
      uses_.remove(node);
    }
    graph_.erase_node(node);
  }

  void erase_unused_reads(const std::vector<Node*>& nodes) {
    for (Node* node : nodes)
      if (node->op() == Opcode::kGetAttr && node->num_users() == 0) erase(*node);
  }

  GraphModule& module_;
  Graph& graph_;
  const FuseConvBnOptions& options_;
  ConvBnFinder finder_;
  AttributeUses uses_;
  const TreeUses& tree_;
  std::vector<std::string> left_behind_;  // paths that may have lost their last use
};

}  // namespace

PassResult fuse_conv_bn(GraphModule& module, const FuseConvBnOptions& options) {
  const TreeUses tree(module);
  return rewrite_each_graph_module(
      module, [&](GraphModule& nested) { return Fuser(nested, tree, options).run(); });
}

}  // namespace fx
