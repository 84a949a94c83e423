#pragma once

#include <map>
#include <string>

#include "fx/graph/graph_module.h"

namespace fx {

struct GraphDrawerOptions {
  /// Leave get_attr nodes out.
  bool ignore_getattr = false;
  /// Do not draw the tensors of called modules as boxes of their own.
  bool ignore_parameters_and_buffers = false;
  /// Of the arguments show those without nodes, which the arrows show already.
  bool skip_node_names_in_args = true;
  /// Show the file, line and code that a node's stack trace ends with.
  bool parse_stack_trace = false;
  /// The shape of the boxes, as Graphviz calls it.
  std::string dot_graph_shape = "box";
  /// Show arguments by name, with defaults, where that is known (normalized_arguments).
  bool normalize_args = false;
};

/// Draws GraphModules in the DOT language of Graphviz (torch.fx.passes.graph_drawer.FxGraphDrawer).
/// A box says name, opcode, target or class, arguments, number of users and, after shape_prop,
/// dtype, shape, requires_grad and stride. Calls of the same target have the same colour, in every
/// picture.
class FxGraphDrawer {
 public:
  /// `module` must outlive this. Pictures are made when they are asked for.
  FxGraphDrawer(const GraphModule& module, std::string name, GraphDrawerOptions options = {})
      : module_(module), name_(std::move(name)), options_(std::move(options)) {}

  /// The picture of the module, or of the nested one that get_all_dot_graphs names so.
  /// @throws GraphError kMissingAttribute when there is none of that name.
  std::string get_dot_graph(const std::string& submod_name = {}) const;
  std::string get_main_dot_graph() const { return get_dot_graph(); }
  std::string get_submod_dot_graph(const std::string& submod_name) const {
    return get_dot_graph(submod_name);
  }
  /// The pictures of the module and of all GraphModules that it calls, at any depth: by its name,
  /// "NAME_PATH", "NAME_PATH_PATH" and so on, with "_" for ".".
  std::map<std::string, std::string> get_all_dot_graphs() const;

 private:
  std::string draw(const GraphModule& module, const std::string& title) const;

  const GraphModule& module_;
  std::string name_;
  GraphDrawerOptions options_;
};

}  // namespace fx
