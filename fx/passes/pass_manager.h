#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fx/passes/pass.h"

namespace fx {

/// One run of one pass.
struct PassStatistics {
  std::string name;
  int step = 0;  ///< round, from 0
  bool changed = false;
  bool skipped = false;
  std::int64_t rewrites = 0;
  std::vector<std::pair<std::string_view, std::int64_t>> rules = {};  ///< as PassResult
  std::size_t nodes_before = 0;
  std::size_t nodes_after = 0;
  double seconds = 0;  ///< of the pass alone, without verification
};

struct PipelineResult {
  /// Whether nodes or attributes of the module differ from before.
  bool changed = false;
  std::vector<PassStatistics> passes;  ///< in the order they ran
  /// A table: pass, changed, rewrites, nodes before and after, milliseconds; below a pass that has
  /// rules, those that rewrote something.
  std::string to_string() const;
};

/// Says of two passes whether `a` may stand somewhere before `b`.
using PassConstraint = std::function<bool(const Pass& a, const Pass& b)>;
/// `first` must stand before `second`, wherever both occur (torch.fx's
/// this_before_that_pass_constraint).
PassConstraint this_before_that(std::string first, std::string second);
/// Every one of `first` before every one of `second`.
PassConstraint these_before_those(std::vector<std::string> first, std::vector<std::string> second);

struct PassManagerOptions {
  /// Rounds over all passes; a round that changes nothing is the last one.
  int steps = 1;
  /// Rounds until nothing changes, at most kMaxRounds; overrides steps.
  bool until_stable = false;
  /// Lint before the first pass and after each one that changed something. A graph that was fine by
  /// the strict rules must stay so.
  bool verify = true;
  /// A pass that says "unchanged" and changed something, or the reverse, is an error; otherwise the
  /// truth is reported and nothing more. Without a value: in debug builds of this library.
  std::optional<bool> check_claims = {};
  /// Recompile the module at the end when anything changed.
  bool recompile = true;
  /// Given to passes that need inputs, and used by verify_results.
  std::optional<Values> example_inputs = {};
  /// Interpret the module on copies of example_inputs before the first pass and after each one that
  /// changed something: results must agree within `rtol` and `atol`.
  bool verify_results = false;
  double rtol = 1e-4;
  double atol = 1e-5;

  static constexpr int kMaxRounds = 100;
};

/// Runs passes over a GraphModule: the one place where passes run.
///
/// Each pass is verified and timed, and what it changed is found by comparing, not by asking. When
/// a pass throws, breaks the graph or lies, the module is left as it was before run(): the same
/// nodes, arguments, metadata and attributes. A pass must not write into the tensors of the module:
/// that is neither seen nor undone; it replaces them.
///
/// torch.fx.passes.infra.PassManager, in place.
class PassManager {
 public:
  using Check = std::function<void(const GraphModule&)>;
  /// Called before a pass; false skips it.
  using BeforeHook = std::function<bool(const Pass&, GraphModule&)>;
  using AfterHook = std::function<void(const PassStatistics&, GraphModule&)>;

  explicit PassManager(std::vector<Pass> passes = {}, PassManagerOptions options = {})
      : passes_(std::move(passes)), options_(std::move(options)) {}
  /// From a pipeline text. @throws as parse_pipeline
  explicit PassManager(std::string_view pipeline, PassManagerOptions options = {})
      : PassManager(parse_pipeline(pipeline), std::move(options)) {}

  void add_pass(Pass pass);
  void add_constraint(PassConstraint constraint);
  /// A check of the module, run before the first and after every pass; it throws when it fails.
  void add_check(Check check) { checks_.push_back(std::move(check)); }
  void add_before_hook(BeforeHook hook) { before_.push_back(std::move(hook)); }
  void add_after_hook(AfterHook hook) { after_.push_back(std::move(hook)); }
  /// Prints the graph after each pass, or after each one that changed it. `out` must outlive this.
  void print_after(std::ostream& out, bool only_changed = true);

  const std::vector<Pass>& passes() const noexcept { return passes_; }
  PassManagerOptions& options() noexcept { return options_; }

  /// @throws PassError kPassOrder naming the first pair that stands in the wrong order.
  void validate_constraints() const;
  /// Orders the passes by the constraints: a breadth-first topological sort that starts from the
  /// given order, which stays when there are no constraints. O(passes^2 * constraints).
  /// @throws PassError kPassCycle "Circular dependency detected within the following passes:
  /// [...]".
  void solve_constraints();

  /// Runs the passes, ordered by the constraints.
  /// @throws LintError when the graph is broken to begin with; PassError kPassFailed with the
  /// original
  ///   exception nested, kPassBrokeGraph, kDishonestPass, kPassChangedResult, kPassNotStable,
  ///   kPassCycle. The module is unchanged then.
  PipelineResult run(GraphModule& module);

 private:
  struct Run;

  std::vector<Pass> passes_;
  PassManagerOptions options_;
  std::vector<PassConstraint> constraints_;
  bool ordered_ = true;
  std::vector<Check> checks_;
  std::vector<BeforeHook> before_;
  std::vector<AfterHook> after_;
};

/// Runs a pipeline once and recompiles: run_passes(gm, "dce,cse").
PipelineResult run_passes(GraphModule& module, std::string_view pipeline,
                          PassManagerOptions options = {});

}  // namespace fx
