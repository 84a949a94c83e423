#include "tests/compile/eager_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>

#include "fx/compile/lower_op.h"
#include "fx/compile/unsupported.h"
#include "fx/ops/function.h"
#include "fx/ops/tolerance.h"
#include "tests/compile/reference.h"

namespace fx::loops {
namespace {

/// Which elements agree: NaN with NaN, infinities with themselves, zeros of one sign if exact.
at::Tensor agreement(const at::Tensor& actual, const at::Tensor& expected, bool exact) {
  if (!expected.is_floating_point()) return actual == expected;
  const at::Tensor nans = at::logical_and(actual.isnan(), expected.isnan());
  at::Tensor same = actual == expected;
  if (exact) {
    same = at::logical_and(same, actual.signbit() == expected.signbit());
  } else {
    const Tolerance t = default_tolerance(expected.scalar_type());
    const at::Tensor a = actual.to(at::kDouble);
    const at::Tensor e = expected.to(at::kDouble);
    const at::Tensor close = (a - e).abs() <= t.atol + t.rtol * e.abs();
    same =
        at::logical_or(same, at::logical_and(close, at::logical_and(a.isfinite(), e.isfinite())));
  }
  return at::logical_or(same, nans);
}

bool is_wrapped(const c10::IValue& arg) {
  return arg.isTensor() && arg.toTensor().defined() &&
         arg.toTensor().unsafeGetTensorImpl()->is_wrapped_number();
}

/// The argument with each tensor in it, but numbers, replaced.
template <typename Fn>
c10::IValue map_tensors(const c10::IValue& arg, Fn fn) {
  if (arg.isTensor() && arg.toTensor().defined() && !is_wrapped(arg)) return fn(arg.toTensor());
  if (arg.isTensorList()) {
    std::vector<at::Tensor> out;
    for (const at::Tensor& item : arg.toTensorVector()) out.push_back(fn(item));
    return out;
  }
  if (arg.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> out;
    for (const c10::IValue& item : arg.toListRef())
      out.push_back(item.isNone() ? std::optional<at::Tensor>() : fn(item.toTensor()));
    return out;
  }
  return arg;
}

std::optional<Stack> run_eager(const Overload& overload, const Stack& args, std::string& error) {
  Stack stack;
  for (const c10::IValue& arg : args)
    stack.push_back(map_tensors(arg, [](const at::Tensor& tensor) { return tensor.clone(); }));
  try {
    overload.handle.callBoxed(stack);
  } catch (const c10::Error& e) {
    error = e.what_without_backtrace();  // that takes long
    return std::nullopt;
  } catch (const std::exception& e) {
    error = e.what();
    return std::nullopt;
  }
  // The elements of a list are as many results.
  Stack results;
  for (const c10::IValue& result : stack) {
    if (result.isTensorList())
      for (const at::Tensor& item : result.toTensorVector()) results.emplace_back(item);
    else
      results.push_back(result);
  }
  return results;
}

/// The call with every tensor that has dimensions replaced by `count` copies of the element that
/// takes part in element `index` of the result.
Stack with_element(const Stack& args, at::IntArrayRef sizes, std::int64_t index,
                   std::int64_t count) {
  Stack out;
  for (const c10::IValue& arg : args) {
    if (!arg.isTensor() || !arg.toTensor().defined() || arg.toTensor().dim() == 0)
      out.push_back(arg);
    else
      out.push_back(arg.toTensor().expand(sizes).reshape({-1})[index].expand({count}).contiguous());
  }
  return out;
}

/// The call in double, to judge by which of two inexact results is nearer.
std::optional<Stack> exact_call(const Overload& overload, const Stack& args) {
  Stack out;
  c10::ScalarType narrow = at::kDouble;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (overload.rules[i].name == "dtype" && args[i].isInt())
      narrow = static_cast<c10::ScalarType>(args[i].toInt());
  if (!c10::isFloatingType(narrow)) narrow = at::kDouble;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool floats = args[i].isTensor() && args[i].toTensor().defined() &&
                        args[i].toTensor().is_floating_point() && !is_wrapped(args[i]);
    if (floats)
      out.push_back(args[i].toTensor().to(narrow).to(at::kDouble));
    else if (overload.rules[i].name == "dtype" && args[i].isInt())
      out.push_back(static_cast<std::int64_t>(at::kDouble));
    else
      out.push_back(args[i]);
  }
  std::string error;
  return run_eager(overload, out, error);
}

/// Whether an inexact result is as near to that in double as eager's.
bool as_near(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& truth,
             std::int64_t index) {
  const auto at_index = [&](const at::Tensor& t) {
    return t.reshape({-1})[index].item().toDouble();
  };
  if (truth.sizes() != actual.sizes()) return false;
  return std::abs(at_index(actual) - at_index(truth)) <=
         std::abs(at_index(expected) - at_index(truth));
}

bool either(const Overload& overload, const Stack& args, std::size_t output,
            const at::Tensor& actual, std::int64_t index, bool exact) {
  for (const c10::IValue& arg : args)
    if (arg.isTensorList() || arg.isOptionalTensorList()) return false;
  for (const c10::IValue& arg : args)
    if (arg.isTensor() && arg.toTensor().defined() &&
        !at::is_expandable_to(arg.toTensor().sizes(), actual.sizes()))
      return false;
  for (std::int64_t count : {1, 67}) {
    std::string error;
    const auto result =
        run_eager(overload, with_element(args, actual.sizes(), index, count), error);
    if (!result) return false;
    const at::Tensor expected = (*result)[output].toTensor();
    const at::Tensor value = actual.reshape({-1})[index].expand({count});
    if (at::any(agreement(value, expected, exact)).item<bool>()) return true;
  }
  return false;
}

std::string check_output(const Overload& overload, const Stack& args, std::size_t output,
                         const at::Tensor& actual, const at::Tensor& expected,
                         const CheckOptions& options) {
  if (actual.scalar_type() != expected.scalar_type() || actual.sizes() != expected.sizes())
    return difference(actual, expected, options.exact);
  const std::string& name = overload.handle.operator_name().name;
  if (expected.is_floating_point() && (name == "aten::fmax" || name == "aten::fmin"))
    // Which of two zeros is the larger one is open, for them and for bfloat16 beside float.
    return difference(actual + 0.0, expected + 0.0, options.exact);
  const at::Tensor bad =
      at::nonzero(at::logical_not(agreement(actual, expected, options.exact)).reshape({-1}))
          .reshape({-1});
  if (bad.numel() == 0) return {};
  std::optional<Stack> truth;
  if (!options.exact && expected.is_floating_point()) truth = exact_call(overload, args);
  for (std::int64_t i = 0; i < bad.numel(); ++i) {
    const auto index = bad[i].item<std::int64_t>();
    if (truth && as_near(actual, expected, (*truth)[output].toTensor(), index)) continue;
    if (!options.elementwise || !either(overload, args, output, actual, index, options.exact))
      return difference(actual, expected, options.exact);
  }
  return {};
}

/// One more of each element of each dimension whose size is not 1 or 0.
at::Tensor resized(at::Tensor tensor) {
  for (std::int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.size(d) > 1) tensor = at::cat({tensor, tensor.narrow(d, 0, 1)}, d);
  return tensor;
}

Check compare(const Overload& overload, const Stack& args, const CheckOptions& options,
              const std::optional<Stack>& expected, const std::string& error,
              const ReferenceResult& actual) {
  if (actual.tripped || !expected) {
    // A number that is zero trips also where there is nothing to divide.
    if (actual.tripped && expected && (*expected)[0].toTensor().numel() == 0)
      return {Verdict::kBothRefuse, {}};
    if (actual.tripped && !expected) return {Verdict::kBothRefuse, error};
    return {Verdict::kWrong, expected ? "the lowering trips" : "eager says: " + error};
  }
  if (actual.outputs.size() != expected->size()) return {Verdict::kWrong, "number of results"};
  for (std::size_t i = 0; i < expected->size(); ++i) {
    const std::string text =
        check_output(overload, args, i, actual.outputs[i], (*expected)[i].toTensor(), options);
    if (!text.empty()) return {Verdict::kWrong, "result " + std::to_string(i) + ": " + text};
  }
  return {Verdict::kEqual, {}};
}

}  // namespace

