#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "fx/graph/graph_module.h"
#include "fx/graph/python_code.h"

/// Graphs for people to read: torch.fx's print_readable and what belongs to it.
namespace fx {

/// What is shown of a node's tensor metadata: `"f32[2, 3]"`, with strides and device on demand
/// `"f32[2, 3][3, 1]cpu"`. Read from meta()["val"] (a tensor), ["tensor_meta"], ["example_value"].
/// Empty when none of them says anything.
std::string shown_tensor_meta(const Node& node, bool include_stride = false,
                              bool include_device = false);

/// Node::format_node, with `Tensor "f32[2, 3][3, 1]cpu"` before the users where metadata says so
/// (torch.fx's include_tensor_metadata).
std::string format_node_with_tensor_meta(const Node& node);

/// "File: net.cpp:3 in forward, code: z = x + w" of the innermost frame of a Python stack trace;
/// the innermost frame of one that the C++ tracer records; empty for any other text.
std::string stack_trace_summary(std::string_view stack_trace);

/// Python code of the module's forward under a line of its class, with comments that say where
/// nodes come from and shapes as annotations; child GraphModules follow, indented. No line ends in
/// blanks. See PythonCodeOptions for what is shown; submodules need no counterpart in Python.
/// @throws GraphError kNotExpressible for an argument with no Python form.
std::string readable_code(const GraphModule& module, PythonCodeOptions options = {});
/// Writes readable_code to standard output, or to `out` (torch.fx's GraphModule.print_readable).
void print_readable(const GraphModule& module, const PythonCodeOptions& options = {});
void print_readable(const GraphModule& module, std::ostream& out,
                    const PythonCodeOptions& options = {});

/// Class, submodules and forward of the module in one text (torch.fx's str(graph_module)).
std::string to_string(const GraphModule& module);

/// readable_code under a title, for logs (torch.fx's lazy_format_graph_code).
std::string format_graph_code(std::string_view title, const GraphModule& module,
                              const PythonCodeOptions& options = {});

/// The lines of `node` and of up to num_nodes - 1 nodes before it.
std::string get_node_context(const Node& node, std::size_t num_nodes = 2);

}  // namespace fx
