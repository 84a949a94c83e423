#include "fx/passes/quantize_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "fx/passes/attribute_uses.h"
#include "fx/passes/conv_bn_sites.h"
#include "fx/passes/nested.h"

namespace fx {

QuantizedWeight quantize_per_channel(const at::Tensor& weight) {
  const at::NoGradGuard no_grad;
  const at::Tensor wide = weight.detach().to(at::kDouble).flatten(1);
  // Of a channel without weights there is no largest one.
  at::Tensor scale = wide.numel() ? std::get<0>(wide.abs().max(1)) / 127.0
                                  : at::zeros({wide.size(0)}, wide.options());
  // In the weight's own dtype, so that scaling back uses the very same number; rounded up, so that
  // the largest value stays within 127.
  scale = scale.to(weight.scalar_type()).to(at::kDouble);
  scale = at::where(scale == 0, 1.0, scale);
  const at::Tensor values = (wide / scale.unsqueeze(1)).round().clamp(-127, 127);
  return {values.to(at::kChar).reshape(weight.sizes()).contiguous(),
          scale.to(weight.scalar_type())};
}

namespace {

// The functional call that a module stands for: target and arguments behind input, weight and bias.
struct FunctionalForm {
  const char* function;
  Args more;
};

template <std::size_t D>
std::optional<FunctionalForm> form_of_conv(const char* function,
                                           const torch::nn::detail::ConvNdOptions<D>& options) {
  if (!std::holds_alternative<torch::enumtype::kZeros>(options.padding_mode())) return std::nullopt;
  const auto* padding = std::get_if<torch::ExpandingArray<D>>(&options.padding());
  if (!padding) return std::nullopt;
  auto ints = [](const torch::ExpandingArray<D>& array) {
    return Argument(std::vector<std::int64_t>(array->begin(), array->end()));
  };
  return FunctionalForm{function,
                        {ints(options.stride()), ints(*padding), ints(options.dilation()),
                         Argument(options.groups())}};
}

std::optional<FunctionalForm> functional_form(const torch::nn::Module& module) {
  if (const auto* conv = dynamic_cast<const torch::nn::Conv1dImpl*>(&module))
    return form_of_conv("aten::conv1d", conv->options);
  if (const auto* conv = dynamic_cast<const torch::nn::Conv2dImpl*>(&module))
    return form_of_conv("aten::conv2d", conv->options);
  if (const auto* conv = dynamic_cast<const torch::nn::Conv3dImpl*>(&module))
    return form_of_conv("aten::conv3d", conv->options);
  return FunctionalForm{"aten::linear", {}};
}

class Quantizer {
 public:
  Quantizer(GraphModule& module, const TreeUses& tree, const QuantizeWeightsOptions& options)
      : module_(module),
        graph_(module.graph()),
        options_(options),
        finder_(module),
        uses_(module),
        tree_(tree) {}

  std::int64_t run() {
    std::int64_t quantized = 0;
    for (Node& node : graph_.nodes()) {
      const std::optional<LayerSite> layer = finder_.layer_at(node);
      if (!layer || layer->weight.numel() < options_.min_numel || layer->weight.dim() < 2) continue;
      if (!layer->weight.isfinite().all().item<bool>()) continue;
      quantized += layer->module ? quantize_module(*layer) : quantize_call(*layer);
    }
    for (const std::string& path : left_behind_)
      delete_unused_attribute(module_, uses_, tree_, path);
    return quantized;
  }

 private:
  // A call of a module becomes the functional call with attributes of its own.
  bool quantize_module(const LayerSite& layer) {
    Node& node = *layer.node;
    const std::string path = node.target().str();
    const std::optional<FunctionalForm> form = functional_form(*layer.module);
    const Argument* input = node.num_args() == 1 ? &node.args()[0] : node.find_kwarg("input");
    if (!form || !input || node.num_args() + node.kwargs().size() != 1) return false;
    if (uses_.of_module(*layer.module) != 1 || uses_.at_or_below(path) != 1) return false;
    // The layer holds the module; its path becomes a container of the new attributes.
    uses_.remove(node);
    if (is_own_attribute(module_, path) && !tree_.is_used_by_others(module_, path))
      module_.delete_submodule(path);
    const auto guard = graph_.inserting_before(node);
    Node& weight = scaled_back(layer.weight, path + ".weight");
    Argument bias;
    if (layer.bias.defined()) {
      const std::string bias_path = free_path(path + ".bias");
      module_.set_parameter(bias_path, layer.bias);
      bias = read(bias_path);
    }
    Args args = {*input, weight, bias};
    args.insert(args.end(), form->more.begin(), form->more.end());
    node.set_args_kwargs(std::move(args), {});
    node.set_op(Opcode::kCallFunction, Target::function(form->function));
    return true;
  }

  bool quantize_call(const LayerSite& layer) {
    const std::string path = layer.weight_node->target().str();
    if (layer.weight_node->num_users() != 1 || uses_.of_tensor(layer.weight) != 1) return false;
    const auto guard = graph_.inserting_before(*layer.node);
    Node& weight = scaled_back(layer.weight, path);
    layer.weight_node->replace_all_uses_with(weight);
    uses_.remove(*layer.weight_node);
    left_behind_.push_back(path);
    graph_.erase_node(*layer.weight_node);
    return true;
  }

  // The nodes that give the weight in its own dtype again.
  Node& scaled_back(const at::Tensor& weight, const std::string& path) {
    QuantizedWeight quantized = quantize_per_channel(weight);
    std::vector<std::int64_t> by_channel(static_cast<std::size_t>(weight.dim()), 1);
    by_channel[0] = -1;
    const std::string values = free_path(path + "_int8");
    const std::string scales = free_path(path + "_scale");
    module_.set_buffer(values, quantized.values);
    module_.set_buffer(scales, quantized.scales.reshape(by_channel));
    Node& wide = graph_.call_function("aten::to.dtype", {read(values), weight.scalar_type()});
    Node& scaled = graph_.call_function("aten::mul.Tensor", {wide, read(scales)});
    for (Node* node : {&wide, &scaled}) node->meta().set("no_constant_fold", std::any(true));
    return scaled;
  }

  Node& read(const std::string& path) {
    Node& node = graph_.get_attr(path);
    uses_.add(node);
    return node;
  }

  // A path that is free and below plain containers only: the old one, or one of its own.
  std::string free_path(const std::string& path) const {
    if (module_.attr_kind(path) == GraphOwner::AttrKind::kMissing &&
        is_own_attribute(module_, path))
      return path;
    const std::string flat = flat_path(path);
    return module_.attr_kind(flat) == GraphOwner::AttrKind::kMissing
               ? flat
               : module_.fresh_attribute(flat + "_");
  }

  GraphModule& module_;
  Graph& graph_;
  const QuantizeWeightsOptions& options_;
  ConvBnFinder finder_;
  AttributeUses uses_;
  const TreeUses& tree_;
  std::vector<std::string> left_behind_;  // paths that may have lost their last use
};

}  // namespace

PassResult quantize_weights(GraphModule& module, const QuantizeWeightsOptions& options) {
  const TreeUses tree(module);
  return rewrite_each_graph_module(
      module, [&](GraphModule& nested) { return Quantizer(nested, tree, options).run(); });
}

}  // namespace fx
