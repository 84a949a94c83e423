#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/passes/pass.h"

/// Passes made of passes (torch.fx.passes.pass_manager and infra.pass_base). A wrapped pass keeps
/// its name, so that constraints on it still hold.
namespace fx {

/// Runs `base` and gives `log` a line of it: "Ran pass dce: changed, 3 rewrites".
Pass log_hook(const Pass& base, std::function<void(const std::string& line)> log);

/// Runs `base` `n_iter` times. Changed if any run was.
/// @throws PassError kBadPassOption "loop_pass must be given positive int n_iter ..."
Pass loop_pass(const Pass& base, int n_iter);
/// Runs `base` as long as `predicate` says so, asked before each run.
Pass loop_pass(const Pass& base, std::function<bool(const GraphModule&)> predicate);

/// A pass of a function whose result means nothing: it edits the module in place.
template <typename F>
Pass inplace_wrapper(std::string name, F function) {
  return Pass(std::move(name), [function = std::move(function)](GraphModule& module) mutable {
    static_cast<void>(function(module));
  });
}

/// The passes without those of these names, for PassManager's constructor.
std::vector<Pass> remove_pass(std::vector<Pass> passes, const std::vector<std::string>& names);
/// The passes with `replacement` for each of that name.
std::vector<Pass> replace_pass(std::vector<Pass> passes, std::string_view name,
                               const Pass& replacement);

/// A pass with conditions: derive, override call, and require or ensures to check the module
/// before and after (torch.fx's PassBase, whose `requires` is a keyword of C++).
///
///     PassManager manager({as_pass("my_pass", std::make_shared<MyPass>())});
class PassBase {
 public:
  PassBase() = default;
  PassBase(const PassBase&) = delete;
  PassBase& operator=(const PassBase&) = delete;
  virtual ~PassBase() = default;

  /// require, call, ensures; an exception of one ends it.
  PassResult operator()(GraphModule& module);

 protected:
  virtual PassResult call(GraphModule& module) = 0;
  /// Throws if the pass cannot run on the module. Does nothing here.
  virtual void require(const GraphModule& module) const;
  /// Throws if the pass did not do what it promises. Does nothing here.
  virtual void ensures(const GraphModule& module) const;
};

Pass as_pass(std::string name, std::shared_ptr<PassBase> pass);

}  // namespace fx
