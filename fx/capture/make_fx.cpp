#include "fx/capture/make_fx.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>

#include "fx/base/text.h"
#include "fx/capture/functional_call.h"
#include "fx/capture/module_scopes.h"
#include "fx/capture/recorder.h"
#include "fx/capture/symbolic_sizes.h"
#include "fx/capture/value_sizes.h"

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

// Composite operators that read tensors through pointers, and the arguments at fault: below
// autograd nobody sees it. What they read is checked like other values that the program reads.
void check_read_arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  struct Reader {
    std::string_view name, overload;
    std::vector<std::size_t> arguments;
  };
  static const std::vector<Reader> kReaders = {
      {"aten::ctc_loss", "Tensor", {2, 3}},
      {"aten::tensor_split", "tensor_indices_or_sections", {1}},
      {"aten::_pad_packed_sequence", "", {1}},
      {"aten::lstm", "data", {1}},
      {"aten::gru", "data", {1}},
      {"aten::rnn_tanh", "data", {1}},
      {"aten::rnn_relu", "data", {1}}};
  const c10::OperatorName& name = op.operator_name();
  for (const Reader& reader : kReaders) {
    if (name.name != reader.name || name.overload_name != reader.overload) continue;
    for (const std::size_t index : reader.arguments) {
      const at::Tensor& read =
          torch::jit::last(stack, op.schema().arguments().size())[index].toTensor();
      at::Tensor now;
      {
        const RecordingPause pause;
        now = read.detach().clone();
      }
      at::equal(read, now);
    }
  }
}

// Without gradients max_pool1d writes its result through a pointer; with them it is this.
bool pool_by_operators(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (op.operator_name().name != "aten::max_pool1d") return false;
  static const c10::OperatorHandle other =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::max_pool1d_with_indices", "");
  other.callBoxed(stack);
  stack->pop_back();
  return true;
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  check_thread(op);
  if (!active_recorder->is_above_autograd()) {
    if (pool_by_operators(op, stack)) return;
    check_read_arguments(op, *stack);
    return op.redispatchBoxed(keys.remove(kModeKey), stack);
  }
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
  // Everything below this call is the operator's own business.
  c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKeySet({kBelowAutogradKey, kModeKey}));
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
      : previous_(std::exchange(active_recorder, &recorder)) {
    if (pre_dispatch)
      above_autograd_.emplace(kBelowAutogradKey);
    else
      below_autograd_.emplace(kBelowAutogradKey);
  }
  ~RecordingScope() { active_recorder = previous_; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  Recorder* previous_;
  c10::impl::IncludeDispatchKeyGuard mode_{kModeKey};
  std::optional<c10::impl::ExcludeDispatchKeyGuard> above_autograd_;
  std::optional<c10::impl::IncludeDispatchKeyGuard> below_autograd_;
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

ModuleScope::ModuleScope(const torch::nn::Module& module) : recorder_(active_recorder) {
  if (recorder_) recorder_->modules().enter(module);
}

ModuleScope::~ModuleScope() {
  if (recorder_) recorder_->modules().leave();
}

std::string_view assumption_kind_name(Assumption::Kind kind) {
  constexpr std::string_view kNames[] = {"input",    "value", "training", "grad mode",
                                         "constant", "kept",  "layout",   "size"};
  return kNames[static_cast<int>(kind)];
}

bool only_guards_read(const Node& value) {
  const auto is_assertion = [](const Node* user) { return user->calls("torch._assert"); };
  for (const Node* user : value.users()) {
    const bool compares =
        user->calls("operator.eq") || user->calls("operator.ne") || user->calls("operator.ge");
    if (!is_assertion(user) && !(compares && std::ranges::all_of(user->users(), is_assertion)))
      return false;
  }
  return true;
}

Recording record(const Program& program, std::vector<at::Tensor> inputs, RecordingDetail detail) {
  register_fallbacks();
  Recorder recorder(program.root, program.options, detail);
  std::vector<at::Tensor> seen;
  std::vector<InputGuard> guards;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const at::Tensor& other : seen)
      if (other.is_same(inputs[i])) {
        inputs[i] = distinct_handle(inputs[i]);
        break;
      }
    seen.push_back(inputs[i]);
    guards.push_back(exact_guard(program.input_names[i], inputs[i]));
    recorder.add_input(program.input_names[i], inputs[i]);
  }
  // Casts of parameters that autocast keeps would be constants.
  if (at::autocast::is_autocast_enabled(at::kCPU)) at::autocast::clear_cache();
  {
    TraceArg result;
    {
      const RecordingScope scope(recorder, program.options.pre_dispatch);
      result = program.run(inputs);
    }
    recorder.graph().output(recorder.output_arg(result));
  }
  if (at::autocast::is_autocast_enabled(at::kCPU)) at::autocast::clear_cache();
  inputs.clear();
  seen.clear();
  Recording made = recorder.finish();
  made.guards = std::move(guards);
  return made;
}

std::shared_ptr<GraphModule> record_program(
    const torch::nn::Module& root, std::vector<at::Tensor> inputs, const MakeFxOptions& options,
    const std::function<TraceArg(std::vector<at::Tensor>&)>& run) {
  TraceOptions naming;
  naming.input_names = options.input_names;
  const Program program{root, detail::default_input_names(inputs.size(), naming), options, run};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined())
      throw TraceError(
          ErrorCode::kBadArgument,
          "example input " + str_repr(program.input_names[i]) + " is an undefined tensor");
  Recording made = options.dynamic.empty()
                       ? record(program, inputs, {.stacks = options.source_lines})
                       : record_sizes(program, inputs);
  if (options.guard_values && options.dynamic.empty()) check_value_sizes(program, inputs, made);
  if (options.source_lines)
    for (const auto& [node, stack] : made.stacks)
      if (std::string source = stack.source(); !node->is_erased() && !source.empty())
        const_cast<Node*>(node)->set_stack_trace(source);
  set_module_scopes(*made.graph, root, made.called_modules);
  auto module = std::make_shared<GraphModule>(
      root, made.graph, options.class_name.empty() ? module_type_name(root) : options.class_name,
      GraphModule::Share::kAll, made.constants);
  module->set_input_guards(std::move(made.guards));
  module->meta().set("assumptions", std::move(made.assumptions));
  if (!options.guard_values) module->meta().set("values_unchecked", true);
  if (made.has_checks) module->meta().set("effects_before_checks", made.effects_before_checks);
  return module;
}

}  // namespace fx
