#include "fx/run/executable.h"

#include <algorithm>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/module_types.h"
#include "fx/graph/node_error.h"
#include "fx/ops/device_check.h"
#include "fx/run/frame.h"

namespace fx {
namespace {

// The value of an operand. With `take`, values that die here are moved out of their slots.
Value evaluate(const Operand& operand, Values& slots, bool take) {
  auto items = [&]() {
    Values values;
    values.reserve(operand.items.size());
    for (const Operand& item : operand.items) values.push_back(evaluate(item, slots, take));
    return values;
  };
  switch (operand.kind) {
    case Operand::Kind::kConstant:
      return operand.constant;
    case Operand::Kind::kSlot:
      return take && operand.last_use ? std::move(slots[operand.slot]) : slots[operand.slot];
    case Operand::Kind::kList:
      return make_list(items());
    case Operand::Kind::kTuple:
      return c10::ivalue::Tuple::create(items());
    case Operand::Kind::kSlice: {
      Values parts = items();
      return make_slice(std::move(parts[0]), std::move(parts[1]), std::move(parts[2]));
    }
    case Operand::Kind::kDict: {
      bool string_keys = true;
      for (const Value& key : operand.keys) string_keys &= key.isString();
      c10::impl::GenericDict dict(
          string_keys ? c10::TypePtr(c10::StringType::get()) : c10::TypePtr(c10::AnyType::get()),
          c10::AnyType::get());
      Values values = items();
      for (std::size_t i = 0; i < values.size(); ++i)
        dict.insert_or_assign(operand.keys[i], std::move(values[i]));
      return dict;
    }
  }
  FX_ASSERT(false, "unknown kind of operand");
}

bool is_cpu_float(const at::Tensor& tensor) {
  return tensor.defined() && tensor.scalar_type() == at::kFloat && tensor.is_cpu();
}

// One run of an executable.
class Run {
 public:
  Run(const GraphModule& module, const Executable::Constants& constants, Frame& frame)
      : module_(module), constants_(constants), slots_(frame.slots), stack_(frame.stack) {}

  void step(const Step& step, const ModulePath* path) {
    Value result = evaluate_step(step, path);
    for (Slot slot : step.releases)
      if (!slots_[slot].isNone()) slots_[slot] = Value();
    if (step.result != kNoSlot) slots_[step.result] = std::move(result);
  }

  Value take(const Operand& operand) { return evaluate(operand, slots_, /*take=*/true); }

  // What the failed step has read: in the slots still, or moved to the stack.
  NamedValues inputs_of(const Step& step) const {
    NamedValues inputs;
    std::vector<const Node*> seen;
    for (const Operand& operand : step.args) add_inputs(operand, seen, inputs);
    for (const auto& kwarg : step.kwargs) add_inputs(kwarg.second, seen, inputs);
    return inputs;
  }

 private:
  Value evaluate_step(const Step& step, const ModulePath* path) {
    switch (step.kind) {
      case Step::Kind::kOperator:
        for (const OperatorCall& call : step.calls)
          if (fill_stack(call)) return call_operator(step, call);
        return call_generic(step);
      case Step::Kind::kItem: {
        // call_generic also reports an index that is out of range.
        const Value& tuple = slots_[step.args[0].slot];
        const std::int64_t index = step.args[1].constant.toInt();
        if (tuple.isTuple()) {
          const auto& items = tuple.toTupleRef().elements();
          const auto size = static_cast<std::int64_t>(items.size());
          const std::int64_t at = index < 0 ? index + size : index;
          if (at >= 0 && at < size) return items[static_cast<std::size_t>(at)];
        }
        return call_generic(step);
      }
      case Step::Kind::kFunction:
      case Step::Kind::kMethod:
        return call_generic(step);
      case Step::Kind::kAttr:
        return read_attribute(*path);
      case Step::Kind::kModule:
        return call_submodule(step, *path);
      case Step::Kind::kError:
        break;
    }
    throw RunError(step.error_code, step.error);
  }

  // Puts the arguments on the stack, or returns false with all slots as they were.
  bool fill_stack(const OperatorCall& call) {
    bool floats = !call.float_stack.empty();
    if (call.direct) {
      for (const OperatorCall::Patch& patch : call.patches) {
        const Value& slot = slots_[patch.operand.slot];
        if (!slot.isTensor()) return false;
        if (floats) floats = is_cpu_float(slot.toTensor());
      }
    }
    const std::vector<Value>& layout = floats ? call.float_stack : call.stack;
    stack_.assign(layout.begin(), layout.end());
    for (const OperatorCall::Patch& patch : call.patches) {
      Value& target = stack_[patch.position];
      if (call.direct) {
        Value& slot = slots_[patch.operand.slot];
        if (patch.operand.last_use)
          target = std::move(slot);
        else
          target = slot;
      } else if (!convert_argument(call.overload->rules[patch.position],
                                   evaluate(patch.operand, slots_, /*take=*/false), target)) {
        stack_.clear();
        return false;
      }
    }
    return true;
  }

  Value call_operator(const Step& step, const OperatorCall& call) {
    called_ = &call;
    if (call.one_device && !share_device(stack_)) [[unlikely]] {
      const KwValues none;
      if (step.function)
        check_devices(*step.function, stack_, none);
      else
        check_devices_of_method(step.target.str(), stack_, none);
    }
    call.overload->handle.callBoxed(stack_);
    Value result = pack_results(stack_, call.num_returns);
    stack_.clear();
    return result;
  }

