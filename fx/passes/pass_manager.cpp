#include "fx/passes/pass_manager.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <ostream>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/module_snapshot.h"
#include "fx/graph/node_error.h"
#include "fx/passes/compare.h"
#include "fx/passes/nested.h"

namespace fx {
namespace {

std::string names_of(std::span<const Pass> passes) {
  std::string out = "[";
  for (const Pass& pass : passes) out += (out.size() > 1 ? ", " : "") + str_repr(pass.name());
  return out + "]";
}

#ifdef NDEBUG
constexpr bool kDebug = false;
#else
constexpr bool kDebug = true;
#endif

bool holds_strictly(const Graph& graph) {
  try {
    graph.lint({.strict = true});
    return true;
  } catch (const LintError&) {
    return false;
  }
}

// The module's graph by the strict rules if wanted, those of nested modules by the plain ones.
void lint_all(GraphModule& module, bool strict) {
  for_each_graph_module(module, [&](GraphModule& nested) {
    nested.graph().lint({.strict = strict && &nested == &module});
  });
}

}  // namespace

// --- order ---------------------------------------------------------------------------------------

PassConstraint these_before_those(std::vector<std::string> first, std::vector<std::string> second) {
  return [first = std::move(first), second = std::move(second)](const Pass& a, const Pass& b) {
    return std::find(second.begin(), second.end(), a.name()) == second.end() ||
           std::find(first.begin(), first.end(), b.name()) == first.end();
  };
}

PassConstraint this_before_that(std::string first, std::string second) {
  return these_before_those({std::move(first)}, {std::move(second)});
}

void PassManager::add_pass(Pass pass) {
  passes_.push_back(std::move(pass));
  ordered_ = constraints_.empty();
}

void PassManager::add_constraint(PassConstraint constraint) {
  constraints_.push_back(std::move(constraint));
  ordered_ = false;
}

void PassManager::validate_constraints() const {
  for (const PassConstraint& constraint : constraints_)
    for (std::size_t i = 0; i < passes_.size(); ++i)
      for (std::size_t j = i + 1; j < passes_.size(); ++j)
        if (!constraint(passes_[i], passes_[j]))
          throw PassError(ErrorCode::kPassOrder,
                          "pass schedule constraint violated. Expected " + passes_[j].name() +
                              " before " + passes_[i].name() + " but found " + passes_[i].name() +
                              " at index " + std::to_string(i) + " and " + passes_[j].name() +
                              " at index " + std::to_string(j) + " in pass list.");
}

void PassManager::solve_constraints() {
  const std::size_t count = passes_.size();
  ordered_ = true;
  if (constraints_.empty()) return;
  // successors[b] holds a when a constraint wants b before a.
  std::vector<std::vector<std::size_t>> successors(count);
  std::vector<std::size_t> waiting_for(count, 0);
  std::deque<std::size_t> ready;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b) continue;
      for (const PassConstraint& constraint : constraints_) {
        if (constraint(passes_[a], passes_[b])) continue;
        successors[b].push_back(a);
        ++waiting_for[a];
      }
    }
    if (waiting_for[a] == 0) ready.push_back(a);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.front());
    ready.pop_front();
    for (std::size_t next : successors[order.back()])
      if (--waiting_for[next] == 0) ready.push_back(next);
  }
  if (order.size() != count) {
    ordered_ = false;
    std::vector<Pass> cycle;
    for (std::size_t i = 0; i < count; ++i)
      if (waiting_for[i] != 0) cycle.push_back(passes_[i]);
    throw PassError(ErrorCode::kPassCycle,
                    "Circular dependency detected within the following passes: " + names_of(cycle));
  }
  std::vector<Pass> sorted;
  for (std::size_t i : order) sorted.push_back(std::move(passes_[i]));
  passes_ = std::move(sorted);
}

// --- running -------------------------------------------------------------------------------------

/// The state of one run(). All that touches the module goes through here.
struct PassManager::Run {
  PassManager& manager;
  GraphModule& module;
  const PassManagerOptions& options;
  bool strict = false;
  std::optional<Value> expected = std::nullopt;
  PipelineResult result = {};

  void check_before() {
    if (options.verify) {
      lint_all(module, /*strict=*/false);
      strict = holds_strictly(module.graph());
    }
    for (const Check& check : manager.checks_) check(module);
    if (options.verify_results) {
      if (!options.example_inputs)
        throw PassError(ErrorCode::kBadPassOption, "verify_results needs example_inputs");
      expected = run_on_copies(module, *options.example_inputs);
    }
  }

  // Whether the pass at `index` changed the module.
  bool run_pass(std::size_t index, int step) {
    const Pass& pass = manager.passes_[index];
    PassStatistics statistics;
    statistics.name = pass.str();
    statistics.step = step;
    statistics.nodes_before = module.graph().size();
    statistics.skipped = !std::all_of(manager.before_.begin(), manager.before_.end(),
                                      [&](const BeforeHook& hook) { return hook(pass, module); });
    if (!statistics.skipped) execute(pass, index, statistics);
    statistics.nodes_after = module.graph().size();
    result.passes.push_back(statistics);
    for (const AfterHook& hook : manager.after_) hook(statistics, module);
    return statistics.changed;
  }

