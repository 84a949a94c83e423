#include "fx/plan/lifetimes.h"

#include <algorithm>
#include <string_view>

#include "fx/analysis/alias.h"
#include "fx/ops/op_info.h"

namespace fx {
namespace {

bool is_aten(const Overload& overload) {
  return std::string_view(overload.handle.operator_name().name).starts_with("aten::");
}

bool all_aten(const OpInfo& info) {
  return !info.overloads.empty() &&
         std::all_of(info.overloads.begin(), info.overloads.end(), is_aten);
}

// Whether the code behind the step is known not to keep its arguments. What is a view of what, and
// what is written, AliasAnalysis knows; it also knows the modules.
bool keeps_nothing(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kAttr:
    case Step::Kind::kItem:
    case Step::Kind::kModule:
      return true;
    case Step::Kind::kOperator:
      // Where no call fits it is made as a function or a method.
      if (!std::all_of(step.calls.begin(), step.calls.end(),
                       [](const OperatorCall& call) { return is_aten(*call.overload); }))
        return false;
      [[fallthrough]];
    case Step::Kind::kFunction:
    case Step::Kind::kMethod:
      if (!step.function)  // a method of a tensor; one of its own may be of any object
        return all_aten(OpInfo::of_method(step.target.str())) ||
               (step.args.size() == 1 && step.kwargs.empty());
      if (step.builtin)
        return step.function->kind() == FunctionKind::kBuiltin ||
               all_aten(OpInfo::of(*step.function));
      return all_aten(OpInfo::of(*step.function));
    case Step::Kind::kError:
      break;
  }
  return false;
}

}  // namespace

std::vector<ResultLifetime> result_lifetimes(const Plan& plan, const Graph& graph) {
  const AliasAnalysis aliases(graph);
  const std::vector<Step>& steps = plan.steps();
  std::vector<std::uint32_t> last(aliases.num_sets(), 0);
  std::vector<bool> kept(aliases.num_sets(), false);
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool may_keep = !keeps_nothing(step);
    last[aliases.set_of(*step.node)] = i;
    for (const Node* input : step.node->all_input_nodes()) {
      if (&input->graph() != &graph || input->is_erased()) continue;  // a step that fails
      last[aliases.set_of(*input)] = i;
      if (may_keep) kept[aliases.set_of(*input)] = true;
    }
  }
  std::vector<ResultLifetime> out(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Node& node = *steps[i].node;
    const AliasAnalysis::Set set = aliases.set_of(node);
    out[i].last = last[set];
    out[i].set = set;
    out[i].is_private = !aliases.is_external(node) && !aliases.is_written(node) &&
                        !aliases.reaches_output(node) && !kept[set];
  }
  return out;
}

}  // namespace fx
