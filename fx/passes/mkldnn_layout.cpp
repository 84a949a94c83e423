#include "fx/passes/mkldnn_layout.h"

#include <ATen/Context.h>
#include <ATen/ops/mkldnn_reorder_conv2d_weight.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include "fx/analysis/alias.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/extract.h"
#include "fx/passes/fuse_conv_bn.h"
#include "fx/passes/remove_noops.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/union_find.h"

namespace fx {
namespace {

template <typename Impl>
const Impl* as_exactly(const torch::nn::Module& module) {
  return typeid(module) == typeid(Impl) ? dynamic_cast<const Impl*>(&module) : nullptr;
}

bool is_float_on_cpu(const at::Tensor& tensor) {
  return !tensor.defined() || (tensor.scalar_type() == at::kFloat && tensor.device().is_cpu() &&
                               tensor.layout() == at::kStrided);
}

// The numbers of a padding; nothing for "same", which has none of its own.
std::optional<std::vector<std::int64_t>> padding_of(const torch::nn::Conv2dImpl& module) {
  const auto& padding = module.options.padding();
  if (std::holds_alternative<torch::enumtype::kValid>(padding))
    return std::vector<std::int64_t>{0, 0};
  const auto* numbers = std::get_if<torch::ExpandingArray<2>>(&padding);
  if (!numbers) return std::nullopt;
  return std::vector<std::int64_t>((*numbers)->begin(), (*numbers)->end());
}

// Whether the module starts a region: its weights tell that its input is float32.
bool is_head(const torch::nn::Module& module) {
  if (const auto* conv = as_exactly<torch::nn::Conv2dImpl>(module))
    return is_float_on_cpu(conv->weight) && is_float_on_cpu(conv->bias) && padding_of(*conv) &&
           std::holds_alternative<torch::enumtype::kZeros>(conv->options.padding_mode());
  if (const auto* linear = as_exactly<torch::nn::LinearImpl>(module))
    return is_float_on_cpu(linear->weight) && is_float_on_cpu(linear->bias);
  if (const auto* norm = as_exactly<torch::nn::BatchNorm2dImpl>(module))
    return !norm->is_training() && norm->weight.defined() && norm->running_mean.defined() &&
           is_float_on_cpu(norm->weight) && is_float_on_cpu(norm->bias) &&
           is_float_on_cpu(norm->running_mean) && is_float_on_cpu(norm->running_var);
  return false;
}

// What MKL-DNN can do, whatever the size of the images.
bool is_follower(const torch::nn::Module& module) {
  if (const auto* relu = as_exactly<torch::nn::ReLUImpl>(module)) return !relu->options.inplace();
  if (const auto* pool = as_exactly<torch::nn::AvgPool2dImpl>(module))
    return !pool->options.divisor_override();
  if (const auto* pool = as_exactly<torch::nn::MaxPool2dImpl>(module))
    return *pool->options.dilation() == std::array<std::int64_t, 2>{1, 1};
  if (const auto* pool = as_exactly<torch::nn::AdaptiveAvgPool2dImpl>(module))
    return std::ranges::all_of(*pool->options.output_size(),
                               [](const auto& size) { return size == 1; });
  return as_exactly<torch::nn::SigmoidImpl>(module) != nullptr;
}

std::string_view operation_of(const Node& node) {
  if (node.op() == Opcode::kCallMethod) return node.target().str();
  if (node.op() != Opcode::kCallFunction) return {};
  const Function& function = *node.target().function();
  return function.kind() == FunctionKind::kWrapped ? std::string_view() : function.base_name();
}

// The nodes that a node reads, if it reads nothing else: no keywords, no numbers.
std::optional<std::vector<Node*>> plain_operands(const Node& node) {
  std::vector<Node*> operands;
  if (!node.kwargs().empty()) return std::nullopt;
  for (const Argument& argument : node.args()) {
    if (!argument.is_node()) return std::nullopt;
    operands.push_back(&argument.node());
  }
  return operands;
}

class RegionFinder {
 public:
  explicit RegionFinder(GraphModule& module)
      : module_(module), aliases_(module.graph()), sets_(module.graph().size()) {}

  std::vector<MkldnnRegion> find() {
    std::size_t index = 0;
    for (Node& node : module_.graph().nodes()) {
      if (belongs(node)) {
        members_.emplace(&node, index);
        for (const Node* input : node.all_input_nodes())
          if (const auto found = members_.find(input); found != members_.end())
            sets_.join(index, found->second);
      }
      ++index;
    }
    std::vector<MkldnnRegion> regions;
    std::unordered_map<std::size_t, std::size_t> numbers;
    for (Node& node : module_.graph().nodes()) {
      const auto found = members_.find(&node);
      if (found == members_.end()) continue;
      const auto [number, is_new] = numbers.emplace(sets_.find(found->second), regions.size());
      if (is_new) regions.emplace_back();
      add(regions[number->second], node);
    }
    return regions;
  }

