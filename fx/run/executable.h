#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_path.h"
#include "fx/plan/plan.h"

namespace fx {

class StepRunner;

/// What GraphModule::recompile() builds and its calls run: a plan, and the paths of the attributes
/// it reads. Immutable: any number of threads run it at once, each with a frame of its own.
///
/// Attributes and submodules are looked up in the module at each run, so that a replaced parameter
/// or submodule counts at once; the graph counts as it was when this was built. Values die at their
/// last use. Errors read as the Interpreter's.
class Executable {
 public:
  using Constants = std::map<std::string, at::Tensor, std::less<>>;

  /// Plans the graph of `module`. O(nodes + arguments); never fails on a broken graph.
  explicit Executable(const GraphModule& module);

  /// @throws RunError as GraphModule::forward.
  Value run(const GraphModule& module, const Constants& constants, Values inputs,
            KwValues kwargs) const;

  /// The same with inputs that are flat, and the result as the graph returns it.
  Value run_flat(const GraphModule& module, const Constants& constants, Values inputs,
                 KwValues kwargs) const;

  const Plan& plan() const noexcept { return plan_; }
  /// Of the attribute or submodule that step `index` reads; else null.
  const ModulePath* path_of(std::size_t index) const noexcept {
    return step_path_[index] < paths_.size() ? &paths_[step_path_[index]] : nullptr;
  }
  /// In a handler: rethrows the exception being handled as one of `step`, or of the output if null.
  [[noreturn]] void rethrow_for_step(const Step* step, const StepRunner& runner) const;

 private:
  void bind(Values inputs, KwValues kwargs, Values& slots) const;

  std::shared_ptr<const Graph> graph_;  // keeps the nodes that messages show
  Plan plan_;
  std::vector<ModulePath> paths_;         // of steps that read an attribute or call a submodule
  std::vector<std::uint32_t> step_path_;  // by step: index in paths_
};

}  // namespace fx
