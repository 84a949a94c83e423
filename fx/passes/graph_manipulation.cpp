#include "fx/passes/graph_manipulation.h"

#include <torch/nn/modules.h>

#include "fx/base/error.h"
#include "fx/graph/module_types.h"
#include "fx/passes/shape_prop.h"

namespace fx {
namespace {

using Attributes = std::map<std::string, Value>;

Value tensor_or_none(const at::Tensor& tensor) {
  return tensor.defined() ? Value(tensor) : Value();
}

template <std::size_t D>
Value sizes(const torch::ExpandingArray<D>& array) {
  return Value(std::vector<std::int64_t>(array->begin(), array->end()));
}

template <typename Module>
bool fetch_linear(const torch::nn::Module& module, Attributes& out) {
  const auto* found = dynamic_cast<const Module*>(&module);
  if (!found) return false;
  out["weight"] = tensor_or_none(found->weight);
  out["bias"] = tensor_or_none(found->bias);
  return true;
}

template <typename Module>
bool fetch_conv(const torch::nn::Module& module, Attributes& out) {
  if (!fetch_linear<Module>(module, out)) return false;
  const auto& options = dynamic_cast<const Module&>(module).options;
  out["kernel_size"] = sizes(options.kernel_size());
  out["stride"] = sizes(options.stride());
  out["dilation"] = sizes(options.dilation());
  out["groups"] = Value(options.groups());
  std::visit(
      [&](const auto& padding) {
        using Padding = std::decay_t<decltype(padding)>;
        if constexpr (std::is_same_v<Padding, torch::enumtype::kValid>)
          out["padding"] = Value("valid");
        else if constexpr (std::is_same_v<Padding, torch::enumtype::kSame>)
          out["padding"] = Value("same");
        else
          out["padding"] = sizes(padding);
      },
      options.padding());
  out["padding_mode"] = Value(std::visit(
      [](const auto& mode) {
        using Mode = std::decay_t<decltype(mode)>;
        if constexpr (std::is_same_v<Mode, torch::enumtype::kReflect>) return "reflect";
        if constexpr (std::is_same_v<Mode, torch::enumtype::kReplicate>) return "replicate";
        if constexpr (std::is_same_v<Mode, torch::enumtype::kCircular>) return "circular";
        return "zeros";
      },
      options.padding_mode()));
  return true;
}

template <typename Module>
bool fetch_batch_norm(const torch::nn::Module& module, Attributes& out) {
  if (!fetch_linear<Module>(module, out)) return false;
  const auto& norm = dynamic_cast<const Module&>(module);
  out["running_mean"] = tensor_or_none(norm.running_mean);
  out["running_var"] = tensor_or_none(norm.running_var);
  out["eps"] = Value(norm.options.eps());
  return true;
}

bool fetch_others(const torch::nn::Module& module, Attributes& out) {
  if (const auto* pool = dynamic_cast<const torch::nn::MaxPool2dImpl*>(&module)) {
    out["kernel_size"] = sizes(pool->options.kernel_size());
    out["stride"] = sizes(pool->options.stride());
    out["padding"] = sizes(pool->options.padding());
    out["dilation"] = sizes(pool->options.dilation());
    out["return_indices"] = Value(false);  // forward of LibTorch's class returns the values alone
    out["ceil_mode"] = Value(pool->options.ceil_mode());
    return true;
  }
  if (const auto* relu = dynamic_cast<const torch::nn::ReLUImpl*>(&module)) {
    out["inplace"] = Value(relu->options.inplace());
    return true;
  }
  return dynamic_cast<const torch::nn::AdaptiveAvgPool2dImpl*>(&module) != nullptr;
}

}  // namespace

std::int64_t replace_target_nodes_with(GraphModule& module, Opcode old_op, const Target& old_target,
                                       Opcode new_op, const Target& new_target) {
  std::int64_t count = 0;
  for (Node* node : module.graph().find_nodes(old_op, old_target)) {
    node->set_op(new_op, new_target);
    ++count;
  }
  return count;
}

const TensorMeta& get_tensor_meta(const Node& node) {
  if (const TensorMeta* meta = tensor_meta(node)) return *meta;
  throw PassError(ErrorCode::kBadPassOption, "Node " + std::string(node.name()) +
                                                 " has no tensor metadata associated with it! "
                                                 "Check that shape propagation has run");
}

SizeBytes get_size_of_node(const GraphModule& module, const Node& node) {
  SizeBytes size;
  size.output_size = size.total_size = get_tensor_meta(node).nbytes();
  if (node.op() == Opcode::kCallModule)
    if (const auto called = module.find_submodule(node.target().str()))
      for (const at::Tensor& parameter : called->parameters())
        if (parameter.defined()) size.total_size += static_cast<std::int64_t>(parameter.nbytes());
  return size;
}

std::map<std::string, SizeBytes> get_size_of_all_nodes(GraphModule& module,
                                                       const Values* example_inputs) {
  if (example_inputs) ShapeProp(module).propagate(*example_inputs);
  std::map<std::string, SizeBytes> sizes;
  for (Node& node : module.graph().nodes()) {
    if (node.is_output()) break;
    const SizeBytes size = get_size_of_node(module, node);
    node.meta().set("size_bytes", size);
    sizes.emplace(node.name(), size);
  }
  return sizes;
}

std::map<std::string, Value> extract_attrs_for_lowering(const torch::nn::Module& module) {
  using namespace torch::nn;
  Attributes out;
  out["name"] = Value(module_type_name(module));
  if (fetch_linear<LinearImpl>(module, out) || fetch_conv<Conv1dImpl>(module, out) ||
      fetch_conv<Conv2dImpl>(module, out) || fetch_conv<Conv3dImpl>(module, out) ||
      fetch_batch_norm<BatchNorm1dImpl>(module, out) ||
      fetch_batch_norm<BatchNorm2dImpl>(module, out) ||
      fetch_batch_norm<BatchNorm3dImpl>(module, out) || fetch_others(module, out))
    return out;
  throw PassError(
      ErrorCode::kBadPassOption,
      module_type_name(module) + " is not among the modules whose attributes are known");
}

void lift_lowering_attrs_to_nodes(GraphModule& module) {
  for (Node& node : module.graph().nodes()) {
    if (node.op() != Opcode::kCallModule) continue;
    const auto called = module.find_submodule(node.target().str());
    if (!called) continue;
    if (auto* nested = dynamic_cast<GraphModule*>(called.get()))
      lift_lowering_attrs_to_nodes(*nested);
    else
      node.meta().set("attrs_for_lowering", extract_attrs_for_lowering(*called));
  }
}

}  // namespace fx
