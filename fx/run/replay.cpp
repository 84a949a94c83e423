#include "fx/run/replay.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>

#include "fx/base/error.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/call_recorder.h"
#include "fx/graph/module_kernel.h"
#include "fx/ops/call.h"
#include "fx/ops/stop.h"
#include "fx/ops/value_tensors.h"
#include "fx/run/layout_recorder.h"
#include "fx/run/run_observer.h"
#include "fx/run/static_frame.h"
#include "fx/run/step_runner.h"

namespace fx {
namespace {

// Calls with more kinds of inputs than this run the plan.
constexpr std::size_t kMaxLayouts = 8;
// Frames with larger arenas are kept only as long as they are not more than this together.
constexpr std::size_t kLargeArena = std::size_t{1} << 20;
constexpr std::size_t kKeptBytes = std::size_t{256} << 20;

// Whether the step gives no tensor that requires gradients, if none of its inputs does.
bool makes_no_gradients(const Step& step, const GraphModule& module, const ModulePath* path) {
  switch (step.kind) {
    case Step::Kind::kAttr:  // looked at in each call
    case Step::Kind::kItem:
      return true;
    case Step::Kind::kOperator:
      return std::none_of(step.calls.begin(), step.calls.end(), [](const OperatorCall& call) {
        return call.overload->handle.operator_name().name == "aten::requires_grad_";
      });
    case Step::Kind::kModule: {
      const auto* submodule = path->find_module(module);
      return submodule && dynamic_cast<const KernelModule*>(submodule->get());
    }
    default:
      return false;
  }
}

}  // namespace

// A layout, with the frames that have run it.
struct Replay::Entry {
  StaticLayout layout;
  c10::ScalarType default_dtype;
  mutable StaticFramePool frames;
  std::unique_ptr<const Entry> next;
};

// Only one call at a time records; the others run the plan meanwhile.
class Replay::Recording {
 public:
  explicit Recording(std::atomic<bool>& flag) : flag_(flag), mine_(!flag.exchange(true)) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (mine_) flag_ = false;
  }
  bool mine() const noexcept { return mine_; }

 private:
  std::atomic<bool>& flag_;
  bool mine_;
};

Replay::Replay(std::shared_ptr<GraphModule> module)
    : module_(std::move(module)),
      executable_(*module_),
      lifetimes_(result_lifetimes(executable_.plan(), module_->graph())) {
  const std::vector<Step>& steps = executable_.plan().steps();
  closed_ = true;
  for (std::size_t i = 0; i < steps.size(); ++i)
    closed_ = closed_ && makes_no_gradients(steps[i], *module_, executable_.path_of(i));
}

Replay::~Replay() {
  // One after the other: destructors of a list would recurse.
  std::unique_ptr<const Entry> entry(entries_.load());
  while (entry) entry = std::move(const_cast<Entry&>(*entry).next);
}

Value Replay::run(Values inputs, KwValues kwargs) const {
  if (detail::call_recorder()) return module_->forward(std::move(inputs), std::move(kwargs));
  flatten_inputs(*module_, executable_.plan().signature(), inputs, kwargs);
  return unflatten_output(*module_, run_flat(std::move(inputs), std::move(kwargs)));
}

Value Replay::run_flat(Values inputs, KwValues kwargs) const {
  if (can_replay(inputs, kwargs)) {
    if (const Entry* entry = find(inputs)) {
      if (entry->layout.num_static > 0) return replay(*entry, std::move(inputs));
    } else if (const Recording recording(recording_); recording.mine()) {
      return record(std::move(inputs));
    }
  }
  ordinary_.fetch_add(1, std::memory_order_relaxed);
  return executable_.run_flat(*module_, module_->constants(), std::move(inputs), std::move(kwargs));
}

bool Replay::can_replay(const Values& inputs, const KwValues& kwargs) const {
  if (!fits_placeholders(executable_.plan().signature(), inputs, kwargs) || !plain_dispatch() ||
      !executable_.plan().output_error().empty())
    return false;
  for (const Value& input : inputs)
    if (input.isTensor() ? !plain_tensor(input.toTensor()) : input.isObject()) return false;
  return !at::GradMode::is_enabled() || !gradients_may_flow(inputs);
}

bool Replay::gradients_may_flow(const Values& inputs) const {
  if (!closed_) return true;
  bool requires_grad = false;
  const auto look = [&](const at::Tensor& tensor) {
    requires_grad |= tensor.defined() && tensor.requires_grad();
  };
  for (const Value& input : inputs) for_each_tensor(input, look);
  const std::vector<Step>& steps = executable_.plan().steps();
  for (std::size_t i = 0; i < steps.size() && !requires_grad; ++i) {
    if (steps[i].kind != Step::Kind::kAttr) continue;
    const std::string& path = executable_.path_of(i)->str();
    look(module_->find_tensor(path));
  }
  return requires_grad;
}

