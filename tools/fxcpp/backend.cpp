#include "tools/fxcpp/backend.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "fx/base/error.h"
#include "fx/interpret/interpreter.h"

namespace fx::cli {
namespace {

Values run_interpreter(GraphModule& module, Values inputs, const Talk& talk) {
  Interpreter interpreter(module);
  Progress progress(talk, "running", module.graph().size());
  interpreter.register_node_pre_hook(
      [&progress](Node& node, const Values&, const KwValues&) { progress.step(node.name()); });
  const Value result = interpreter.run(std::move(inputs), {.enable_io_processing = false});
  return is_sequence(result) ? elements(result) : Values{result};
}

/// Calls the module as C++ code would: with structured inputs, if it has a structure.
Values run_plan(GraphModule& module, Values inputs) {
  KwValues kwargs;
  if (module.in_spec()) {
    std::size_t position = 0;
    const Values parts = elements(unflatten(*module.in_spec(), inputs, position));
    inputs = elements(parts.at(0));
    for (const auto& item : parts.at(1).toGenericDict())
      kwargs.push_back({Symbol(item.key().toStringRef()), item.value()});
  }
  const Value result = module.forward(std::move(inputs), std::move(kwargs));
  if (!module.out_spec()) return is_sequence(result) ? elements(result) : Values{result};
  Values outputs;
  flatten(*module.out_spec(), result, outputs);
  return outputs;
}

}  // namespace

std::vector<std::string> backend_names() { return {"interpret", "plan"}; }

Backend backend_from_name(const std::string& name) {
  if (name == "interpret") return Backend::kInterpret;
  if (name == "plan") return Backend::kPlan;
  throw UsageError(ErrorCode::kBackendMissing, "there is no backend '" + name + "': it is " +
                                                   any_of(backend_names()) +
                                                   did_you_mean(name, backend_names()));
}

std::string_view backend_name(Backend backend) {
  return backend == Backend::kInterpret ? "interpret" : "plan";
}

Values run_backend(GraphModule& module, Backend backend, Values inputs, std::uint64_t seed,
                   const Talk& talk) {
  const at::NoGradGuard no_grad;
  at::manual_seed(seed);
  return backend == Backend::kInterpret ? run_interpreter(module, std::move(inputs), talk)
                                        : run_plan(module, std::move(inputs));
}

void add_threads_option(Command& command, int& threads) {
  command.app()
      .add_option("--threads", threads, "of LibTorch's operators (default: LibTorch's choice)")
      ->type_name("N");
}

void set_threads(int threads) {
  if (threads < 0)
    throw UsageError(ErrorCode::kBadOption,
                     "--threads " + std::to_string(threads) + " is no number of threads");
  if (threads > 0) at::set_num_threads(threads);
}

}  // namespace fx::cli
