#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "fx/graph/graph_module.h"

namespace fx {

/// How often the nodes of a graph use the attributes of its module: by tensor and module identity,
/// so that tied weights count together, and by path. Keep it up to date with add and remove.
class AttributeUses {
 public:
  /// O(nodes + attributes of called modules).
  explicit AttributeUses(const GraphModule& module);

  void add(const Node& node) { count(node, 1); }
  /// Before the node is erased or gets another target.
  void remove(const Node& node) { count(node, -1); }

  /// get_attr nodes that read the tensor, and call_module nodes whose module has it as a parameter
  /// or buffer.
  int of_tensor(const at::Tensor& tensor) const;
  /// call_module nodes that call the module, by whatever path.
  int of_module(const torch::nn::Module& module) const;
  /// Whether a node refers to the path, to something below it, or to a module above it.
  bool is_used(std::string_view path) const;
  /// Nodes that refer to the path or to something below it.
  int at_or_below(std::string_view path) const;

 private:
  void count(const Node& node, int change);

  const GraphModule* module_;
  std::unordered_map<const void*, int> tensors_;
  std::unordered_map<const void*, int> modules_;
  std::unordered_map<std::string, int> exact_;
  std::unordered_map<std::string, int> at_or_below_;
};

/// What the graphs of a module and of all GraphModules among its submodules use, by the place where
/// it is kept (the module that holds it and its name there): a graph may reach into a nested module
/// whose own graph is rewritten, and modules may stand at several paths. A snapshot, which stays
/// good while passes delete and replace only what is not used by others.
class TreeUses {
 public:
  /// O(nodes x depth of paths + attributes of called modules).
  explicit TreeUses(GraphModule& root);

  /// Whether another graph than that of `module` refers to what stands at `path` there, to
  /// something below it, or to a module above it.
  bool is_used_by_others(const GraphModule& module, std::string_view path) const;

 private:
  using Places = std::unordered_map<const torch::nn::Module*,
                                    std::unordered_map<std::string, const GraphModule*>>;

  void add(const torch::nn::Module& holder, const std::string& name, const GraphModule& user);
  void add_all_of(const torch::nn::Module& called, const GraphModule& user);

  Places users_;  // null: several
};

/// Whether an attribute at `path` belongs to `module` alone: all its parents are plain containers.
/// Modules with behaviour may be shared with the model that the graph was captured from, so what is
/// below them must not be replaced. Parents that are missing would be made, as plain containers.
bool is_own_attribute(const GraphModule& module, std::string_view path);

/// The path as a name of its own: "_" for ".".
std::string flat_path(std::string path);

/// Deletes what stands at `path` if nothing uses it: a submodule, or a tensor and, with the last
/// one in use, the plain container it is in. Does nothing to what is not the module's own, or what
/// other graphs of the tree use.
void delete_unused_attribute(GraphModule& module, const AttributeUses& uses, const TreeUses& tree,
                             const std::string& path);

}  // namespace fx
