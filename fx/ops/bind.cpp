#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/ops/call.h"

namespace fx {
namespace {

bool is_number(const Value& value) {
  return value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble();
}

// A tensor of one element without gradient may stand for a number, as in Python.
bool is_scalar_tensor(const Value& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().dim() == 0 &&
         !value.toTensor().requires_grad() && value.toTensor().device().is_cpu() &&
         !value.toTensor().unsafeGetTensorImpl()->is_python_dispatch();
}

// 0-dim CPU tensor with the "wrapped number" promotion rules, what Python's argument parser makes.
at::Tensor wrapped_number(const Value& value) {
  return at::native::wrapped_scalar_tensor(value.toScalar());
}

template <typename T, typename Test, typename Get>
bool convert_list(const Value& value, Value& out, Test&& fits, Get&& get) {
  c10::List<T> list;
  const Values items = elements(value);
  list.reserve(items.size());
  for (const Value& item : items) {
    if (!fits(item)) return false;
    list.push_back(get(item));
  }
  out = std::move(list);
  return true;
}

bool fits_int(const Value& v) { return v.isInt() || v.isBool() || v.isSymInt(); }
std::int64_t get_int(const Value& v) {
  return v.isBool()     ? v.toBool()
         : v.isSymInt() ? v.toSymInt().guard_int(__FILE__, __LINE__)
                        : v.toInt();
}
bool fits_float(const Value& v) { return v.isDouble() || fits_int(v); }
double get_float(const Value& v) {
  return v.isDouble() ? v.toDouble() : static_cast<double>(get_int(v));
}

std::string misfit(const ArgRule& rule, std::size_t index, const Value& value) {
  return "argument '" + rule.name + "' (position " + std::to_string(index + 1) +
         ") does not take a " + describe(value);
}

}  // namespace

bool convert_argument(const ArgRule& rule, const Value& value, Value& out,
                      bool numbers_as_tensors) {
  if (value.isNone()) {
    // An undefined tensor is how LibTorch passes no tensor.
    if (!rule.optional) return false;
    out = Value();
    return true;
  }
  switch (rule.conversion) {
    case Conversion::kTensor:
    case Conversion::kOptionalTensor:
      if (value.isTensor()) {
        out = value;
        return true;
      }
      if (!numbers_as_tensors || !is_number(value)) return false;
      out = wrapped_number(value);
      return true;
    case Conversion::kInt:
      if (fits_int(value)) {
        out = value.isInt() ? value : Value(get_int(value));
        return true;
      }
      if (!numbers_as_tensors || !is_scalar_tensor(value) ||
          !c10::isIntegralType(value.toTensor().scalar_type(), false))
        return false;
      out = value.toTensor().item<std::int64_t>();
      return true;
    case Conversion::kFloat:
      if (!fits_float(value)) return false;
      out = get_float(value);
      return true;
    case Conversion::kBool:
      if (!value.isBool()) return false;
      out = value;
      return true;
    case Conversion::kScalar:
      if (is_number(value)) {
        out = value;
        return true;
      }
      if (!numbers_as_tensors || !is_scalar_tensor(value)) return false;
      out = value.toTensor().item();
      return true;
    case Conversion::kString:
      if (!value.isString()) return false;
      out = value;
      return true;
    case Conversion::kDevice:
      if (value.isDevice()) {
        out = value;
        return true;
      }
      if (!value.isString()) return false;
      out = c10::Device(value.toStringRef());
      return true;
    case Conversion::kIntList:
      if (value.isIntList()) {
        out = value;
        return true;
      }
      if (rule.broadcasts && fits_int(value)) {
        out = c10::List<std::int64_t>({get_int(value)});
        return true;
      }
      return is_sequence(value) && convert_list<std::int64_t>(value, out, fits_int, get_int);
    case Conversion::kFloatList:
      if (rule.broadcasts && fits_float(value)) {
        out = c10::List<double>({get_float(value)});
        return true;
      }
      return is_sequence(value) && convert_list<double>(value, out, fits_float, get_float);
    case Conversion::kBoolList:
      if (rule.broadcasts && value.isBool()) {
        out = c10::List<bool>({value.toBool()});
        return true;
      }
      return is_sequence(value) && convert_list<bool>(
                                       value, out, [](const Value& v) { return v.isBool(); },
                                       [](const Value& v) { return v.toBool(); });
    case Conversion::kTensorList:
      if (value.isTensorList()) {
        out = value;
        return true;
      }
      return is_sequence(value) && convert_list<at::Tensor>(
                                       value, out, [](const Value& v) { return v.isTensor(); },
                                       [](const Value& v) { return v.toTensor(); });
    case Conversion::kOptionalTensorList:
      return is_sequence(value) &&
             convert_list<std::optional<at::Tensor>>(
                 value, out, [](const Value& v) { return v.isTensor() || v.isNone(); },
                 [](const Value& v) {
                   return v.isNone() || !v.toTensor().defined() ? std::optional<at::Tensor>()
                                                                : v.toTensor();
                 });
    case Conversion::kScalarList: {
      if (!is_sequence(value)) return false;
      c10::List<at::Scalar> list;
      for (const Value& item : elements(value)) {
        if (!is_number(item)) return false;
        list.push_back(item.toScalar());
      }
      out = std::move(list);
      return true;
    }
    case Conversion::kStringList:
      return is_sequence(value) && convert_list<std::string>(
                                       value, out, [](const Value& v) { return v.isString(); },
                                       [](const Value& v) { return v.toStringRef(); });
    case Conversion::kAny:
      out = value;
      return true;
  }
  return false;
}

bool is_keyword_of(const ArgRule& rule, std::string_view key) {
  // Python calls the first argument of torch functions "input", the schemas "self".
  return key == rule.name || (rule.name == "self" && key == "input");
}

namespace {

// bind() and try_bind() in one: `fail` is given a function that says why, and gives the result.
template <typename Result, typename Fail>
Result bind_or(const Overload& overload, Values& args, KwValues& kwargs, torch::jit::Stack& stack,
               bool numbers_as_tensors, Result success, Fail&& fail) {
  if (args.size() > overload.num_positional)
    return fail([&] {
      return "takes " + std::to_string(overload.num_positional) + " positional arguments, found " +
             std::to_string(args.size());
    });
  stack.resize(overload.rules.size());
  std::size_t used_kwargs = 0;
  for (std::size_t i = 0; i < overload.rules.size(); ++i) {
    const ArgRule& rule = overload.rules[i];
    const Value* value = nullptr;
    if (i < args.size()) value = &args[i];
    for (const KwValue& kwarg : kwargs) {
      if (!is_keyword_of(rule, kwarg.key.str())) continue;
      if (value)
        return fail([&] { return "got multiple values for argument '" + rule.name + "'"; });
      value = &kwarg.value;
      ++used_kwargs;
    }
    if (!value) {
      if (!rule.has_default) return fail([&] { return "misses argument '" + rule.name + "'"; });
      stack[i] = rule.default_value;
    } else if (!convert_argument(rule, *value, stack[i], numbers_as_tensors)) {
      return fail([&] { return misfit(rule, i, *value); });
    }
  }
  if (used_kwargs == kwargs.size()) return success;
  return fail([&]() -> std::string {
    for (const KwValue& kwarg : kwargs) {
      bool known = false;
      for (const ArgRule& rule : overload.rules) known |= is_keyword_of(rule, kwarg.key.str());
      if (!known) return "has no argument '" + kwarg.key.str() + "'";
    }
    return "got a keyword twice";
  });
}

}  // namespace

std::string bind(const Overload& overload, Values& args, KwValues& kwargs, torch::jit::Stack& stack,
                 bool numbers_as_tensors) {
  return bind_or(overload, args, kwargs, stack, numbers_as_tensors, std::string(),
                 [](auto&& reason) -> std::string { return reason(); });
}

bool try_bind(const Overload& overload, Values& args, KwValues& kwargs, torch::jit::Stack& stack,
              bool numbers_as_tensors) {
  return bind_or(overload, args, kwargs, stack, numbers_as_tensors, true,
                 [](auto&&) { return false; });
}

const Overload& select_and_bind(const OpInfo& info, std::string_view name, Values& args,
                                KwValues& kwargs, torch::jit::Stack& stack) {
  // Exact types first, with few exceptions; only then numbers for tensors and tensors for numbers.
  for (bool lenient : {info.numbers_as_tensors, true})
    for (const Overload& overload : info.overloads)
      if (try_bind(overload, args, kwargs, stack, lenient)) return overload;
  std::string text = "no overload of " + std::string(name) + " takes (";
  for (std::size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + describe(args[i]);
  for (const KwValue& kwarg : kwargs)
    text += (text.ends_with('(') ? "" : ", ") + kwarg.key.str() + "=" + describe(kwarg.value);
  text += ").";
  for (const Overload& overload : info.overloads)
    text += " " + toString(overload.handle.schema()) + ": " +
            bind(overload, args, kwargs, stack, true) + ";";
  if (text.ends_with(';')) text.back() = '.';
  throw RunError(ErrorCode::kNoMatchingOverload, text);
}

}  // namespace fx
