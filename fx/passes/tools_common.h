#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/ops/value.h"

/// Small things that passes for backends have in common (torch.fx.passes.tools_common).
namespace fx {

/// Whether the node calls something: a function, a method or a module (CALLABLE_NODE_OPS).
bool is_callable(const Node& node) noexcept;

/// What a call is a call of, by one name for reports and tables: the function's name, the method's,
/// or the class of the called module; empty when the module is missing (get_node_target).
std::string get_node_target(const GraphModule& module, const Node& node);

/// The kind of a value as the meta "type" has it: "Tensor", "int", "tuple".
std::string type_text(const Value& value);

/// Whether shape_prop saw the node give a tensor; false where it has not run
/// (is_node_output_tensor, the meta "type").
bool is_node_output_tensor(const Node& node) noexcept;

/// Sorts the nodes so that each stands behind its inputs, and otherwise as before: of the nodes
/// that are ready the first one (stable_topological_sort). The order of effects, as the list has it
/// now, stays; the output ends the graph. O(nodes log nodes). Whether anything moved.
/// @throws LintError kLintOrder "Input graph has cycles, unable to add ..."; nothing moved then.
bool stable_topological_sort(Graph& graph);

/// The same, breadth-first from the nodes without inputs (legalize_graph): a node comes as soon as
/// its last input has come, behind those that were ready before it.
bool legalize_graph(Graph& graph);

/// Calls that pass values which are no tensors to each other, and everything on a path between two
/// of them: groups that a backend which passes only tensors in and out has to run as one.
/// torch.fx's FxNetAccFusionsFinder, but that groups never overlap.
struct FusionGroups {
  static constexpr std::int32_t kNone = -1;
  std::vector<std::vector<Node*>> groups;  ///< each in graph order, of two nodes at least
  std::vector<std::int32_t> group_of;      ///< by node id: index into groups, or kNone

  /// The group of a node, or null.
  const std::vector<Node*>* find(const Node& node) const noexcept {
    const std::int32_t group = node.id() < group_of.size() ? group_of[node.id()] : kNone;
    return group == kNone ? nullptr : &groups[static_cast<std::size_t>(group)];
  }
};

/// The groups all of whose nodes are in `accepted` (by node id); nodes of the other groups are
/// taken out of it. A value is no tensor if its node has no meta "tensor_meta" (shape_prop).
/// O(nodes + arguments).
FusionGroups find_fusions(const Graph& graph, std::vector<bool>& accepted);

}  // namespace fx
