#include "fx/passes/normalize.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/graph/module_types.h"
#include "fx/passes/annotate_types.h"
#include "fx/passes/named_arguments.h"
#include "fx/passes/nested.h"
#include "fx/passes/tools_common.h"

namespace fx {
namespace {

constexpr std::pair<std::string_view, std::string_view> kOperators[] = {
    {"torch.add", "operator.add"},       {"torch.div", "operator.truediv"},
    {"torch.eq", "operator.eq"},         {"torch.floor_divide", "operator.floordiv"},
    {"torch.ge", "operator.ge"},         {"torch.gt", "operator.gt"},
    {"torch.le", "operator.le"},         {"torch.lt", "operator.lt"},
    {"torch.mul", "operator.mul"},       {"torch.ne", "operator.ne"},
    {"torch.remainder", "operator.mod"}, {"torch.sub", "operator.sub"}};

bool set_arguments(Node& node, Args args, Kwargs kwargs) {
  if (std::ranges::equal(args, node.args()) && std::ranges::equal(kwargs, node.kwargs()))
    return false;
  node.set_args_kwargs(std::move(args), std::move(kwargs));
  return true;
}

bool normalize_function(Node& node, bool only_kwargs) {
  const auto named = NamedArguments::of(node);
  if (!named) return false;
  Args args;
  if (!only_kwargs) args.assign(node.args().begin(), node.args().end());
  const Function& function = *node.target().function();
  // Python's functional has defaults of its own: those of the operator would be wrong there.
  const bool with_defaults = !function.name().starts_with("torch.nn.functional.");
  Kwargs keywords;
  std::size_t index = 0;
  for (KwArg& keyword : named->keywords()) {
    const bool is_positional = index++ < node.num_args();
    const bool is_self = function.kind() == FunctionKind::kTorch && keyword.key == "self";
    const bool is_given = is_positional || node.has_kwarg(keyword.key.str()) ||
                          (keyword.key == "self" && node.has_kwarg("input"));
    if ((is_positional && !only_kwargs) || (!is_given && !with_defaults)) continue;
    keywords.emplace_back(is_self ? Symbol("input") : keyword.key, std::move(keyword.value));
  }
  return set_arguments(node, std::move(args), std::move(keywords));
}

// torch.nn has no table of the defaults, so that arguments which are left out stay left out.
bool normalize_module(const GraphModule& module, Node& node, bool only_kwargs) {
  const auto called = module.find_submodule(node.target().str());
  if (!called || !only_kwargs) return false;
  Kwargs keywords;
  auto add = [&](std::string_view name, std::size_t index, bool is_required) {
    if (index < node.num_args())
      keywords.emplace_back(name, node.args()[index]);
    else if (const Argument* given = node.find_kwarg(name))
      keywords.emplace_back(name, *given);
    else
      return !is_required;
    return !name.empty();
  };
  std::size_t known = 0;
  if (const auto* nested = dynamic_cast<const GraphModule*>(called.get())) {
    for (const Node* input : nested->graph().placeholders()) {
      if (input->target().str().starts_with("*")) return false;
      if (!add(input->target().str(), known++, input->num_args() == 0)) return false;
    }
  } else {
    const ModuleType* type = find_module_type(*called);
    if (!type || !type->parameters) return false;
    for (const ModuleParameter& parameter : *type->parameters)
      if (!add(parameter.name, known++, parameter.required)) return false;
  }
  if (keywords.size() != node.num_args() + node.kwargs().size()) return false;
  return set_arguments(node, {}, std::move(keywords));
}

}  // namespace

PassResult normalize_args(GraphModule& module, const NormalizeArgsOptions& options) {
  return rewrite_each_graph_module(module, [&](GraphModule& gm) {
    std::int64_t count = 0;
    for (Node& node : gm.graph().nodes()) {
      if (node.op() == Opcode::kCallFunction)
        count += normalize_function(node, options.only_kwargs);
      else if (node.op() == Opcode::kCallModule)
        count += normalize_module(gm, node, options.only_kwargs);
    }
    return count;
  });
}

PassResult normalize_operators(GraphModule& module, const NormalizeOperatorsOptions& options) {
  return rewrite_each_graph_module(module, [&](GraphModule& gm) {
    std::int64_t count = 0;
    std::vector<bool> is_tensor(gm.graph().id_bound());
    for (Node& node : gm.graph().nodes()) {
      const bool takes_tensor = std::ranges::any_of(node.args(), [&](const Argument& arg) {
        return arg.is_node() && is_tensor[arg.node().id()];
      });
      const auto* row = std::ranges::find_if(
          kOperators, [&](const auto& entry) { return node.target() == entry.first; });
      if (node.op() == Opcode::kCallFunction && row != std::end(kOperators) && takes_tensor &&
          node.num_args() == 2 && node.kwargs().empty()) {
        node.set_target(row->second);
        ++count;
      }
      is_tensor[node.id()] =
          is_known_tensor(gm, node) ||
          (node.is_placeholder() && options.inputs_are_tensors && !node.meta().contains("type")) ||
          // What an operator makes of a tensor is one.
          (takes_tensor && node.op() == Opcode::kCallFunction &&
           std::ranges::any_of(kOperators,
                               [&](const auto& entry) { return node.target() == entry.second; }));
    }
    return count;
  });
}

}  // namespace fx
