#include "fx/capture/make_fx.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "fx/base/text.h"
#include "fx/capture/functional_call.h"
#include "fx/capture/recorder.h"

namespace fx {
namespace {

constexpr c10::DispatchKey kModeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
// Stands below autograd and everything else that takes calls apart, and above the backends; no
// tensor has it, and LibTorch registers nothing for it.
constexpr c10::DispatchKey kBelowAutogradKey = c10::DispatchKey::Fake;

thread_local Recorder* active_recorder = nullptr;

void check_thread(const c10::OperatorHandle& op) {
  if (!active_recorder)
    throw TraceError(ErrorCode::kBadArgument,
                     "the program runs " + op.schema().name() +
                         " on another thread, where make_fx does not see what belongs to it: "
                         "run it on the thread of the capture");
}

// Whether autocast turns this call into casts and other calls, so that those are to be recorded.
// The graph then says what is cast and needs no autocast when it runs. `keys` name autocast only
// for operators that it has a kernel for; what others call may have one.
bool is_expanded_by_autocast(const c10::OperatorHandle& op, c10::DispatchKeySet keys) {
  const c10::DispatchKeySet enabled =
      c10::autocast_dispatch_keyset - c10::impl::tls_local_dispatch_key_set().excluded_;
  if (enabled.empty()) return false;
  return !(keys & enabled).empty() ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  check_thread(op);
  // What functionalization makes of the call is recorded (passes/functionalize.h).
  if (keys.has(c10::DispatchKey::Functionalize))
    return call_functional(op, keys.remove(kModeKey), stack);
  if (is_expanded_by_autocast(op, keys)) return op.redispatchBoxed(keys.remove(kModeKey), stack);
  // Everything below this call is the operator's own business.
  c10::impl::ExcludeDispatchKeyGuard below(kModeKey);
  if (is_functional_rehearsal(keys)) return rehearse(op, stack);
  active_recorder->record(op, stack);
}

void fallback_below_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet,
                             torch::jit::Stack* stack) {
  check_thread(op);
  c10::impl::ExcludeDispatchKeyGuard below(kBelowAutogradKey);
  active_recorder->record(op, stack);
}

void register_fallbacks() {
  static const bool kDone = [] {
    const auto add = [](c10::DispatchKey key, torch::CppFunction function) {
      auto* library = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
      library->fallback(std::move(function));
    };
    add(kModeKey, torch::CppFunction::makeFromBoxedFunction<&fallback>());
    add(kBelowAutogradKey, torch::CppFunction::makeFromBoxedFunction<&fallback_below_autograd>());
    return true;
  }();
  (void)kDone;
}

// Makes a recorder the one of this thread while a program runs; restores everything on any exit. A
// capture inside of a captured program records for itself: the outer one sees none of it.
class RecordingScope {
 public:
  RecordingScope(Recorder& recorder, bool pre_dispatch)
      : previous_(std::exchange(active_recorder, &recorder)),
        mode_(pre_dispatch ? kModeKey : kBelowAutogradKey),
        other_(pre_dispatch ? kBelowAutogradKey : kModeKey) {}
  ~RecordingScope() { active_recorder = previous_; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  Recorder* previous_;
  c10::impl::IncludeDispatchKeyGuard mode_;
  c10::impl::ExcludeDispatchKeyGuard other_;
};

// A tensor object of its own over the same memory, so that inputs passed twice stay two inputs.
at::Tensor distinct_handle(const at::Tensor& tensor) {
  at::Tensor copy = tensor.detach();
  copy.set_requires_grad(tensor.requires_grad());
  return copy;
}

}  // namespace

struct RecordingPause::Keys {
  c10::impl::ExcludeDispatchKeyGuard mode{kModeKey};
  c10::impl::ExcludeDispatchKeyGuard below_autograd{kBelowAutogradKey};
};

RecordingPause::RecordingPause() : keys_(std::make_unique<Keys>()) {}
RecordingPause::~RecordingPause() = default;

Recorder& Recorder::active() { return *active_recorder; }

std::string_view assumption_kind_name(Assumption::Kind kind) {
  constexpr std::string_view kNames[] = {"input",     "value",    "training",
                                         "grad mode", "constant", "kept"};
  return kNames[static_cast<int>(kind)];
}

std::shared_ptr<GraphModule> record_program(
    const torch::nn::Module& root, std::vector<at::Tensor> inputs, const MakeFxOptions& options,
    const std::function<TraceArg(std::vector<at::Tensor>&)>& run) {
  register_fallbacks();
  TraceOptions naming;
  naming.input_names = options.input_names;
  const auto names = detail::default_input_names(inputs.size(), naming);
  Recorder recorder(root, options);
  std::vector<at::Tensor> seen;
  std::vector<InputGuard> guards;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      throw TraceError(ErrorCode::kBadArgument,
                       "example input " + str_repr(names[i]) + " is an undefined tensor");
    for (const at::Tensor& other : seen)
      if (other.is_same(inputs[i])) {
        inputs[i] = distinct_handle(inputs[i]);
        break;
      }
    seen.push_back(inputs[i]);
    guards.push_back(exact_guard(names[i], inputs[i]));
    recorder.add_input(names[i], inputs[i]);
  }
  recorder.assumptions().push_back(
      {Assumption::Kind::kTraining,
       root.is_training() ? "the module was in train mode" : "the module was in eval mode"});
  recorder.assumptions().push_back({Assumption::Kind::kGradMode, at::GradMode::is_enabled()
                                                                     ? "gradients were enabled"
                                                                     : "gradients were disabled"});
  // Casts of parameters that autocast keeps would be constants.
  if (at::autocast::is_autocast_enabled(at::kCPU)) at::autocast::clear_cache();
  {
    TraceArg result;
    {
      const RecordingScope scope(recorder, options.pre_dispatch);
      result = run(inputs);
    }
    recorder.graph().output(recorder.output_arg(result));
  }
  if (at::autocast::is_autocast_enabled(at::kCPU)) at::autocast::clear_cache();
  auto module = std::make_shared<GraphModule>(
      root, recorder.graph_ptr(),
      options.class_name.empty() ? module_type_name(root) : options.class_name,
      GraphModule::Share::kAll, recorder.constants());
  inputs.clear();
  seen.clear();
  recorder.finish();
  module->set_input_guards(std::move(guards));
  module->meta().set("assumptions", recorder.assumptions());
  return module;
}

}  // namespace fx
