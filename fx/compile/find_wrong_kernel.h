#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "fx/compile/compile.h"
#include "fx/passes/compare.h"

namespace fx {

/// A kernel that computes something else than the operators it stands for.
struct WrongKernel {
  /// "kernel_<index>" of explain(); nothing when the results differ without any kernel.
  std::optional<std::size_t> index = {};
  /// Then: the step of CompileOptions::disable without which they agree; empty when none alone
  /// makes the difference.
  std::string step = {};
  std::string difference;  ///< as compare_values says
  std::string operators;   ///< the graph of what it stands for
  std::string loops;       ///< its loop nest
};

/// Looks for the kernel that makes the results of the compiled module differ from those of its
/// operators: by halves, with CompileOptions::max_kernels, in log2(kernels) compilations. Nothing
/// when the results agree within the tolerance. When they differ without any kernel, looks for the
/// pass or step that makes the difference instead, leaving out one after the other. The inputs and
/// the module's buffers are not written to. (Inductor's minifier and its INDUCTOR_MAX_FUSION
/// bisection.)
/// @throws as Compiled::forward.
std::optional<WrongKernel> find_wrong_kernel(GraphModule& module, const Values& inputs,
                                             CompileOptions options = {},
                                             CompareOptions compare = {});

}  // namespace fx