bool is_exact(std::string_view op) {
  static const std::set<std::string, std::less<>> approximate = {
#include "tests/compile/approximate.inc"
  };
  return !approximate.contains(op);
}

const Overload& overload_of(std::string_view name) {
  const OpInfo& info = OpInfo::of(*Function::get(name));
  for (const Overload& overload : info.overloads) {
    const c10::OperatorName& full = overload.handle.operator_name();
    const std::string text =
        full.overload_name.empty() ? full.name : full.name + "." + full.overload_name;
    if (text == name) return overload;
  }
  throw std::invalid_argument("no operator " + std::string(name));
}

std::string difference(const at::Tensor& actual, const at::Tensor& expected, bool exact) {
  std::ostringstream out;
  out.precision(17);
  if (actual.scalar_type() != expected.scalar_type())
    out << "dtype " << actual.scalar_type() << " instead of " << expected.scalar_type();
  else if (actual.sizes() != expected.sizes())
    out << "sizes " << actual.sizes() << " instead of " << expected.sizes();
  if (out.tellp() > 0) return out.str();
  const at::Tensor bad =
      at::nonzero(at::logical_not(agreement(actual, expected, exact)).reshape({-1})).reshape({-1});
  if (bad.numel() == 0) return {};
  const auto index = bad[0].item<std::int64_t>();
  out << bad.numel() << " of " << actual.numel() << " elements; the " << index
      << "-th: " << actual.reshape({-1})[index].item().toDouble() << " instead of "
      << expected.reshape({-1})[index].item().toDouble();
  return out.str();
}

