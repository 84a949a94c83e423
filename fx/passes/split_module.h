#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "fx/graph/graph_module.h"

namespace fx {

/// The number of the partition that a node belongs to. Asked about each node but placeholders,
/// get_attr nodes and the output, in graph order.
using SplitCallback = std::function<int(const Node&)>;

struct SplitOptions {
  /// Call the partitions in the order in which their first nodes stand, instead of an order that
  /// follows from what they depend on.
  bool keep_original_order = false;
  /// Name the nodes of the submodules as in the original, instead of after their targets.
  bool keep_original_node_name = false;
  /// Name the inputs of submodules after the nodes they stand for, instead of "arg_N".
  bool keep_original_input_name = true;
  /// Submodules are called "submod_N", or "submod_AFFIX_N".
  std::string partition_affix = {};
  /// Submodules return a tuple also where there is one result.
  bool tuple_return = false;
};

/// Splits a module into submodules along the numbers that `split_callback` gives
/// (torch.fx.passes.split_module). The result calls one submodule a partition: what a partition
/// needs from others, from placeholders and from tensor attributes becomes an argument, what others
/// need a result. Submodules hold the modules they call, under the old paths with "_" for ".".
/// meta "partition_names" lists the submodules. The original is not changed; tensors and modules
/// are shared with it. O(nodes + arguments).
///
/// Effects keep their order: a partition that writes to memory comes behind those that read it
/// before, and in front of those that read it after.
/// @param qualname_map filled with the path of each called module in the result and in the
///   original: {"submod_1.lin": "lin"}.
/// @throws PassError kBadPartition "cycle exists between partitions!", with some of their names;
///   with keep_original_order also when that order is not one in which they can run.
std::shared_ptr<GraphModule> split_module(const GraphModule& module,
                                          const SplitCallback& split_callback,
                                          const SplitOptions& options = {},
                                          std::map<std::string, std::string>* qualname_map = {});

/// split_module for partitions that already stand in an order in which they can run, numbered by a
/// map that has every node but placeholders, get_attr nodes and the output: the submodules keep the
/// order of the graph and are lazy (GraphModule::set_lazy_recompile), so that one that is only
/// compiled further never builds a program. torch.fx.passes.split_module.split_module_simple.
/// @throws PassError kBadPartition for a node that the map has not, and for partitions that cannot
///   run in that order.
std::shared_ptr<GraphModule> split_module_simple(
    const GraphModule& module, const std::unordered_map<const Node*, int>& node_to_partition,
    const std::string& partition_affix = {});

}  // namespace fx
