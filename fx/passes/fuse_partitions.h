#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx {

/// Some nodes of a graph as a module of their own (torch.fx.passes.utils.fuser_utils).
struct FusedPartition {
  std::shared_ptr<GraphModule> module;
  std::vector<Node*> inputs;   ///< nodes of the original that feed its placeholders, in order
  std::vector<Node*> outputs;  ///< nodes of the original whose values it returns, in order
};

/// Whether `nodes` of one graph can run as one call: no path leaves them and comes back, neither of
/// values nor of effects (EffectOrder). O(nodes of the graph).
bool validate_partition(std::span<Node* const> nodes);
/// The same for several partitions at once, of one graph: also no circle through more than one.
/// @throws PassError kBadPartition as fuse_by_partitions, but for circles.
bool validate_partitions(const std::vector<std::vector<Node*>>& partitions);

struct FuseOptions {
  /// The calls are named "prefixN", N counting the partitions.
  std::string prefix = "fused_";
  /// Return a tuple also where there is one result.
  bool always_return_tuple = false;
  /// Recompile the module at the end.
  bool recompile = true;
};

/// Copies `nodes`, in graph order, into a module that shares attributes with `module`. Inputs are
/// in the order of their first use, or in the graph's if they are all placeholders. What nodes
/// outside use is returned: one value as it is, several in a tuple. O(nodes + arguments).
/// @throws PassError kBadPartition for a placeholder, an output, a node of another graph or one
///   that is no more, and for nodes that validate_partition refuses.
FusedPartition fuse_as_graph_module(const GraphModule& module, std::span<Node* const> nodes,
                                    std::string class_name = "GraphModule",
                                    bool always_return_tuple = false);

/// Replaces each partition by the call of a submodule that holds its nodes. Each call stands where
/// the last node of its partition stood, and nodes move behind calls whose results they need, in
/// an order that keeps both the flow of values and that of effects; all others keep their order.
/// Returns the calls. O(nodes log nodes). Nothing is changed on error.
/// @throws PassError kBadPartition as above, for a node in two partitions, and for partitions that
///   depend on each other in a circle.
std::vector<Node*> fuse_by_partitions(GraphModule& module,
                                      const std::vector<std::vector<Node*>>& partitions,
                                      const FuseOptions& options = {});

}  // namespace fx
