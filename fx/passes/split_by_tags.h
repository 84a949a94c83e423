#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx {

/// The tag of a node: meta "tag" (std::string); empty if it has none.
std::string_view tag_of(const Node& node) noexcept;
void set_tag(Node& node, std::string_view tag);

struct SplitByTagsOptions {
  /// Submodules return a tuple also where there is one result.
  bool return_tuple = false;
};

/// Splits a module by the tags of its calls (torch.fx.passes.split_utils.split_by_tags): all nodes
/// of one tag become the submodule of that name, and the submodules are called in the order of
/// `tags`. Placeholders and the output stay; attributes are read where they are used. Nodes keep
/// their names and meta. A tag that no node has makes no submodule.
///
/// The original is not changed; tensors and modules are shared with it. O(nodes + arguments).
/// @param fqn_mapping filled with the path of each called module in the original and in the result:
///   {"linear1": "red.linear1"}; one that several parts call has one of its new paths.
/// @throws PassError kBadPartition for a call without a tag or with one that is not listed, and
/// when
///   a node depends, by values or by effects, on one with a later tag.
std::shared_ptr<GraphModule> split_by_tags(const GraphModule& module,
                                           const std::vector<std::string>& tags,
                                           const SplitByTagsOptions& options = {},
                                           std::map<std::string, std::string>* fqn_mapping = {});
/// The same with tags that a function gives.
std::shared_ptr<GraphModule> split_by_tags(const GraphModule& module,
                                           const std::vector<std::string>& tags,
                                           const std::function<std::string_view(const Node&)>& tag,
                                           const SplitByTagsOptions& options = {},
                                           std::map<std::string, std::string>* fqn_mapping = {});

/// Some calls that are to run together (torch.fx.passes.splitter_base.Subgraph).
struct Subgraph {
  bool is_acc = false;  ///< on the accelerator, as opposed to the CPU
  std::vector<Node*> nodes = {};
};

/// Moves calls whose result is no tensor (is_node_output_tensor) over the border of their subgraph:
/// those on the accelerator that another subgraph uses go there, with what depends on them here, so
/// that only tensors are passed. A node that several other subgraphs use stays, and so does one of
/// which something in a third subgraph depends. Returns the nodes that moved, in the order in which
/// they did (torch.fx's move_non_tensor_nodes_on_boundary). O(nodes^2) at worst.
std::vector<Node*> move_non_tensor_nodes_on_boundary(std::vector<Subgraph>& subgraphs);

}  // namespace fx
