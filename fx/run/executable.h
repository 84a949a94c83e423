#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_path.h"
#include "fx/plan/plan.h"

namespace fx {

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

  const Plan& plan() const noexcept { return plan_; }

 private:
  std::shared_ptr<const Graph> graph_;  // keeps the nodes that messages show
  Plan plan_;
  std::vector<ModulePath> paths_;         // of steps that read an attribute or call a submodule
  std::vector<std::uint32_t> step_path_;  // by step: index in paths_
};

}  // namespace fx
