#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx::loops {

/// Which nodes run as one kernel, and why the others do not.
struct FusionPlan {
  std::vector<std::vector<Node*>> groups;                ///< each in graph order
  std::unordered_map<const Node*, std::string> reasons;  ///< of calls that are in no group
};

/// Finds groups of calls that each fit one nest: same sizes, at most one set of reduced dimensions,
/// no path out of a group and back, of values or of effects. Nodes need the "tensor_meta" that
/// shape_prop writes; sizes in it are an example. A view is read where it is used, so
/// that it costs nothing: views with several users are copied first, one for each user, which
/// changes the graph but no result.
FusionPlan plan_fusion(GraphModule& module);

}  // namespace fx::loops
