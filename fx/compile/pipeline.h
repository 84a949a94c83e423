#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fx/compile/compile.h"
#include "fx/compile/fused_kernel.h"
#include "fx/compile/input_kinds.h"

namespace fx::loops {

/// The passes that the pipeline begins with, in order; those that need constants only of frozen
/// models.
constexpr std::string_view kPipelinePasses[] = {
    "remove_dropout", "fuse_conv_bn", "constant_fold", "remove_noops", "simplify", "cse", "dce"};

/// What the llvm backend made of a graph.
struct PipelineOutput {
  std::shared_ptr<GraphModule> module;  ///< with a FusedKernel for each group
  std::vector<std::shared_ptr<FusedKernel>> kernels;
  std::size_t num_groups = 0;        ///< kernels, and those that were left to their operators
  std::vector<CompileStage> stages;  ///< "passes", "fused"
  std::string explanation;           ///< one line for each call of the graph behind the passes
  std::vector<CompileStep> steps;
  std::optional<InputKinds> holds_for;  ///< nothing: for all inputs
};

/// From a graph to a graph of kernels: the whole way on one page. `module` is changed.
PipelineOutput run_pipeline(const std::shared_ptr<GraphModule>& module, const Values& inputs,
                            const CompileOptions& options);

/// A module with a copy of the graph and the same attributes, shared.
std::shared_ptr<GraphModule> share_module(const GraphModule& module);

}  // namespace fx::loops