 private:
  bool belongs(const Node& node) const {
    if (node.op() != Opcode::kCallModule && node.op() != Opcode::kCallFunction &&
        node.op() != Opcode::kCallMethod)
      return false;
    const auto operands = plain_operands(node);
    if (!operands || operands->empty() || aliases_.is_written(node) ||
        std::ranges::any_of(*operands,
                            [&](const Node* input) { return aliases_.is_written(*input); }))
      return false;
    if (node.op() == Opcode::kCallModule) {
      const auto called = module_.find_submodule(node.target().str());
      if (!called || operands->size() != 1) return false;
      return is_head(*called) || (is_follower(*called) && members_.contains((*operands)[0]));
    }
    if (!std::ranges::all_of(*operands,
                             [&](const Node* input) { return members_.contains(input); }))
      return false;
    const std::string_view operation = operation_of(node);
    if (operation == "relu" || operation == "sigmoid") return operands->size() == 1;
    return (operation == "add" || operation == "mul") && operands->size() == 2 &&
           same_shape(*(*operands)[0], *(*operands)[1]);
  }

  // MKL-DNN does not broadcast.
  static bool same_shape(const Node& a, const Node& b) {
    const TensorMeta* left = tensor_meta(a);
    const TensorMeta* right = tensor_meta(b);
    return &a == &b || (left && right && left->shape == right->shape);
  }

  void add(MkldnnRegion& region, Node& node) const {
    region.nodes.push_back(&node);
    for (Node* input : node.all_input_nodes())
      if (!members_.contains(input) &&
          std::ranges::find(region.inputs, input) == region.inputs.end())
        region.inputs.push_back(input);
    if (std::ranges::any_of(node.users(), [&](Node* user) { return !members_.contains(user); }))
      region.outputs.push_back(&node);
  }

  GraphModule& module_;
  AliasAnalysis aliases_;
  UnionFind sets_;
  std::unordered_map<const Node*, std::size_t> members_;
};

// Moves the nodes of one region to tensors in MKL-DNN's layout.
class RegionConverter {
 public:
  explicit RegionConverter(GraphModule& module) : module_(module), graph_(module.graph()) {}

  void convert(const MkldnnRegion& region) {
    const c10::NoGradGuard no_grad;
    const std::unordered_set<Node*> outputs(region.outputs.begin(), region.outputs.end());
    const std::unordered_set<Node*> members(region.nodes.begin(), region.nodes.end());
    for (Node* node : region.nodes) {
      node->set_args(converted_inputs(*node));
      in_layout_.insert(node);
      Node* made = node->op() == Opcode::kCallModule ? convert_module(*node) : node;
      if (outputs.contains(node)) give_back(*node, *made, members);
      if (made == node) continue;
      node->replace_all_uses_with(*made);
      graph_.erase_node(*node);
    }
    converted_.clear();
  }

 private:
  Args converted_inputs(Node& node) {
    Args args;
    for (const Argument& argument : node.args()) {
      Node& input = argument.node();
      args.emplace_back(is_converted(input) ? input : convert_input(node, input));
    }
    return args;
  }

  bool is_converted(const Node& node) const { return in_layout_.contains(&node); }

  Node& convert_input(Node& before, Node& input) {
    Node*& made = converted_[&input];
    if (!made) {
      const auto guard = graph_.inserting_before(before);
      made = &graph_.call_method("to_mkldnn", {input});
    }
    return *made;
  }

  // Users outside of the region read a dense copy.
  void give_back(Node& node, Node& made, const std::unordered_set<Node*>& members) {
    const auto guard = graph_.inserting_after(made);
    Node& dense = graph_.call_method("to_dense", {made});
    node.replace_all_uses_with(
        dense, [&](Node& user) { return &user != &dense && !members.contains(&user); });
  }

