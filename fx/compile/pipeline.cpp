#include "fx/compile/pipeline.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "fx/analysis/memory.h"
#include "fx/compile/equal_groups.h"
#include "fx/compile/expand_modules.h"
#include "fx/compile/fusion.h"
#include "fx/compile/undo_inplace.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/fuse_partitions.h"
#include "fx/passes/inline_module.h"
#include "fx/passes/pass_manager.h"
#include "fx/passes/shape_prop.h"

namespace fx::loops {
namespace {

std::string graph_text(const GraphModule& module) { return module.graph().str() + "\n"; }

bool is_disabled(const CompileOptions& options, std::string_view step) {
  return std::find(options.disable.begin(), options.disable.end(), step) != options.disable.end();
}

// Freezing takes the values of parameters for constants.
std::string passes_text(const GraphModule& module, const CompileOptions& options) {
  const bool freeze = options.freeze && !module.is_training();
  std::string text;
  for (std::string_view pass : kPipelinePasses) {
    const bool of_constants = pass == "fuse_conv_bn" || pass == "constant_fold";
    if ((of_constants && !freeze) || is_disabled(options, pass)) continue;
    text += (text.empty() ? "" : ",") + std::string(pass);
    // One compilation serves inputs of other dtypes, too: only what the graph itself says counts.
    if (pass == "simplify") text += "(use_metadata=false)";
  }
  return text;
}

// Measures the time from one call of done() to the next.
class Steps {
 public:
  explicit Steps(std::vector<CompileStep>& steps) : steps_(steps) {}

  void done(std::string name) {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double, std::milli> time = now - last_;
    steps_.push_back({std::move(name), time.count()});
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<CompileStep>& steps_;
  Clock::time_point last_ = Clock::now();
};

std::string describe(const Node& node) {
  std::string text(node.name());
  if (const TensorMeta* meta = tensor_meta(node)) text += ": " + meta->to_string();
  return text + " = " + node.target().str();
}

}  // namespace

std::shared_ptr<GraphModule> share_module(const GraphModule& module) {
  GraphModule::Constants constants(module.constants().begin(), module.constants().end());
  auto copy = std::make_shared<GraphModule>(module, module.graph().clone(), module.class_name(),
                                            GraphModule::Share::kAll, constants);
  copy->set_specs(module.in_spec(), module.out_spec());
  copy->set_input_guards(module.input_guards());
  return copy;
}

PipelineOutput run_pipeline(const std::shared_ptr<GraphModule>& module, const Values& inputs,
                            const CompileOptions& options) {
  PipelineOutput out{.module = module};
  Steps steps(out.steps);

  // 1. One kind of node for one operation: modules as the operators that they call; passes.
  expand_modules(*module);
  PassManagerOptions pass_options;
  pass_options.recompile = false;
  if (const std::string passes = passes_text(*module, options); !passes.empty())
    out.explanation += PassManager(passes, std::move(pass_options)).run(*module).to_string();
  out.stages.push_back({"passes", graph_text(*module)});
  steps.done("passes");

  // 2. Dtypes and sizes of everything, by an example.
  ShapeProp(*module).propagate(inputs);
  steps.done("example run");

  if (!is_disabled(options, "undo_inplace") && undo_inplace(*module) > 0) {
    out.holds_for.emplace(*module, inputs);
    PassManagerOptions clean_options;
    clean_options.recompile = false;
    PassManager("cse,dce", std::move(clean_options)).run(*module);
  }
  const MemoryReport operators = memory_report(module->graph());
  steps.done("undo_inplace");

  // 3. Which operators become one kernel.
  FusionPlan plan;
  if (!is_disabled(options, "fusion")) plan = plan_fusion(*module);
  if (plan.groups.size() > options.max_kernels) plan.groups.resize(options.max_kernels);
  std::unordered_map<const Node*, std::size_t> group_of;
  for (std::size_t i = 0; i < plan.groups.size(); ++i)
    for (const Node* node : plan.groups[i]) group_of[node] = i;
  for (const Node& node : module->graph().nodes()) {
    if (const auto group = group_of.find(&node); group != group_of.end())
      out.explanation += describe(node) + "\n    in kernel_" + std::to_string(group->second) + "\n";
    else if (const auto reason = plan.reasons.find(&node); reason != plan.reasons.end())
      out.explanation += describe(node) + "\n    an operator: " + reason->second + "\n";
  }

  out.num_groups = plan.groups.size();
  steps.done("fusion");

  // 4. Each group as a module of its own, and that as a kernel.
  const std::vector<Node*> calls =
      fuse_by_partitions(*module, plan.groups, {.prefix = "kernel_", .recompile = false});
  // While the groups are graphs still, of which it is known what they return.
  const MemoryReport memory = memory_report(module->graph());
  out.explanation += "peak memory of results " + std::to_string(memory.peak_bytes) + " bytes, " +
                     std::to_string(operators.peak_bytes) + " without kernels\n";
  EqualGroups groups;
  for (Node* call : calls) {
    const std::string path = call->target().str();
    auto group = std::dynamic_pointer_cast<GraphModule>(module->find_submodule(path));
    auto kernel =
        std::make_shared<FusedKernel>(path, std::move(group), options.mode == "max-autotune");
    std::shared_ptr<FusedKernel> equal;
    if (calls.size() > 1) equal = groups.find(kernel->operators().graph());
    kernel->prepare(equal.get());
    if (calls.size() > 1 && !equal) groups.add(kernel);
    if (const std::string problem = kernel->statistics().problem; !problem.empty()) {
      out.explanation += path + " is left to its operators: " + problem + "\n";
      inline_module(*module, *call);
      module->delete_submodule(path);
      continue;
    }
    module->set_submodule(path, kernel);
    out.kernels.push_back(std::move(kernel));
  }

  steps.done("kernels");

  // 5. Views that were copied for kernels and are used elsewhere are one again.
  PassManagerOptions last_options;
  last_options.recompile = false;
  PassManager("cse,dce", std::move(last_options)).run(*module);
  out.stages.push_back({"fused", graph_text(*module)});
  module->recompile();
  steps.done("clean up");
  return out;
}

}  // namespace fx::loops
