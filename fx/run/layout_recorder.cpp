#include "fx/run/layout_recorder.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/enum_tag.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "fx/graph/module_kernel.h"
#include "fx/ops/call.h"
#include "fx/ops/stop.h"
#include "fx/ops/value_tensors.h"
#include "fx/run/frame.h"
#include "fx/run/step_runner.h"

namespace fx {
namespace {

// The tensors of a result that is one tensor or a tuple of them; empty for others, and if one of
// them is not plain, not dense, or has memory that somebody else holds as well.
std::vector<at::Tensor> fresh_tensors(const Value& value) {
  std::vector<at::Tensor> out;
  const auto add = [&](const Value& item) {
    if (!item.isTensor()) return false;
    const at::Tensor& tensor = item.toTensor();
    if (!plain_tensor(tensor) || !tensor.is_non_overlapping_and_dense() ||
        tensor.storage_offset() != 0 || tensor.use_count() != 1 ||
        tensor.storage().use_count() != 1 || tensor.requires_grad() ||
        tensor.unsafeGetTensorImpl()->is_wrapped_number())
      return false;
    out.push_back(tensor);
    return true;
  };
  if (value.isTensor()) {
    if (!add(value)) return {};
  } else if (value.isTuple()) {
    for (const Value& item : value.toTupleRef().elements())
      if (!add(item)) return {};
  }
  return out;
}

std::vector<at::Tensor> empty_like_all(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors)
    out.push_back(at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()));
  return out;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.scalar_type() == b.scalar_type() &&
         (a.numel() == 0 ||
          std::memcmp(a.const_data_ptr(), b.const_data_ptr(),
                      static_cast<std::size_t>(a.numel()) * a.element_size()) == 0);
}

bool all_plain(const torch::jit::Stack& stack) {
  bool plain = true;
  for (const Value& value : stack)
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      plain &= !tensor.defined() || plain_tensor(tensor);
    });
  return plain;
}

// Whether all that changes from run to run are tensors, alone or in lists.
bool reads_tensors(const OperatorCall& call, const torch::jit::Stack& stack) {
  return std::all_of(call.patches.begin(), call.patches.end(), [&](const auto& patch) {
    const Operand& operand = patch.operand;
    const Conversion wanted = call.overload->rules[patch.position].conversion;
    if (operand.kind == Operand::Kind::kSlot)
      return (wanted == Conversion::kTensor || wanted == Conversion::kOptionalTensor) &&
             stack[patch.position].isTensor() && stack[patch.position].toTensor().defined();
    return wanted == Conversion::kTensorList &&
           (operand.kind == Operand::Kind::kList || operand.kind == Operand::Kind::kTuple) &&
           std::all_of(operand.items.begin(), operand.items.end(),
                       [](const Operand& item) { return item.kind == Operand::Kind::kSlot; });
  });
}

// Whether a call on the same geometry gives the same views.
bool is_view_like(const Overload& overload) {
  return !overload.mutates && !overload.random &&
         !overload.handle.hasTag(at::Tag::dynamic_output_shape) &&
         !overload.handle.hasTag(at::Tag::data_dependent_output);
}

}  // namespace

// What is seen in one run.
class LayoutRecorder::Observer {
 public:
  Observer(const LayoutRecorder& recorder, Frame& frame)
      : executable_(recorder.executable_),
        lifetimes_(recorder.lifetimes_),
        module_(recorder.module_),
        frame_(frame),
        runner_(module_, module_.constants(), frame),
        seen_(executable_.plan().steps().size()) {}

  StepRunner& runner() { return runner_; }

  void run_step(std::size_t index) {
    const Step& step = executable_.plan().steps()[index];
    Value value;
    if (!lifetimes_[index].is_private)
      value = runner_.evaluate(step, executable_.path_of(index));
    else if (step.kind == Step::Kind::kOperator)
      value = run_operator(index);
    else if (step.kind == Step::Kind::kModule)
      value = run_module(index);
    else
      value = run_other(index);
    note_memory(index, value);
    runner_.finish(step, std::move(value));
  }

  StaticLayout layout(std::vector<std::optional<TensorSpec>> inputs) {
    StaticLayout out;
    out.inputs = std::move(inputs);
    out.steps.resize(seen_.size());
    if (gives_up_) return out;
    std::unordered_map<const Node*, std::size_t> step_of;
    for (std::size_t i = 0; i < seen_.size(); ++i)
      step_of.emplace(executable_.plan().steps()[i].node, i);
    for (std::size_t i = 0; i < seen_.size(); ++i) make_static(i, step_of, out);
    for (std::size_t i = 0; i < seen_.size(); ++i) expect_inputs(i, step_of, out);
    place(out);
    return out;
  }