  // A head becomes a function of constants; other modules take tensors of any layout.
  Node* convert_module(Node& node) {
    const auto called = module_.find_submodule(node.target().str());
    const auto guard = graph_.inserting_before(node);
    const Argument input = node.args()[0];
    Node* made = &node;
    if (const auto* conv = as_exactly<torch::nn::Conv2dImpl>(*called)) {
      const auto& options = conv->options;
      const std::vector<std::int64_t> padding = *padding_of(*conv);
      const at::Tensor weight = at::mkldnn_reorder_conv2d_weight(
          conv->weight.detach().to_mkldnn(), padding, *options.stride(), *options.dilation(),
          options.groups());
      const auto list = [](at::IntArrayRef numbers) {
        return Argument::list({numbers.begin(), numbers.end()});
      };
      made = &graph_.call_function(
          "aten::mkldnn_convolution",
          {input, constant(weight), optional_constant(conv->bias), list(padding),
           list(*options.stride()), list(*options.dilation()), options.groups()});
    } else if (const auto* linear = as_exactly<torch::nn::LinearImpl>(*called)) {
      made = &graph_.call_function(
          "aten::mkldnn_linear",
          {input, constant(linear->weight.detach().to_mkldnn()), optional_constant(linear->bias)});
    } else if (const auto* norm = as_exactly<torch::nn::BatchNorm2dImpl>(*called)) {
      made = &graph_.call_function(
          "aten::batch_norm",
          {input, optional_constant(norm->weight), optional_constant(norm->bias),
           optional_constant(norm->running_mean), optional_constant(norm->running_var), false,
           norm->options.momentum().value_or(0.1), norm->options.eps(), false});
    }
    if (made != &node) made->meta() = node.meta();
    in_layout_.insert(made);
    return made;
  }

  Argument constant(const at::Tensor& tensor) {
    const std::string path = module_.fresh_attribute("_mkldnn");
    module_.set_constant(path, tensor);
    return graph_.get_attr(path);
  }

  Argument optional_constant(const at::Tensor& tensor) {
    return tensor.defined() ? constant(tensor.detach().to_mkldnn()) : Argument();
  }

  GraphModule& module_;
  Graph& graph_;
  std::unordered_map<Node*, Node*> converted_;  // dense values, of this region
  std::unordered_set<const Node*> in_layout_;
};

double seconds_of(GraphModule& module, const Values& inputs, int iterations, int warmup) {
  const c10::NoGradGuard no_grad;
  for (int i = 0; i < warmup; ++i) module(inputs);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < iterations; ++i) module(inputs);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::string> names_of(const std::vector<Node*>& nodes) {
  std::vector<std::string> names;
  for (const Node* node : nodes) names.emplace_back(node->name());
  return names;
}

}  // namespace

MkldnnHeuristic mkldnn_longer_than(std::size_t nodes) {
  return [nodes](const GraphModule&, const MkldnnRegion& region) {
    return region.nodes.size() > nodes;
  };
}

MkldnnHeuristic mkldnn_autotuner(Values example_inputs, int iterations, int warmup) {
  return [example_inputs = std::move(example_inputs), iterations, warmup](
             const GraphModule& module, const MkldnnRegion& region) {
    const auto known = [](const Node* node) { return tensor_meta(*node) != nullptr; };
    if (!std::ranges::all_of(region.inputs, known))
      ShapeProp(const_cast<GraphModule&>(module)).propagate(example_inputs);
    if (!std::ranges::all_of(region.inputs, known)) return false;
    Values samples;
    for (const Node* input : region.inputs)
      samples.emplace_back(at::randn(tensor_meta(*input)->shape));
    const auto dense = extract_subgraph(module, names_of(region.inputs), names_of(region.outputs));
    const auto converted = dense->deep_copy();
    use_mkldnn_layout(*converted);
    converted->recompile();
    return seconds_of(*converted, samples, iterations, warmup) <
           seconds_of(*dense, samples, iterations, warmup);
  };
}

std::vector<MkldnnRegion> mkldnn_regions(GraphModule& module) {
  if (module.is_training() || !at::hasMKLDNN()) return {};
  return RegionFinder(module).find();
}

PassResult use_mkldnn_layout(GraphModule& module, const MkldnnHeuristic& heuristic) {
  PassResult result;
  std::vector<MkldnnRegion> wanted;
  for (MkldnnRegion& region : mkldnn_regions(module))
    if (!heuristic || heuristic(module, region)) wanted.push_back(std::move(region));
  RegionConverter converter(module);
  for (const MkldnnRegion& region : wanted) {
    converter.convert(region);
    ++result.rewrites;
  }
  result.changed = result.rewrites > 0;
  return result;
}

PassResult optimize_for_inference(GraphModule& module, const OptimizeForInferenceOptions& options) {
  PassResult result;
  const auto add = [&](const PassResult& step) {
    result.changed |= step.changed;
    result.rewrites += step.rewrites;
  };
  if (options.conv_bn_fuse) add(fuse_conv_bn(module));
  if (options.remove_dropout) add(remove_dropout(module));
  if (options.mkldnn_layout) add(use_mkldnn_layout(module, options.heuristic));
  return result;
}

}  // namespace fx
