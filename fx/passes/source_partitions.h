#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

/// The nodes that one call in the source became (torch.fx.passes.utils.source_matcher_utils).
struct SourcePartition {
  std::vector<Node*> nodes = {};         ///< in graph order
  std::string source = {};               ///< the wanted source that it was found by
  std::vector<Node*> input_nodes = {};   ///< what it reads of other nodes, but attributes
  std::vector<Node*> output_nodes = {};  ///< those of its nodes that others use
  std::vector<Node*> params = {};        ///< its get_attr nodes
};

/// Groups nodes by where they come from: by the function or leaf module that was called
/// ("torch.nn.functional.linear", "torch.nn.Linear"). In this order a node is taken by
/// - meta "source_fn_stack" (vector of pairs of name and source; the last one counts),
/// - meta "torch_fn" (pair of name and "class.function": the function, "linear", is the source; or
///   such a pair as exported programs write it, "name;class.function"),
/// - meta "nn_module_stack" (ModuleStack: pairs of path and class; the last one counts), for calls
///   of functions,
/// and, for nodes of a traced graph that have none of these, by what they call: the function, the
/// method, or the class of the module. Calls of one module at different places are partitions of
/// their own only where their names differ ("linear", "linear_1"). Classes are named as in Python;
/// "torch.nn.modules.linear.Linear" and "torch.nn.Linear" are the same.
/// @param filter a partition with a node for which it says false is left out.
/// @returns partitions by source, in graph order of their first nodes.
std::map<std::string, std::vector<SourcePartition>> get_source_partitions(
    const Graph& graph, const std::vector<std::string>& wanted_sources,
    const std::function<bool(const Node&)>& filter = {});

/// Whether a node of `second` uses one of `first`. O(uses).
bool check_subgraphs_connected(const SourcePartition& first, const SourcePartition& second);

}  // namespace fx
