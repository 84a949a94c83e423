#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fx/compile/compile.h"
#include "fx/compile/fused_kernel.h"
#include "fx/compile/input_kinds.h"
#include "fx/run/replay.h"

namespace fx::loops {

/// One compilation of one graph.
struct Compilation {
  CompiledFunction run;
  std::shared_ptr<GraphModule> module;  ///< what runs; null for a backend of the user
  std::vector<std::shared_ptr<FusedKernel>> kernels = {};
  std::shared_ptr<const Replay> replay = nullptr;  ///< of the mode "reduce-overhead"
  std::vector<CompileStage> stages = {};
  std::string explanation = {};
  std::vector<CompileStep> steps = {};
  std::optional<InputKinds> holds_for = {};  ///< nothing: for all inputs
};

/// Compiles a graph by the backend that the options name; `module` may be changed.
Compilation compile_with_backend(const std::shared_ptr<GraphModule>& module, const Values& inputs,
                                 const CompileOptions& options);

/// @throws CompileError kBackendMissing for an unknown backend, kCompileOption for an unknown mode
/// or step to disable, listing those that there are.
void check_options(const CompileOptions& options);

}  // namespace fx::loops