const Replay::Entry* Replay::find(const Values& inputs) const {
  const c10::ScalarType dtype = c10::get_default_dtype_as_scalartype();
  for (const Entry* e = entries_.load(std::memory_order_acquire); e; e = e->next.get())
    if (e->default_dtype == dtype && e->layout.fits(inputs)) return e;
  return nullptr;
}

Value Replay::record(Values inputs) const {
  std::size_t count = 0;
  for (const Entry* e = entries_.load(std::memory_order_acquire); e; e = e->next.get()) ++count;
  if (const Entry* entry = find(inputs); count >= kMaxLayouts || entry) {
    // Another call has just recorded it, or there are many.
    ordinary_.fetch_add(1, std::memory_order_relaxed);
    return executable_.run_flat(*module_, module_->constants(), std::move(inputs), {});
  }
  LayoutRecorder::Recording recorded =
      LayoutRecorder(executable_, lifetimes_, *module_).run(std::move(inputs));
  auto entry = std::make_unique<Entry>();
  entry->layout = std::move(recorded.layout);
  entry->default_dtype = c10::get_default_dtype_as_scalartype();
  entry->next.reset(entries_.load(std::memory_order_acquire));
  entries_.store(entry.release(), std::memory_order_release);
  recorded_.fetch_add(1, std::memory_order_relaxed);
  return std::move(recorded.result);
}

// One call over a frame.
class Replay::Run {
 public:
  Run(const Replay& replay, const StaticLayout& layout, StaticFrame& frame)
      : executable_(replay.executable_),
        module_(*replay.module_),
        layout_(layout),
        frame_(frame),
        runner_(module_, module_.constants(), frame.frame()) {}

  Value run(Values inputs) {
    const Plan& plan = executable_.plan();
    store_inputs(plan, std::move(inputs), frame_.frame().slots);
    const StopScope* stop = StopScope::current();
    RunObserver* observer = RunObserver::current();
    const Step* step = nullptr;
    try {
      for (std::size_t i = 0; i < plan.steps().size(); ++i) {
        step = &plan.steps()[i];
        throw_if_stopped(stop);
        if (observer) [[unlikely]] {
          StepTimer timer(*observer, plan, i, frame_.frame().slots);
          Value value = evaluate(i);
          timer.done(value);
          runner_.finish(*step, std::move(value));
          continue;
        }
        runner_.finish(*step, evaluate(i));
      }
    } catch (...) {
      executable_.rethrow_for_step(step, runner_);
    }
    return runner_.take(plan.output());
  }

  /// Whether the run went back to the plan.
  bool left() const noexcept { return left_; }

 private:
  Value evaluate(std::size_t index) {
    const StaticStep& how = layout_.steps[index];
    if (left_) return evaluate_ordinary(index);
    switch (how.kind) {
      case StaticStep::Kind::kOrdinary:
        return evaluate_ordinary(index);
      case StaticStep::Kind::kConstant:
        return frame_.value(index);
      case StaticStep::Kind::kOut:
        if (call_out(how)) return frame_.value(index);
        break;
      case StaticStep::Kind::kKernel:
        if (call_kernel(index, how)) return frame_.value(index);
        break;
    }
    left_ = true;
    return evaluate_ordinary(index);
  }

  bool call_out(const StaticStep& how) {
    if (!runner_.fill_stack(*how.call)) return false;
    torch::jit::Stack& stack = frame_.frame().stack;
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    runner_.set_called(how.out.all_args ? how.call : nullptr);
    if (!how.out.all_args) arrange(how, stack);
    for (const Value& value : how.out.extra) stack.push_back(value);
    for (const at::Tensor& tensor : frame_.tensors(how.first, how.count))
      stack.emplace_back(tensor);
    call_boxed(*how.out.overload, stack);
    stack.clear();
    return true;
  }

  void arrange(const StaticStep& how, torch::jit::Stack& stack) {
    torch::jit::Stack& arranged = frame_.arranged();
    std::size_t next = how.transposed;
    for (const OutVariant::Arg& arg : how.out.args) {
      if (arg.transposed)
        arranged.emplace_back(frame_.transposed(next++, stack[arg.index].toTensor()));
      else
        arranged.push_back(std::move(stack[arg.index]));
    }
    stack.swap(arranged);
    arranged.clear();
  }

