#include "fx/passes/operator_support.h"

#include <algorithm>

#include "fx/graph/module_types.h"
#include "fx/graph/tensor_meta.h"

namespace fx {
namespace {

bool is_call(const Node& node) {
  return node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod ||
         node.op() == Opcode::kCallModule;
}

std::optional<c10::ScalarType> dtype_of(const Node& node) {
  const TensorMeta* meta = tensor_meta(node);
  return meta ? std::optional(meta->dtype) : std::nullopt;
}

bool fits(const Argument& argument, const SupportedDtypes& dtypes) {
  const Node* node = argument.node_or_null();
  if (!node || !dtypes) return true;
  const auto dtype = dtype_of(*node);
  return dtype && std::find(dtypes->begin(), dtypes->end(), *dtype) != dtypes->end();
}

bool fits(const Node& node, const SupportedArguments& supported) {
  for (std::size_t i = 0; i < std::min(node.num_args(), supported.args.size()); ++i)
    if (!fits(node.args()[i], supported.args[i])) return false;
  return std::all_of(supported.kwargs.begin(), supported.kwargs.end(), [&](const auto& entry) {
    const Argument* value = node.find_kwarg(entry.first);
    return !value || fits(*value, entry.second);
  });
}

}  // namespace

OperatorSupport operator_support(
    std::map<std::string, std::optional<SupportedArguments>, std::less<>> targets) {
  return [targets = std::move(targets)](const GraphModule& module, const Node& node) {
    if (!is_call(node)) return true;
    std::string name = node.target().str();
    if (node.op() == Opcode::kCallModule) {
      const auto called = module.find_submodule(name);
      if (!called) return false;
      name = module_type_name(*called);
    }
    auto found = targets.find(name);
    if (found == targets.end() && node.op() == Opcode::kCallFunction &&
        node.target().function()->kind() == FunctionKind::kOperator)
      found = targets.find(std::string_view(name).substr(0, name.find('.')));
    return found != targets.end() && (!found->second || fits(node, *found->second));
  };
}

OperatorSupport support_targets(const std::set<std::string>& targets) {
  std::map<std::string, std::optional<SupportedArguments>, std::less<>> any;
  for (const std::string& target : targets) any.emplace(target, std::nullopt);
  return operator_support(std::move(any));
}

OperatorSupport chain(std::vector<OperatorSupport> supports) {
  return [supports = std::move(supports)](const GraphModule& module, const Node& node) {
    return std::all_of(supports.begin(), supports.end(),
                       [&](const auto& support) { return support(module, node); });
  };
}

OperatorSupport any_chain(std::vector<OperatorSupport> supports) {
  return [supports = std::move(supports)](const GraphModule& module, const Node& node) {
    return std::any_of(supports.begin(), supports.end(),
                       [&](const auto& support) { return support(module, node); });
  };
}

OperatorSupport decline_if_input_dtype(c10::ScalarType dtype) {
  return [dtype](const GraphModule&, const Node& node) {
    const auto inputs = node.all_input_nodes();
    return std::none_of(inputs.begin(), inputs.end(),
                        [&](const Node* input) { return dtype_of(*input) == dtype; });
  };
}

OperatorSupport decline_if_node_in_names(std::set<std::string> names) {
  return [names = std::move(names)](const GraphModule&, const Node& node) {
    return !names.contains(std::string(node.name()));
  };
}

}  // namespace fx
