#pragma once

#include <c10/core/ScalarType.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

/// What a backend can run (torch.fx.passes.operator_support): functions from a node to yes or no,
/// which combine with chain and any_chain.
namespace fx {

using OperatorSupport = std::function<bool(const GraphModule& module, const Node& node)>;

/// Dtypes that an argument may have; nothing: any. A tensor of which no dtype is known (shape_prop
/// has not run) fits no list.
using SupportedDtypes = std::optional<std::vector<c10::ScalarType>>;

/// The arguments that one target accepts. Those not listed, and those that are no nodes, are not
/// checked.
struct SupportedArguments {
  std::vector<SupportedDtypes> args = {};
  std::map<std::string, SupportedDtypes> kwargs = {};
};

/// Calls of the targets that are listed, by their names: a function ("operator.add",
/// "aten::relu", "aten::add.Tensor"; without overload all of them), a method ("relu"), or the class
/// of a module ("torch.nn.Linear"). A target without arguments takes all. Nodes that call nothing
/// are supported.
OperatorSupport operator_support(
    std::map<std::string, std::optional<SupportedArguments>, std::less<>> targets);
/// The same for targets that take any arguments.
OperatorSupport support_targets(const std::set<std::string>& targets);

/// What all (any) of them support. chain() of none supports everything, any_chain() nothing.
OperatorSupport chain(std::vector<OperatorSupport> supports);
OperatorSupport any_chain(std::vector<OperatorSupport> supports);

/// No node that reads a tensor of that dtype (torch.fx's OpSupports.decline_if_input_dtype).
OperatorSupport decline_if_input_dtype(c10::ScalarType dtype);
/// No node of these names (OpSupports.decline_if_node_in_names).
OperatorSupport decline_if_node_in_names(std::set<std::string> names);

}  // namespace fx
