#include "fx/compile/find_wrong_kernel.h"

#include "fx/compile/backends.h"
#include "fx/compile/pipeline.h"

namespace fx {
namespace {

struct Attempt {
  std::string difference;
  loops::PipelineOutput compiled;
};

// The results with the first `count` kernels, beside those of the operators.
Attempt attempt(GraphModule& module, const Values& inputs, CompileOptions options,
                const CompareOptions& compare, std::size_t count, const Value& expected) {
  options.max_kernels = count;
  Attempt out;
  out.compiled = loops::run_pipeline(loops::share_module(module), inputs, options);
  out.difference = compare_values(expected, run_on_copies(*out.compiled.module, inputs), compare);
  return out;
}

// The step in front of kernels without which the results agree, or nothing.
std::string step_that_differs(GraphModule& module, const Values& inputs,
                              const CompileOptions& options, const CompareOptions& compare,
                              const Value& expected) {
  std::vector<std::string> steps(std::begin(loops::kPipelinePasses),
                                 std::end(loops::kPipelinePasses));
  steps.emplace_back("undo_inplace");
  for (const std::string& step : steps) {
    CompileOptions without = options;
    without.disable.push_back(step);
    if (attempt(module, inputs, std::move(without), compare, 0, expected).difference.empty())
      return step;
  }
  return {};
}

}  // namespace

std::optional<WrongKernel> find_wrong_kernel(GraphModule& module, const Values& inputs,
                                             CompileOptions options, CompareOptions compare) {
  loops::check_options(options);
  const Value expected = run_on_copies(module, inputs);
  Attempt last = attempt(module, inputs, options, compare, options.max_kernels, expected);
  if (last.difference.empty()) return std::nullopt;
  // Not a kernel then, but a pass.
  if (Attempt none = attempt(module, inputs, options, compare, 0, expected);
      !none.difference.empty())
    return WrongKernel{.step = step_that_differs(module, inputs, options, compare, expected),
                       .difference = std::move(none.difference),
                       .operators = {},
                       .loops = {}};
  // Right with `low` groups, wrong with `high`; groups that are no kernels change nothing.
  std::size_t low = 0;
  std::size_t high = last.compiled.num_groups;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    Attempt now = attempt(module, inputs, options, compare, middle, expected);
    if (now.difference.empty()) {
      low = middle;
    } else {
      high = middle;
      last = std::move(now);
    }
  }
  const loops::FusedKernel& kernel = *last.compiled.kernels.back();
  WrongKernel found{.index = high - 1,
                    .difference = last.difference,
                    .operators = kernel.operators().graph().str(),
                    .loops = {}};
  for (const loops::Kernel* made : kernel.kernels())
    found.loops += made->nest().str(made->program().shapes());
  return found;
}

}  // namespace fx
