#pragma once

#include <string>
#include <string_view>

#include "fx/graph/graph.h"

namespace fx {

struct CppCodeOptions {
  std::string function_name = "forward";
  /// Put into this namespace; empty for none.
  std::string name_space = {};
  /// Values are dropped after their last use ("x.reset();"), as torch.fx's code does.
  bool free_values = true;
};

/// C++ source of a function that does what the graph does and needs LibTorch alone (ATen, no
/// library of ours). Tensor operators become calls of at::, methods of at::Tensor where LibTorch
/// offers no function, and calls through the dispatcher by name for everything whose C++ form is
/// not regular:
///
///     at::Tensor forward(const Weights& weights, at::Tensor x) {
///       at::Tensor relu = at::relu(x);  x.reset();
///       return relu;
///     }
///
/// `Weights` is a std::map from paths to tensors: parameters, buffers and constants of the module.
/// Calls of the common modules of torch::nn are written as the function they stand for, with the
/// module's options as they are now; nested GraphModules become functions of their own.
///
/// Inputs are tensors unless a type ("int", "float", "bool", "str", "List[int]", "List[Tensor]") or
/// a default value says otherwise. The result is an at::Tensor, a std::vector<at::Tensor> for a
/// list or tuple of tensors, and a c10::IValue for anything else.
///
/// @throws GraphError kNotExpressible naming the node for what has no such form: wrapped functions,
///   *args, values whose type is not known before running; kUnknownModuleType for other modules.
std::string cpp_code(const Graph& graph, const CppCodeOptions& options = {});

}  // namespace fx