 private:
  struct Seen {
    const OperatorCall* call = nullptr;
    OutVariant out;
    bool is_kernel = false;
    bool is_tuple = false;
    bool escapes = false;            ///< AliasAnalysis does not know of all its views
    bool may_be_view = false;        ///< of its inputs, by its kind
    bool only_views = false;         ///< and it is nothing else
    std::vector<TensorSpec> specs;   ///< of fresh results that can be written again
    std::optional<TensorSpec> spec;  ///< of a result that is one plain tensor
  };

  Value run_operator(std::size_t index) {
    const Step& step = executable_.plan().steps()[index];
    for (const OperatorCall& call : step.calls) {
      if (!runner_.fill_stack(call)) continue;
      torch::jit::Stack arguments = frame_.stack;
      Value value = runner_.call_operator(step, call);
      Seen& seen = seen_[index];
      seen.call = &call;
      seen.may_be_view = is_view_like(*call.overload);
      if (reads_tensors(call, arguments) && all_plain(arguments))
        try_out(seen, std::move(arguments), value);
      return value;
    }
    return runner_.evaluate(step, nullptr);
  }

  void try_out(Seen& seen, torch::jit::Stack arguments, const Value& value) {
    OutVariant out = find_out_variant(*seen.call->overload, arguments);
    if (!out.overload) return;
    std::vector<TensorSpec> specs = specs_of_fresh(value);
    if (specs.empty()) return;
    std::vector<at::Tensor> wanted;
    for_each_tensor(value, [&](const at::Tensor& tensor) { wanted.push_back(tensor); });
    const std::vector<at::Tensor> found = empty_like_all(wanted);
    try {
      const at::AutoDispatchBelowADInplaceOrView no_autograd;
      if (!out.all_args) {
        torch::jit::Stack chosen;
        for (const OutVariant::Arg& arg : out.args)
          chosen.emplace_back(arg.transposed ? Value(arguments[arg.index].toTensor().t())
                                             : arguments[arg.index]);
        arguments = std::move(chosen);
      }
      arguments.insert(arguments.end(), out.extra.begin(), out.extra.end());
      arguments.insert(arguments.end(), found.begin(), found.end());
      call_boxed(*out.overload, arguments);
    } catch (const std::exception&) {
      return;  // it takes less than the operator does
    }
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (!same_bits(wanted[i], found[i])) return;
    seen.out = std::move(out);
    seen.specs = std::move(specs);
    seen.is_tuple = value.isTuple();
  }

  std::vector<TensorSpec> specs_of_fresh(const Value& value) {
    std::vector<TensorSpec> specs;
    for (const at::Tensor& tensor : fresh_tensors(value)) specs.emplace_back(tensor);
    return specs;
  }

  Value run_module(std::size_t index) {
    const Step& step = executable_.plan().steps()[index];
    const ModulePath* path = executable_.path_of(index);
    Value value = runner_.evaluate(step, path);
    const auto* submodule = path->find_module(module_);
    auto* kernel = submodule ? dynamic_cast<KernelModule*>(submodule->get()) : nullptr;
    const bool takes_slots =
        step.kwargs.empty() && std::all_of(step.args.begin(), step.args.end(), [](const auto& arg) {
          return arg.kind == Operand::Kind::kSlot;
        });
    if (!kernel || !takes_slots) return value;
    // The first call may have looked what there is to compute; the second is as all others.
    value = runner_.evaluate(step, path);
    std::vector<TensorSpec> specs = specs_of_fresh(value);
    if (specs.empty()) return value;
    std::vector<at::Tensor> like;
    for_each_tensor(value, [&](const at::Tensor& tensor) { like.push_back(tensor); });
    Values inputs;
    for (const Operand& arg : step.args) inputs.push_back(frame_.slots[arg.slot]);
    if (!kernel->call_into(inputs, empty_like_all(like))) return value;
    Seen& seen = seen_[index];
    seen.is_kernel = true;
    seen.is_tuple = value.isTuple();
    seen.specs = std::move(specs);
    return value;
  }

  Value run_other(std::size_t index) {
    const Step& step = executable_.plan().steps()[index];
    seen_[index].may_be_view = step.kind == Step::Kind::kItem;
    return runner_.evaluate(step, executable_.path_of(index));
  }

