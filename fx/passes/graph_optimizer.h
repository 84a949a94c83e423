#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fx/passes/pass_manager.h"
#include "fx/passes/replace_pattern.h"

namespace fx {

/// The usual optimisations of a model for inference behind one door: remove_dropout, fuse_conv_bn,
/// constant_fold, remove_noops, the passes and patterns that were added, cse, dce.
///
/// torch.fx has no class of this name; what it has are the functions of
/// torch.fx.experimental.optimization and replace_pattern.
class GraphOptimizer {
 public:
  explicit GraphOptimizer(PassManagerOptions options = {}) : options_(std::move(options)) {}

  /// Runs `pass` after the built-in ones that simplify, in front of cse and dce.
  GraphOptimizer& add_pass(Pass pass) {
    added_.push_back(std::move(pass));
    return *this;
  }
  /// Replaces a pattern, given as two callables (see replace_pattern).
  template <detail::TraceableFunction Pattern, detail::TraceableFunction Replacement>
  GraphOptimizer& add_pattern(std::string name, Pattern pattern, Replacement replacement) {
    return add_pass(Pass(std::move(name), [pattern, replacement](GraphModule& module) {
      const auto matches =
          replace_pattern(module, pattern, replacement, ReplaceOptions{.recompile = false});
      return PassResult{.changed = !matches.empty(),
                        .rewrites = static_cast<std::int64_t>(matches.size())};
    }));
  }

  /// What optimize() runs, in order.
  std::vector<Pass> passes() const;
  /// Verified, and undone as a whole when a pass fails: see PassManager::run.
  PipelineResult optimize(GraphModule& module) const;

 private:
  PassManagerOptions options_;
  std::vector<Pass> added_;
};

/// An optimised copy of a module in eval mode; the original is not changed, parameters that no pass
/// replaced are copied as well (torch.fx.experimental.optimization.optimize_for_inference).
/// @throws GraphError kNotCopyable
std::shared_ptr<GraphModule> optimize_for_inference(const GraphModule& module);

}  // namespace fx