  void execute(const Pass& pass, std::size_t index, PassStatistics& statistics) {
    const ModuleSnapshot before(module, ModuleSnapshot::Keep::kForComparison);
    std::optional<PassResult> claim;
    try {
      const auto start = std::chrono::steady_clock::now();
      claim = pass(module);
      statistics.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    } catch (...) {
      fail_nested(ErrorCode::kPassFailed, index);
    }
    statistics.changed = before.differs();
    statistics.rewrites = claim ? claim->rewrites : 0;
    if (claim) statistics.rules = std::move(claim->rules);
    if (statistics.changed && options.verify) {
      try {
        lint_all(module, strict);
      } catch (...) {
        fail_nested(ErrorCode::kPassBrokeGraph, index);
      }
    }
    if (options.check_claims.value_or(kDebug) && claim && claim->changed != statistics.changed)
      fail(ErrorCode::kDishonestPass, index,
           claim->changed ? "it reported a change but changed nothing"
                          : "it reported no change but changed the module");
    try {
      for (const Check& check : manager.checks_) check(module);
    } catch (...) {
      fail_nested(ErrorCode::kPassFailed, index);
    }
    if (expected && statistics.changed) check_result(index);
  }

  void check_result(std::size_t index) {
    std::string difference;
    try {
      difference = compare_values(*expected, run_on_copies(module, *options.example_inputs),
                                  {.rtol = options.rtol, .atol = options.atol});
    } catch (...) {
      fail_nested(ErrorCode::kPassChangedResult, index);
    }
    if (!difference.empty()) fail(ErrorCode::kPassChangedResult, index, difference);
  }

  PassError error(ErrorCode code, std::size_t index, const std::string& cause) const {
    const std::vector<Pass>& passes = manager.passes_;
    return {code, "An error occurred when running the " + str_repr(passes[index].name()) +
                      " pass after the following passes: " +
                      names_of(std::span(passes).first(index)) + "\n" + cause};
  }
  [[noreturn]] void fail(ErrorCode code, std::size_t index, const std::string& cause) const {
    throw error(code, index, cause);
  }
  // In a handler: nests the exception being handled.
  [[noreturn]] void fail_nested(ErrorCode code, std::size_t index) const {
    std::throw_with_nested(error(code, index, current_exception_text()));
  }
};

PipelineResult PassManager::run(GraphModule& module) {
  if (!ordered_) solve_constraints();
  for (Pass& pass : passes_)
    if (options_.example_inputs) pass.set_example_inputs(*options_.example_inputs);
  Run run{*this, module, options_};
  run.check_before();
  ModuleSnapshot original(module, ModuleSnapshot::Keep::kForRestore);
  try {
    const int rounds = options_.until_stable ? PassManagerOptions::kMaxRounds : options_.steps;
    for (int step = 0; step < rounds; ++step) {
      bool changed = false;
      for (std::size_t i = 0; i < passes_.size(); ++i) changed |= run.run_pass(i, step);
      if (!changed) break;
      if (options_.until_stable && step + 1 == rounds)
        throw PassError(ErrorCode::kPassNotStable, "the passes " + names_of(passes_) +
                                                       " still change the graph after " +
                                                       std::to_string(rounds) + " rounds");
    }
    run.result.changed = original.differs();
    if (run.result.changed && options_.recompile) module.recompile();
  } catch (...) {
    original.restore();
    throw;
  }
  return std::move(run.result);
}

void PassManager::print_after(std::ostream& out, bool only_changed) {
  add_after_hook([&out, only_changed](const PassStatistics& statistics, GraphModule& module) {
    if (only_changed && !statistics.changed) return;
    out << "# after " << statistics.name
        << (statistics.skipped   ? " (skipped)"
            : statistics.changed ? ""
                                 : " (unchanged)")
        << "\n"
        << module.graph().str() << "\n";
  });
}

std::string PipelineResult::to_string() const {
  std::size_t width = 4;
  for (const PassStatistics& pass : passes) width = std::max(width, pass.name.size());
  auto padded = [width](std::string text) {
    text.resize(width, ' ');
    return text;
  };
  std::string out = padded("pass") + "  changed  rewrites  nodes before  after       ms\n";
  for (const PassStatistics& pass : passes) {
    char line[96];
    std::snprintf(line, sizeof line, "  %-7s  %8lld  %12zu  %5zu  %7.2f\n",
                  pass.skipped   ? "skipped"
                  : pass.changed ? "yes"
                                 : "no",
                  static_cast<long long>(pass.rewrites), pass.nodes_before, pass.nodes_after,
                  pass.seconds * 1e3);
    out += padded(pass.name) + line;
    for (const auto& [rule, count] : pass.rules)
      out += "  " + std::string(rule) + ": " + std::to_string(count) + "\n";
  }
  return out;
}

PipelineResult run_passes(GraphModule& module, std::string_view pipeline,
                          PassManagerOptions options) {
  return PassManager(pipeline, std::move(options)).run(module);
}

}  // namespace fx