  Value call_generic(const Step& step) {
    called_ = nullptr;
    auto [args, kwargs] = arguments(step);
    if (!step.function) {
      check_devices_of_method(step.target.str(), args, kwargs);
      return call_method(step.target.str(), std::move(args), std::move(kwargs));
    }
    check_devices(*step.function, args, kwargs);
    if (step.builtin) return step.builtin(args, kwargs);
    return call(*step.function, std::move(args), std::move(kwargs));
  }

  Value read_attribute(const ModulePath& path) const {
    if (!constants_.empty())
      if (auto constant = constants_.find(path.str()); constant != constants_.end())
        return constant->second;
    if (const at::Tensor* tensor = path.find_tensor(module_)) return *tensor;
    if (path.find_module(module_)) return module_.fetch_attr(path.str());
    path.throw_missing(module_);
  }

  Value call_submodule(const Step& step, const ModulePath& path) {
    called_ = nullptr;
    const auto* submodule = path.find_module(module_);
    if (!submodule) {
      if (module_.find_tensor(path.str()).defined())
        throw RunError(ErrorCode::kMissingAttr, "call_module of " + str_repr(path.str()) +
                                                    ": a tensor stands there, wanted a module");
      path.throw_missing(module_);
    }
    auto [args, kwargs] = arguments(step);
    return call_module(**submodule, std::move(args), std::move(kwargs));
  }

  std::pair<Values, KwValues> arguments(const Step& step) {
    std::pair<Values, KwValues> values;
    values.first.reserve(step.args.size());
    for (const Operand& operand : step.args)
      values.first.push_back(evaluate(operand, slots_, /*take=*/false));
    for (const auto& [key, operand] : step.kwargs)
      values.second.push_back({key, evaluate(operand, slots_, /*take=*/false)});
    return values;
  }

  void add_inputs(const Operand& operand, std::vector<const Node*>& seen,
                  NamedValues& inputs) const {
    for (const Operand& item : operand.items) add_inputs(item, seen, inputs);
    if (operand.kind != Operand::Kind::kSlot || operand.slot >= slots_.size() ||
        std::find(seen.begin(), seen.end(), operand.producer) != seen.end())
      return;
    seen.push_back(operand.producer);
    Value value = slots_[operand.slot];
    if (value.isNone() && called_) {
      for (const OperatorCall::Patch& patch : called_->patches)
        if (patch.operand.slot == operand.slot && patch.position < stack_.size())
          value = stack_[patch.position];
      if (value.isNone()) return;  // the operator took it: nothing is known of it any more
    }
    inputs.emplace_back(operand.producer->name(), std::move(value));
  }

  const GraphModule& module_;
  const Executable::Constants& constants_;
  Values& slots_;
  torch::jit::Stack& stack_;
  const OperatorCall* called_ = nullptr;  // whose arguments are on the stack
};

}  // namespace

Executable::Executable(const GraphModule& module)
    : graph_(module.graph_ptr()), plan_(module.graph()) {
  for (const Step& step : plan_.steps()) {
    step_path_.push_back(static_cast<std::uint32_t>(paths_.size()));
    if (step.kind == Step::Kind::kAttr || step.kind == Step::Kind::kModule)
      paths_.emplace_back(step.target.str());
  }
}

Value Executable::run(const GraphModule& module, const Constants& constants, Values inputs,
                      KwValues kwargs) const {
  const InputSignature& signature = plan_.signature();
  flatten_inputs(module, signature, inputs, kwargs);
  FrameLease frame(plan_.num_slots());
  const std::size_t num_inputs = signature.parameters.size();
  if (kwargs.empty() && inputs.size() == num_inputs && !signature.takes_any_positional &&
      !signature.takes_any_keyword) [[likely]] {
    for (std::size_t i = 0; i < num_inputs; ++i)
      if (const Slot slot = plan_.input_slots()[i]; slot != kNoSlot)
        frame->slots[slot] = std::move(inputs[i]);
  } else {
    BoundInputs bound(signature, std::move(inputs), std::move(kwargs));
    for (std::size_t i = 0; i < num_inputs; ++i) {
      const auto& parameter = signature.parameters[i];
      try {
        Value value = bound.take(parameter.target,
                                 parameter.has_default ? &parameter.default_value : nullptr);
        if (const Slot slot = plan_.input_slots()[i]; slot != kNoSlot)
          frame->slots[slot] = std::move(value);
      } catch (...) {
        rethrow_for_node(*parameter.node, {});
      }
    }
  }
  // Inputs that nobody reads die here.
  inputs.clear();

  Run run(module, constants, *frame);
  const Step* step = nullptr;
  try {
    const std::vector<Step>& steps = plan_.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      step = &steps[i];
      run.step(*step, step_path_[i] < paths_.size() ? &paths_[step_path_[i]] : nullptr);
    }
    step = nullptr;
    if (!plan_.output_error().empty())
      throw RunError(ErrorCode::kMissingValue, plan_.output_error());
  } catch (...) {
    const bool edited = graph_->version() != plan_.graph_version();
    rethrow_for_node(
        step ? *step->node : *plan_.output_node(), step ? run.inputs_of(*step) : NamedValues(),
        edited ? "The graph was edited since it was compiled: the node may have run in "
                 "an older form."
               : "");
  }
  return unflatten_output(module, run.take(plan_.output()));
}

}  // namespace fx