Check check_call(const Overload& overload, const Stack& args, const CheckOptions& options) {
  std::string error;
  const std::optional<Stack> expected = run_eager(overload, args, error);

  TensorProgram program;
  std::vector<LowerArg> lower_args;
  std::vector<at::Tensor> inputs;
  std::vector<c10::Scalar> scalars;
  std::vector<Tensor> outputs;
  try {
    for (std::size_t i = 0; i < args.size(); ++i) {
      const c10::IValue& arg = args[i];
      const Conversion wanted = overload.rules[i].conversion;
      if (arg.isTensorList() || arg.isOptionalTensorList()) {
        LowerArg& list = lower_args.emplace_back();
        for (const c10::IValue& item : arg.toListRef()) {
          LowerArg& element = list.items.emplace_back();
          if (item.isNone()) continue;
          inputs.push_back(item.toTensor());
          element.tensor = program.input(inputs.back().scalar_type(), inputs.back().sizes());
        }
        continue;
      }
      const bool is_tensor = arg.isTensor() && arg.toTensor().defined();
      const bool is_number = arg.isInt() || arg.isDouble() || arg.isBool() || is_wrapped(arg);
      const bool can_pass = wanted == Conversion::kScalar || wanted == Conversion::kTensor;
      if (is_tensor && !is_wrapped(arg)) {
        inputs.push_back(arg.toTensor());
        lower_args.push_back(
            {.tensor = program.input(inputs.back().scalar_type(), inputs.back().sizes())});
      } else if (is_number && can_pass && options.numbers == Numbers::kPassed) {
        scalars.push_back(is_tensor ? arg.toTensor().item() : arg.toScalar());
        lower_args.push_back({.tensor = program.scalar(scalars.back().type()), .is_number = true});
      } else {
        lower_args.push_back({.constant = arg});
      }
    }
    outputs = lower_operator(program, overload, lower_args);
  } catch (const Unsupported& e) {
    return {expected ? Verdict::kUnsupported : Verdict::kBothRefuse, e.what()};
  }

  const Engine run = options.engine ? options.engine : Engine(evaluate);
  Check check =
      compare(overload, args, options, expected, error, run(program, outputs, inputs, scalars));
  if (check.verdict != Verdict::kEqual || !options.resize) return check;

  // The same program with other sizes.
  Stack larger;
  inputs.clear();
  for (const c10::IValue& arg : args) {
    larger.push_back(map_tensors(arg, [&](const at::Tensor& tensor) {
      inputs.push_back(resized(tensor));
      return inputs.back();
    }));
  }
  if (!fits(program, inputs)) return check;
  const std::optional<Stack> again = run_eager(overload, larger, error);
  if (!again) return check;
  check = compare(overload, larger, options, again, error, run(program, outputs, inputs, scalars));
  if (check.verdict == Verdict::kWrong) check.text += " (with larger sizes)";
  return check;
}

Stack with_defaults(const Overload& overload, Stack args) {
  for (std::size_t i = args.size(); i < overload.rules.size(); ++i)
    args.push_back(overload.rules[i].default_value);
  return args;
}

std::string base_name(std::string_view name) {
  const std::string text(name.substr(name.find("::") + 2));
  return text.substr(0, text.find('.'));
}

std::string inequality(const std::string& name, const Stack& first_args) {
  const Overload& overload = overload_of(name);
  const Stack args = with_defaults(overload, first_args);
  CheckOptions options;
  options.exact = is_exact(base_name(name));
  options.elementwise = true;
  options.resize = false;
  const Check check = check_call(overload, args, options);
  if (check.verdict == Verdict::kEqual) return {};
  return call_text(overload, args) + ": " + check.text;
}

std::string call_text(const Overload& overload, const Stack& args) {
  std::ostringstream out;
  out.precision(9);
  out << overload.handle.operator_name() << "(";
  for (std::size_t i = 0; i < args.size(); ++i) {
    out << (i ? ", " : "") << overload.rules[i].name << "=";
    const c10::IValue& arg = args[i];
    if (arg.isTensorList() || arg.isOptionalTensorList()) {
      for (const c10::IValue& item : arg.toListRef())
        if (item.isNone())
          out << "None ";
        else
          out << item.toTensor().scalar_type() << item.toTensor().sizes() << " ";
      continue;
    }
    if (!arg.isTensor()) {
      out << arg;
      continue;
    }
    const at::Tensor& t = arg.toTensor();
    out << t.scalar_type() << t.sizes() << "{";
    const at::Tensor flat = t.reshape({-1});
    for (std::int64_t e = 0; e < std::min<std::int64_t>(flat.numel(), 12); ++e)
      out << (e ? " " : "") << flat[e].item().toDouble();
    out << (flat.numel() > 12 ? " ...}" : "}");
  }
  out << ")";
  return out.str();
}

}  // namespace fx::loops
