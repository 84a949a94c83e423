#include "fx/plan/operator_call.h"

#include <ATen/ScalarOps.h>
#include <c10/core/InferenceMode.h>

#include <cmath>
#include <limits>

namespace fx {
namespace {

// A step keeps no more than this many candidates; fx::call knows them all.
constexpr std::size_t kMaxCalls = 3;

bool takes_tensor(const ArgRule& rule) {
  return rule.conversion == Conversion::kTensor || rule.conversion == Conversion::kOptionalTensor;
}

bool takes_list(const ArgRule& rule) {
  switch (rule.conversion) {
    case Conversion::kIntList:
    case Conversion::kFloatList:
    case Conversion::kBoolList:
    case Conversion::kTensorList:
    case Conversion::kOptionalTensorList:
    case Conversion::kScalarList:
    case Conversion::kStringList:
    case Conversion::kAny:
      return true;
    default:
      return false;
  }
}

// Whether float32 holds the number as well as a conversion of the tensor would make it.
bool fits_float(const Value& value) {
  if (value.isInt()) return true;
  return value.isDouble() && !(std::isfinite(value.toDouble()) &&
                               std::fabs(value.toDouble()) > std::numeric_limits<float>::max());
}

// The float32 form of a number that stands for a tensor. Calls no operator, since planning may
// happen while a graph is being captured.
at::Tensor float_number(const at::Tensor& number) {
  const c10::Scalar scalar = number.scalar_type() == at::kLong
                                 ? c10::Scalar(*number.const_data_ptr<std::int64_t>())
                                 : c10::Scalar(*number.const_data_ptr<double>());
  at::Tensor made = at::detail::scalar_tensor_static(scalar, at::kFloat, at::kCPU);
  made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

// Follows bind(): the same overloads fit, the same stacks come out.
std::optional<OperatorCall> bind_operands(const Overload& overload,
                                          const std::vector<Operand>& args,
                                          const std::vector<std::pair<Symbol, Operand>>& kwargs,
                                          bool lenient, bool arithmetic) {
  if (args.size() > overload.num_positional) return std::nullopt;
  OperatorCall call;
  call.overload = &overload;
  call.num_returns = overload.handle.schema().returns().size();
  call.stack.resize(overload.rules.size());
  call.direct = true;
  std::size_t used_kwargs = 0;
  std::vector<std::size_t> numbers;  // positions of numbers that stand for tensors
  for (std::size_t i = 0; i < overload.rules.size(); ++i) {
    const ArgRule& rule = overload.rules[i];
    const Operand* operand = i < args.size() ? &args[i] : nullptr;
    for (const auto& [key, value] : kwargs) {
      if (!is_keyword_of(rule, key.str())) continue;
      if (operand) return std::nullopt;
      operand = &value;
      ++used_kwargs;
    }
    if (!operand) {
      if (!rule.has_default) return std::nullopt;
      call.stack[i] = rule.default_value;
    } else if (!operand->has_slots) {
      // A number that stands for a written tensor would be shared by all runs.
      if (!convert_argument(rule, operand->constant, call.stack[i], lenient && !rule.written))
        return std::nullopt;
      if (takes_tensor(rule) && !operand->constant.isNone()) {
        arithmetic &= fits_float(operand->constant);
        numbers.push_back(i);
      }
    } else {
      const bool is_slot = operand->kind == Operand::Kind::kSlot;
      if (!is_slot && !takes_list(rule)) return std::nullopt;
      call.direct &= is_slot && takes_tensor(rule);
      call.patches.push_back({static_cast<std::uint32_t>(i), *operand});
    }
  }
  if (used_kwargs != kwargs.size()) return std::nullopt;
  if (arithmetic && call.direct && !numbers.empty()) {
    call.float_stack = call.stack;
    for (std::size_t i : numbers) call.float_stack[i] = float_number(call.stack[i].toTensor());
  }
  return call;
}

}  // namespace

std::vector<OperatorCall> plan_operator_calls(const OpInfo& info, const std::vector<Operand>& args,
                                              const std::vector<std::pair<Symbol, Operand>>& kwargs,
                                              bool one_device) {
  std::vector<OperatorCall> calls;
  const bool lenient = info.overloads.size() == 1 || info.numbers_as_tensors;
  // A number that becomes a tensor is kept, and may be saved for a backward pass.
  c10::InferenceMode no_inference(false);
  for (const Overload& overload : info.overloads) {
    auto call = bind_operands(overload, args, kwargs, lenient, info.numbers_as_tensors);
    if (!call) continue;
    std::size_t tensors = 0;
    for (const OperatorCall::Patch& patch : call->patches) {
      const Conversion conversion = overload.rules[patch.position].conversion;
      if (takes_tensor(overload.rules[patch.position])) ++tensors;
      if (conversion == Conversion::kTensorList || conversion == Conversion::kOptionalTensorList)
        tensors += 2;
    }
    call->one_device = one_device && tensors > 1;
    calls.push_back(std::move(*call));
    if (calls.size() == kMaxCalls) break;
  }
  return calls;
}

}  // namespace fx