  // Who made the memory of the tensors in a value: results whose views AliasAnalysis did not expect
  // are not static.
  void note_memory(std::size_t index, const Value& value) {
    gives_up_ |= value.isObject();
    Seen& seen = seen_[index];
    if (value.isTensor() && plain_tensor(value.toTensor())) seen.spec.emplace(value.toTensor());
    bool any = false;
    bool all_owned = true;
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !tensor.has_storage()) return;
      any = true;
      const auto found = owners_.find(tensor.storage().unsafeGetStorageImpl());
      if (found == owners_.end() || found->second.storage.expired()) {
        all_owned = false;
        owners_.insert_or_assign(tensor.storage().unsafeGetStorageImpl(),
                                 Owner{storage_of(tensor), static_cast<std::uint32_t>(index)});
      } else if (lifetimes_[found->second.step].set != lifetimes_[index].set) {
        seen_[found->second.step].escapes = true;
      }
    });
    seen.only_views = seen.may_be_view && any && all_owned;
  }

  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Owner {
    WeakStorage storage;  // keeps the address from being used again
    std::uint32_t step;
  };
  static WeakStorage storage_of(const at::Tensor& tensor) {
    return WeakStorage(tensor.storage().getWeakStorageImpl());
  }

  void make_static(std::size_t index, const std::unordered_map<const Node*, std::size_t>& step_of,
                   StaticLayout& out) {
    const Seen& seen = seen_[index];
    StaticStep& step = out.steps[index];
    if (!lifetimes_[index].is_private || seen.escapes) return;
    if (seen.out.overload || seen.is_kernel) {
      step.kind = seen.is_kernel ? StaticStep::Kind::kKernel : StaticStep::Kind::kOut;
      step.call = seen.call;
      step.out = seen.out;
      step.is_tuple = seen.is_tuple;
      step.first = static_cast<std::uint32_t>(out.tensors.size());
      step.count = static_cast<std::uint32_t>(seen.specs.size());
      step.transposed = out.num_transposed;
      for (const OutVariant::Arg& arg : seen.out.args) out.num_transposed += arg.transposed;
      for (const TensorSpec& spec : seen.specs)
        out.tensors.push_back({.spec = spec,
                               .first = static_cast<std::uint32_t>(index),
                               .last = lifetimes_[index].last});
    } else if (seen.only_views) {
      const auto& inputs = executable_.plan().steps()[index].node->all_input_nodes();
      const bool all_static = std::all_of(inputs.begin(), inputs.end(), [&](const Node* input) {
        const auto made = step_of.find(input);
        return made != step_of.end() && out.steps[made->second].kind != StaticStep::Kind::kOrdinary;
      });
      if (!all_static) return;
      step.kind = StaticStep::Kind::kConstant;
    } else {
      return;
    }
    ++out.num_static;
  }

  // What comes from ordinary steps into an out-variant is checked in each run. Inputs of the graph
  // were checked before it; kernels check for themselves.
  void expect_inputs(std::size_t index, const std::unordered_map<const Node*, std::size_t>& step_of,
                     StaticLayout& out) {
    if (out.steps[index].kind != StaticStep::Kind::kOut) return;
    for (const Node* input : executable_.plan().steps()[index].node->all_input_nodes()) {
      const auto made = step_of.find(input);
      if (made == step_of.end()) continue;
      StaticStep& producer = out.steps[made->second];
      if (producer.kind != StaticStep::Kind::kOrdinary ||
          producer.expected != StaticStep::kUnchecked || !seen_[made->second].spec)
        continue;
      producer.expected = static_cast<std::uint32_t>(out.expected.size());
      out.expected.push_back(*seen_[made->second].spec);
    }
  }

  static void place(StaticLayout& out) {
    std::vector<MemoryInterval> intervals;
    for (const StaticTensor& tensor : out.tensors)
      intervals.push_back(
          {.size = tensor.spec.nbytes(), .first = tensor.first, .last = tensor.last});
    out.memory = plan_memory(intervals);
    for (std::size_t i = 0; i < intervals.size(); ++i)
      out.tensors[i].offset = out.memory.offsets[i];
  }

  const Executable& executable_;
  const std::vector<ResultLifetime>& lifetimes_;
  const GraphModule& module_;
  Frame& frame_;
  StepRunner runner_;
  std::vector<Seen> seen_;
  std::unordered_map<const c10::StorageImpl*, Owner> owners_;
  bool gives_up_ = false;
};

LayoutRecorder::LayoutRecorder(const Executable& executable,
                               const std::vector<ResultLifetime>& lifetimes,
                               const GraphModule& module)
    : executable_(executable), lifetimes_(lifetimes), module_(module) {}

LayoutRecorder::Recording LayoutRecorder::run(Values inputs) const {
  const Plan& plan = executable_.plan();
  std::vector<std::optional<TensorSpec>> specs;
  for (const Value& input : inputs) {
    specs.emplace_back();
    if (input.isTensor()) specs.back().emplace(input.toTensor());
  }
  FrameLease frame(plan.num_slots());
  store_inputs(plan, std::move(inputs), frame->slots);
  Observer observer(*this, *frame);
  const StopScope* stop = StopScope::current();
  const Step* step = nullptr;
  try {
    for (std::size_t i = 0; i < plan.steps().size(); ++i) {
      step = &plan.steps()[i];
      throw_if_stopped(stop);
      observer.run_step(i);
    }
  } catch (...) {
    executable_.rethrow_for_step(step, observer.runner());
  }
  Recording out;
  out.result = observer.runner().take(plan.output());
  out.layout = observer.layout(std::move(specs));
  return out;
}

}  // namespace fx
