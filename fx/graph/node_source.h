#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/node.h"

namespace fx {

/// How a node came from another one.
enum class NodeSourceAction : std::uint8_t { kCreate, kReplace };

/// One link of the chain that says where a node comes from (torch.fx.traceback.NodeSource):
/// meta()["from_node"] is a std::vector<NodeSource>. A record of text: it holds no node, so that it
/// outlives graphs.
struct NodeSource {
  std::string name;            ///< of the node it came from
  std::string target;          ///< of that node
  std::uint64_t graph_id = 0;  ///< tells graphs that live at the same time apart; 0: none
  std::string pass_name;       ///< what made the new node
  std::vector<NodeSourceAction> actions;
  std::vector<NodeSource> from_node;  ///< where that node came from, as known at the time

  NodeSource() = default;
  explicit NodeSource(const Node& node, std::string_view pass_name = {},
                      std::vector<NodeSourceAction> actions = {});

  /// "create+replace".
  std::string action_string() const;
  /// One line a record, those it came from indented below it, at most ten levels.
  std::string print_readable(std::size_t indent = 0) const;
  /// torch.fx's to_dict as JSON: name, target, graph_id, pass_name, action, from_node.
  std::string to_json() const;
  std::size_t hash() const;

  friend bool operator==(const NodeSource&, const NodeSource&) = default;
};

/// meta()["from_node"], or empty.
std::vector<NodeSource> from_node(const Node& node);

/// For every node of the graph that has one, where it comes from: {"name": [to_json, ...], ...}.
std::string get_graph_provenance_json(const Graph& graph);

}  // namespace fx

template <>
struct std::hash<fx::NodeSource> {
  std::size_t operator()(const fx::NodeSource& source) const { return source.hash(); }
};
