#include "fx/run/step_runner.h"

#include <algorithm>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/module_types.h"
#include "fx/ops/call.h"
#include "fx/ops/device_check.h"

namespace fx {
namespace {

// The value of an operand. With `take`, values that die here are moved out of their slots.
Value value_of(const Operand& operand, Values& slots, bool take) {
  auto items = [&]() {
    Values values;
    values.reserve(operand.items.size());
    for (const Operand& item : operand.items) values.push_back(value_of(item, slots, take));
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

}  // namespace

Value StepRunner::evaluate(const Step& step, const ModulePath* path) {
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

bool StepRunner::fill_stack(const OperatorCall& call) {
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
                                 value_of(patch.operand, slots_, /*take=*/false), target)) {
      stack_.clear();
      return false;
    }
  }
  return true;
}

Value StepRunner::call_operator(const Step& step, const OperatorCall& call) {
  called_ = &call;
  if (call.one_device && !share_device(stack_)) [[unlikely]] {
    const KwValues none;
    if (step.function)
      check_devices(*step.function, stack_, none);
    else
      check_devices_of_method(step.target.str(), stack_, none);
  }
  call_boxed(*call.overload, stack_);
  Value result = pack_results(stack_, call.num_returns);
  stack_.clear();
  return result;
}

Value StepRunner::call_generic(const Step& step) {
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

Value StepRunner::read_attribute(const ModulePath& path) const {
  if (!constants_.empty())
    if (auto constant = constants_.find(path.str()); constant != constants_.end())
      return constant->second;
  if (const at::Tensor* tensor = path.find_tensor(module_)) return *tensor;
  if (path.find_module(module_)) return module_.fetch_attr(path.str());
  path.throw_missing(module_);
}

Value StepRunner::call_submodule(const Step& step, const ModulePath& path) {
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

std::pair<Values, KwValues> StepRunner::arguments(const Step& step) {
  std::pair<Values, KwValues> values;
  values.first.reserve(step.args.size());
  for (const Operand& operand : step.args)
    values.first.push_back(value_of(operand, slots_, /*take=*/false));
  for (const auto& [key, operand] : step.kwargs)
    values.second.push_back({key, value_of(operand, slots_, /*take=*/false)});
  return values;
}

void StepRunner::add_inputs(const Operand& operand, std::vector<const Node*>& seen,
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

Value StepRunner::take(const Operand& operand) { return value_of(operand, slots_, /*take=*/true); }

NamedValues StepRunner::inputs_of(const Step& step) const {
  NamedValues inputs;
  std::vector<const Node*> seen;
  for (const Operand& operand : step.args) add_inputs(operand, seen, inputs);
  for (const auto& kwarg : step.kwargs) add_inputs(kwarg.second, seen, inputs);
  return inputs;
}

bool fits_placeholders(const InputSignature& signature, const Values& inputs,
                       const KwValues& kwargs) {
  return kwargs.empty() && inputs.size() == signature.parameters.size() &&
         !signature.takes_any_positional && !signature.takes_any_keyword;
}

void store_inputs(const Plan& plan, Values&& inputs, Values& slots) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const Slot slot = plan.input_slots()[i]; slot != kNoSlot)
      slots[slot] = std::move(inputs[i]);
  inputs.clear();
}

}  // namespace fx
