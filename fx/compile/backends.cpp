#include "fx/compile/backends.h"

#include <algorithm>
#include <map>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/compile/expand_modules.h"
#include "fx/compile/jit.h"
#include "fx/compile/pipeline.h"
#include "fx/interpret/interpreter.h"
#include "fx/plan/plan.h"

namespace fx {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, Backend, std::less<>> backends;

  static Registry& get() {
    static Registry* registry = new Registry();
    return *registry;
  }
};

constexpr std::string_view kBuiltin[] = {"eager", "interpret", "llvm", "plan"};

bool is_builtin(std::string_view name) {
  return std::find(std::begin(kBuiltin), std::end(kBuiltin), name) != std::end(kBuiltin);
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) out += (i ? ", " : "") + names[i];
  return out;
}

}  // namespace

void register_backend(std::string_view name, Backend backend) {
  if (name.empty() || is_builtin(name))
    throw CompileError(ErrorCode::kCompileOption,
                       "register_backend(" + str_repr(name) + "): wanted a name of its own, not " +
                           (name.empty() ? "an empty one" : "that of a built-in backend"));
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.mutex);
  registry.backends[std::string(name)] = std::move(backend);
}

std::vector<std::string> list_backends() {
  std::vector<std::string> names(std::begin(kBuiltin), std::end(kBuiltin));
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.mutex);
  for (const auto& [name, backend] : registry.backends) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<CompileMode> compile_modes() {
  return {{"default", "kernels where they pay"},
          {"reduce-overhead", "the same, and calls of the same sizes reuse their memory"},
          {"max-autotune", "each kernel is timed against its operators and the faster one stays"}};
}

namespace loops {

void check_options(const CompileOptions& options) {
  const std::vector<std::string> names = list_backends();
  if (std::find(names.begin(), names.end(), options.backend) == names.end())
    throw CompileError(
        ErrorCode::kBackendMissing,
        "there is no backend " + str_repr(options.backend) + "; there are: " + joined(names));
  std::vector<std::string> modes;
  for (const CompileMode& mode : compile_modes()) modes.emplace_back(mode.name);
  if (std::find(modes.begin(), modes.end(), options.mode) == modes.end())
    throw CompileError(ErrorCode::kCompileOption, "there is no mode " + str_repr(options.mode) +
                                                      "; there are: " + joined(modes));
  std::vector<std::string> steps(std::begin(kPipelinePasses), std::end(kPipelinePasses));
  steps.insert(steps.end(), {"undo_inplace", "fusion"});
  for (const std::string& step : options.disable)
    if (std::find(steps.begin(), steps.end(), step) == steps.end())
      throw CompileError(ErrorCode::kCompileOption,
                         "there is no step " + str_repr(step) +
                             " that can be left out; there are: " + joined(steps));
}

Compilation compile_with_backend(const std::shared_ptr<GraphModule>& module, const Values& inputs,
                                 const CompileOptions& options) {
  Compilation out{.module = module};
  out.stages.push_back({"captured", module->graph().str() + "\n"});
  const auto forward = [](std::shared_ptr<GraphModule> target) -> CompiledFunction {
    return [target = std::move(target)](Values args, KwValues kwargs) {
      return target->forward(std::move(args), std::move(kwargs));
    };
  };
  if (options.backend == "interpret") {
    out.run = [module](Values args, KwValues kwargs) {
      return Interpreter(module).run(std::move(args), {.kwargs = std::move(kwargs)});
    };
    return out;
  }
  if (options.backend == "llvm") {
    if (!jit_problem().empty()) {
      // The one message, on the result and not on a stream that may not be ours.
      out.explanation = "no machine code: " + jit_problem() + "; the plan runs instead\n";
    } else {
      PipelineOutput made = run_pipeline(module, inputs, options);
      out.kernels = std::move(made.kernels);
      out.stages.insert(out.stages.end(), made.stages.begin(), made.stages.end());
      out.explanation = std::move(made.explanation);
      out.steps = std::move(made.steps);
      out.holds_for = std::move(made.holds_for);
    }
  } else if (!is_builtin(options.backend)) {
    Backend backend;
    {
      Registry& registry = Registry::get();
      const std::lock_guard lock(registry.mutex);
      backend = registry.backends.at(options.backend);
    }
    out.run = backend(module, inputs, options);
    if (!out.run)
      throw CompileError(ErrorCode::kBackendMissing,
                         "backend " + str_repr(options.backend) + " returned nothing to call");
    out.module = nullptr;
    return out;
  }
  const bool replays = options.mode == "reduce-overhead" && options.backend != "eager";
  if (replays && options.backend == "plan") {
    // Operators can write into given memory, modules cannot.
    expand_modules(*module);
    module->recompile();
  }
  out.stages.push_back({"plan", Plan(module->graph()).str()});
  if (replays) {
    out.replay = std::make_shared<const Replay>(module);
    out.run = [replay = out.replay](Values args, KwValues kwargs) {
      return replay->run(std::move(args), std::move(kwargs));
    };
    return out;
  }
  out.run = forward(module);
  return out;
}

}  // namespace loops
}  // namespace fx
