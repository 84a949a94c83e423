#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

struct PythonCodeOptions {
  /// "; x = None" after the last use of a value, as torch.fx does.
  bool free_values = true;
  /// Types of nodes as annotations.
  bool types = true;
  /// Constants and buffers outside the state_dict stand in the source, up to this size each.
  std::size_t max_constant_bytes = 1 << 20;
  /// For people: a comment where the stack trace of nodes changes, and what is known of tensors as
  /// annotations, `add: "f32[2, 3]" = ...`.
  bool verbose = false;
  bool include_stride = false;  ///< in verbose annotations
  bool include_device = false;
  /// Keys of nodes' meta that verbose code shows, "# key: value" before the node: texts, numbers.
  std::vector<std::string> additional_meta = {};
};

/// A Python file that defines `class_name`, a torch.nn.Module whose forward is the graph, in the
/// style of torch.fx's GraphModule.code: operators infix, values freed after their last use, code
/// up to the first output. torch.fx.symbolic_trace accepts it. It runs on its own:
///
/// - Parameters, buffers and submodules of the module that owns the graph are created with their
/// shapes
///   and dtypes, for load_state_dict with the module's state_dict. Constants are written out.
///   Without an owner the class expects the attributes to be set from outside.
/// - Submodules of torch.nn become constructor calls, nested GraphModules classes of their own.
/// - Parameters of forward are the targets of the placeholders. Where that is no name for a
/// parameter,
///   the placeholder's own name is taken. Inputs and outputs are those of the graph: the flat ones,
///   when the module has specs of nested ones.
/// - Wrapped C++ functions become stubs marked with torch.fx.wrap that raise: implement them there.
///
/// @throws GraphError kUnknownModuleType for a called submodule that Python does not have,
///   kNotExpressible for an argument with no Python form and for a constant beyond
///   max_constant_bytes, kForeignNode and kIndexOutOfRange for a broken graph.
std::string python_code(const Graph& graph, std::string_view class_name = "GraphModule",
                        const PythonCodeOptions& options = {});

}  // namespace fx