  bool call_kernel(std::size_t index, const StaticStep& how) {
    const auto* submodule = executable_.path_of(index)->find_module(module_);
    auto* kernel = submodule ? dynamic_cast<KernelModule*>(submodule->get()) : nullptr;
    runner_.set_called(nullptr);
    if (!kernel) return false;
    torch::jit::Stack& stack = frame_.frame().stack;
    stack.clear();
    for (const Operand& arg : executable_.plan().steps()[index].args)
      stack.push_back(frame_.frame().slots[arg.slot]);
    const bool done = kernel->call_into(stack, frame_.tensors(how.first, how.count));
    stack.clear();
    return done;
  }

  Value evaluate_ordinary(std::size_t index) {
    const Step& step = executable_.plan().steps()[index];
    Value value = runner_.evaluate(step, executable_.path_of(index));
    const std::uint32_t expected = layout_.steps[index].expected;
    if (expected != StaticStep::kUnchecked &&
        !(value.isTensor() && layout_.expected[expected].matches(value.toTensor())))
      left_ = true;
    // A module that was another one, or of another mind, when it was analysed may return its input.
    if (step.kind == Step::Kind::kModule) value = out_of_frame(std::move(value));
    return value;
  }

  // The value without tensors of the frame: copies stand for them.
  Value out_of_frame(Value value) {
    bool inside = false;
    for_each_tensor(value, [&](const at::Tensor& tensor) { inside |= frame_.holds(tensor); });
    if (!inside) return value;
    left_ = true;
    if (value.isTensor()) return value.toTensor().clone();
    if (!value.isTuple() && !is_sequence(value))
      throw RunError(
          ErrorCode::kWrongType,
          "a module that was replaced since the graph was compiled returns its input in " +
              describe(value) + ", wanted a tensor, a list or a tuple");
    Values items = elements(value);
    for (Value& item : items) item = out_of_frame(std::move(item));
    return value.isTuple() ? Value(c10::ivalue::Tuple::create(std::move(items)))
                           : make_list(std::move(items));
  }

  const Executable& executable_;
  const GraphModule& module_;
  const StaticLayout& layout_;
  StaticFrame& frame_;
  StepRunner runner_;
  bool left_ = false;
};

Value Replay::replay(const Entry& entry, Values inputs) const {
  const std::size_t bytes = entry.layout.memory.arena_size;
  std::unique_ptr<StaticFrame> frame = entry.frames.take();
  if (!frame)
    frame = std::make_unique<StaticFrame>(executable_, entry.layout, *module_);
  else if (bytes > kLargeArena)
    large_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  Run run(*this, entry.layout, *frame);
  Value result = run.run(std::move(inputs));
  replays_.fetch_add(1, std::memory_order_relaxed);
  if (run.left()) left_.fetch_add(1, std::memory_order_relaxed);
  give_back(entry, std::move(frame));
  return result;
}

// Unless somebody else holds a part of it, or there are many.
void Replay::give_back(const Entry& entry, std::unique_ptr<StaticFrame> frame) const {
  frame->clear();
  if (!frame->intact()) {
    frames_lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::size_t bytes = entry.layout.memory.arena_size;
  if (bytes > kLargeArena &&
      large_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > kKeptBytes) {
    large_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return;
  }
  entry.frames.give(std::move(frame));
}

Replay::Statistics Replay::statistics() const {
  Statistics out{.replays = replays_, .left = left_, .ordinary = ordinary_, .recorded = recorded_};
  out.frames_lost = frames_lost_;
  for (const Entry* e = entries_.load(std::memory_order_acquire); e; e = e->next.get()) {
    ++out.layouts;
    const std::size_t frames = e->frames.size();
    out.frames += frames;
    out.frame_bytes += frames * e->layout.memory.arena_size;
  }
  return out;
}

std::string Replay::summary() const {
  const Statistics s = statistics();
  return "replay: " + std::to_string(s.replays) + " calls in reused memory, " +
         std::to_string(s.left) + " of them left it for the plan, " + std::to_string(s.ordinary) +
         " by the plan alone; " + std::to_string(s.layouts) + " layouts, " +
         std::to_string(s.frames) + " frames of " + std::to_string(s.frame_bytes) +
         " bytes together wait";
}

std::string Replay::str() const {
  std::string out = executable_.plan().str();
  for (const Entry* e = entries_.load(std::memory_order_acquire); e; e = e->next.get())
    out += e->layout.str(executable_.plan());
  return out;
}

}  // namespace fx
