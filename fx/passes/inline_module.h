#pragma once

#include <string>
#include <string_view>

#include "fx/graph/graph_module.h"

namespace fx {

/// Puts the nodes of the GraphModule that `call` calls in place of the call, with their meta; its
/// attributes are read under their paths in `module`, constants of the submodule move to it. Items
/// that operator.getitem takes of a result of several values are replaced by the values themselves.
/// Returns from nodes of the submodule to what now stands for them. The submodule stays where it
/// is; delete_all_unused_submodules() removes it if no node uses what is below it. O(nodes).
/// torch.fx.experimental.const_fold._inline_module.
/// @throws GraphError kMissingAttribute when the call's target is no GraphModule or an argument is
///   missing; nothing is changed then.
ValueMap inline_module(GraphModule& module, Node& call);

/// `name` as the name of an attribute that `module` has not: other characters than letters, digits
/// and "_" become "_", and a number is appended or counted up ("a", "a_1", "a_2")
/// (torch.fx.experimental.const_fold.get_unique_attr_name_in_module).
std::string get_unique_attr_name_in_module(const GraphModule& module, std::string_view name);

}  // namespace fx
