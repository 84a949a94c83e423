#include "fx/ops/call.h"

#include <ATen/ATen.h>
#include <ATen/core/function.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/ops/builtins.h"

namespace fx {
namespace {

// Implementations live for ever, so that a call that runs one while it is replaced stays valid.
std::vector<std::unique_ptr<const WrappedFunction>>& implementations() {
  static auto* instance = new std::vector<std::unique_ptr<const WrappedFunction>>;
  return *instance;
}
std::mutex implementations_mutex;

// Python's functions that make tensors: what LibTorch lets choose where the memory is.
bool makes_tensor(const OpInfo& info) {
  const auto chooses_memory = [](const Overload& overload) {
    return std::any_of(overload.rules.begin(), overload.rules.end(),
                       [](const ArgRule& rule) { return rule.name == "pin_memory"; });
  };
  return std::any_of(info.overloads.begin(), info.overloads.end(), chooses_memory);
}

// Takes the keyword out and returns its value, or nothing when it is not there or no bool.
std::optional<bool> take_bool(KwValues& kwargs, std::string_view key) {
  const auto found = std::find_if(kwargs.begin(), kwargs.end(), [&](const KwValue& kwarg) {
    return kwarg.key.str() == key && kwarg.value.isBool();
  });
  if (found == kwargs.end()) return std::nullopt;
  const bool value = found->value.toBool();
  kwargs.erase(found);
  return value;
}

Value call_overloads(const OpInfo& info, std::string_view name, Values& args, KwValues& kwargs) {
  torch::jit::Stack stack;
  const Overload* overload = &info.overloads.front();
  if (info.overloads.size() > 1 || !try_bind(*overload, args, kwargs, stack))
    overload = &select_and_bind(info, name, args, kwargs, stack);
  call_boxed(*overload, stack);
  return pack_results(stack, overload->handle.schema().returns().size());
}

// A torch function or a method, with the keywords that only Python's signatures have.
Value call_python_signature(const OpInfo& info, std::string_view base_name, std::string_view name,
                            Values& args, KwValues& kwargs) {
  if (!kwargs.empty() && base_name == "nonzero") {
    if (take_bool(kwargs, "as_tuple").value_or(false)) {
      static const OpInfo& by_dimension = OpInfo::of(*Function::get("aten::nonzero_numpy"));
      return c10::ivalue::Tuple::create(elements(call_overloads(by_dimension, name, args, kwargs)));
    }
  }
  if (kwargs.empty() || !makes_tensor(info)) return call_overloads(info, name, args, kwargs);
  const bool requires_grad = take_bool(kwargs, "requires_grad").value_or(false);
  Value made = call_overloads(info, name, args, kwargs);
  if (requires_grad) made.toTensor().set_requires_grad(true);
  return made;
}

// Tensor methods that are conversions, not operators.
std::optional<at::ScalarType> dtype_of_conversion(std::string_view method) {
  static const std::unordered_map<std::string_view, at::ScalarType> kConversions = {
      {"float", at::kFloat},
      {"double", at::kDouble},
      {"half", at::kHalf},
      {"bfloat16", at::kBFloat16},
      {"long", at::kLong},
      {"int", at::kInt},
      {"short", at::kShort},
      {"char", at::kChar},
      {"byte", at::kByte},
      {"bool", at::kBool},
      {"cfloat", at::kComplexFloat},
      {"chalf", at::kComplexHalf},
      {"cdouble", at::kComplexDouble}};
  auto found = kConversions.find(method);
  if (found == kConversions.end()) return std::nullopt;
  return found->second;
}

// Where methods take their tensor: behind another argument in polygamma(n, self) and
// where(condition, self, other).
std::size_t position_of_self(const OpInfo& info) {
  const std::vector<ArgRule>& rules = info.overloads.front().rules;
  const auto self = std::find_if(rules.begin(), rules.end(),
                                 [](const ArgRule& rule) { return rule.name == "self"; });
  return self == rules.end() ? 0 : static_cast<std::size_t>(self - rules.begin());
}

// The methods behind Python's operators, x.__rsub__(y): the built-in "operator.sub". Null for
// other names.
Builtin find_operator_method(std::string_view name, bool& reversed) {
  if (name.size() < 5 || !name.starts_with("__") || !name.ends_with("__")) return nullptr;
  const std::string_view base = name.substr(2, name.size() - 4);
  const auto find = [](std::string_view op) {
    const bool is_keyword = op == "and" || op == "or";
    return find_builtin("operator." + std::string(op) + (is_keyword ? "_" : ""));
  };
  reversed = false;
  if (Builtin builtin = find(base)) return builtin;
  reversed = base.starts_with('r');
  return reversed ? find(base.substr(1)) : nullptr;
}

}  // namespace

Value pack_results(torch::jit::Stack& stack, std::size_t count) {
  if (count == 0) return {};
  if (count == 1) return std::move(stack.back());
  return c10::ivalue::Tuple::create(
      Values(std::make_move_iterator(stack.end() - static_cast<std::ptrdiff_t>(count)),
             std::make_move_iterator(stack.end())));
}

Value call(const Function& function, Values args, KwValues kwargs) {
  switch (function.kind()) {
    case FunctionKind::kTorch:
      if (Builtin builtin = find_builtin(function.name())) return builtin(args, kwargs);
      [[fallthrough]];
    case FunctionKind::kOperator: {
      const OpInfo& info = OpInfo::of(function);
      if (info.overloads.empty())
        throw RunError(ErrorCode::kUnknownOperator,
                       "this process has no operator " + str_repr(function.name()));
      if (function.kind() == FunctionKind::kTorch)
        return call_python_signature(info, function.base_name(), function.name(), args, kwargs);
      return call_overloads(info, function.name(), args, kwargs);
    }
    case FunctionKind::kBuiltin:
      if (Builtin builtin = find_builtin(function.name())) return builtin(args, kwargs);
      throw RunError(ErrorCode::kNotRunnable, "there is no built-in " + str_repr(function.name()));
    case FunctionKind::kWrapped:
      if (const WrappedFunction* implementation = function.implementation())
        return (*implementation)(std::move(args), std::move(kwargs));
      throw RunError(ErrorCode::kNotRunnable, "no implementation of the wrapped function " +
                                                  str_repr(function.name()) +
                                                  " is registered in this process");
  }
  FX_ASSERT(false, "unknown function kind");
}

namespace {

// A method of an object of a class that was registered with torch::class_.
Value call_object_method(std::string_view name, Values args, const KwValues& kwargs) {
  const c10::ClassTypePtr type = args[0].toObjectRef().type();
  torch::jit::Function* method = type->findMethod(std::string(name));
  if (!method)
    throw RunError(ErrorCode::kUnknownOperator,
                   "an object of class " + type->str() + " has no method " + str_repr(name));
  std::unordered_map<std::string, Value> named;
  for (const KwValue& kwarg : kwargs) named.emplace(kwarg.key.str(), kwarg.value);
  torch::jit::Stack stack(std::make_move_iterator(args.begin()),
                          std::make_move_iterator(args.end()));
  method->getSchema().checkAndNormalizeInputs(stack, named);
  method->run(stack);
  return pack_results(stack, 1);
}

}  // namespace

Value call_method(std::string_view name, Values args, KwValues kwargs) {
  if (args.empty())
    throw RunError(ErrorCode::kWrongType,
                   "method " + str_repr(name) + " was called without an object");
  if (args[0].isObject()) return call_object_method(name, std::move(args), kwargs);
  if (!args[0].isTensor()) {
    // Methods of Python's own containers are not part of the vocabulary.
    throw RunError(ErrorCode::kWrongType, "method " + str_repr(name) + " was called on a " +
                                              describe(args[0]) + ", wanted a Tensor");
  }
  const at::Tensor& self = args[0].toTensor();
  if (args.size() == 1 && kwargs.empty()) {
    if (auto dtype = dtype_of_conversion(name)) return self.to(*dtype);
    if (name == "cpu") return self.to(at::kCPU);
    if (name == "cuda") return self.to(at::kCUDA);
    if (name == "size") return Value(self.sizes().vec());
    if (name == "stride") return Value(self.strides().vec());
    if (name == "dim" || name == "ndimension") return self.dim();
    if (name == "numel" || name == "nelement") return self.numel();
    if (name == "item") return Value(self.item());
    if (name == "tolist" && self.dim() == 0) return Value(self.item());
    if (name == "requires_grad_") return Value(self.set_requires_grad(true));
  }
  if (args.size() == 1 && kwargs.size() == 1 && kwargs[0].key.str() == "memory_format" &&
      kwargs[0].value.isInt()) {
    if (auto dtype = dtype_of_conversion(name))
      return self.to(*dtype, /*non_blocking=*/false, /*copy=*/false,
                     static_cast<at::MemoryFormat>(kwargs[0].value.toInt()));
  }
  if (name == "__getitem__" && args.size() == 2) return get_item(args[0], args[1]);
  if (name == "to" && args.size() > 1 && args.size() <= 5 &&
      (args[1].isDevice() || args[1].isString())) {
    // to(device, dtype, non_blocking, copy), of which only the device must be there.
    static const Symbol kNames[] = {Symbol("device"), Symbol("dtype"), Symbol("non_blocking"),
                                    Symbol("copy")};
    for (std::size_t i = 1; i < args.size(); ++i)
      if (!args[i].isNone()) kwargs.push_back({kNames[i - 1], std::move(args[i])});
    args.resize(1);
  }
  const OpInfo& info = OpInfo::of_method(name);
  if (info.overloads.empty()) {
    bool reversed = false;
    const Builtin builtin = find_operator_method(name, reversed);
    if (!builtin)
      throw RunError(ErrorCode::kUnknownOperator, "a Tensor has no method " + str_repr(name));
    if (reversed && args.size() == 2) std::swap(args[0], args[1]);
    return builtin(args, kwargs);
  }
  if (const std::size_t position = position_of_self(info); position > 0) {
    Value object = std::move(args[0]);
    args.erase(args.begin());
    if (position <= args.size())
      args.insert(args.begin() + static_cast<std::ptrdiff_t>(position), std::move(object));
    else
      kwargs.push_back({Symbol("self"), std::move(object)});
    return call_overloads(info, name, args, kwargs);
  }
  if (gathers_ints(info.overloads[0]) && args.size() > 1) {
    if (std::all_of(args.begin() + 1, args.end(), [](const Value& v) { return v.isInt(); })) {
      c10::List<std::int64_t> list;
      for (std::size_t i = 1; i < args.size(); ++i) list.push_back(args[i].toInt());
      args.resize(1);
      args.emplace_back(std::move(list));
    }
  }
  return call_python_signature(info, name, name, args, kwargs);
}

bool gathers_ints(const Overload& overload) {
  return overload.num_positional == 2 && overload.rules[1].conversion == Conversion::kIntList;
}

bool is_operator_method(std::string_view name) {
  constexpr std::string_view kOthers[] = {"__getitem__",    "cpu",        "cuda",     "dim",
                                          "item",           "ndimension", "nelement", "numel",
                                          "requires_grad_", "size",       "stride",   "tolist"};
  if (std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers) ||
      dtype_of_conversion(name))
    return false;
  const OpInfo& info = OpInfo::of_method(name);
  return info.overloads.empty() || position_of_self(info) == 0;
}

void register_wrapped_function(std::string_view name, WrappedFunction implementation) {
  const Function* function = Function::get(name);
  if (function->kind() != FunctionKind::kWrapped)
    throw TraceError(ErrorCode::kWrap, "cannot wrap " + str_repr(name) +
                                           ": the name belongs to an operator or a built-in");
  std::lock_guard lock(implementations_mutex);
  implementations().push_back(std::make_unique<const WrappedFunction>(std::move(implementation)));
  function->set_implementation(implementations().back().get());
}

bool is_runnable(const Function& function) {
  switch (function.kind()) {
    case FunctionKind::kTorch:
      return find_builtin(function.name()) || !OpInfo::of(function).overloads.empty();
    case FunctionKind::kOperator:
      return !OpInfo::of(function).overloads.empty();
    case FunctionKind::kBuiltin:
      return find_builtin(function.name()) != nullptr;
    case FunctionKind::kWrapped:
      return function.implementation() != nullptr;
  }
  return false;
}

}  // namespace fx
