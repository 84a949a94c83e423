#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fx/compile/compile.h"
#include "fx/compile/fused_kernel.h"

namespace fx::loops {

/// What the llvm backend made of a graph.
struct PipelineOutput {
  std::shared_ptr<GraphModule> module;  ///< with a FusedKernel for each group
  std::vector<std::shared_ptr<FusedKernel>> kernels;
  std::vector<CompileStage> stages;  ///< "passes", "fused"
  std::string explanation;           ///< one line for each call of the graph behind the passes
};

/// From a graph to a graph of kernels: the whole way on one page. `module` is changed.
PipelineOutput run_pipeline(const std::shared_ptr<GraphModule>& module, const Values& inputs,
                            const CompileOptions& options);

/// A module with a copy of the graph and the same attributes, shared.
std::shared_ptr<GraphModule> share_module(const GraphModule& module);

}  // namespace fx::loops
