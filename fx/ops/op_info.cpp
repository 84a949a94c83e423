#include "fx/ops/op_info.h"

#include <ATen/core/enum_tag.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <unordered_map>

#include "fx/base/error.h"
#include "fx/ops/quantized_decomposed.h"

namespace fx {
namespace {

Conversion conversion_of(const c10::Type& type);

Conversion list_conversion_of(const c10::Type& element) {
  if (element.kind() == c10::TypeKind::OptionalType) return Conversion::kOptionalTensorList;
  switch (conversion_of(element)) {
    case Conversion::kTensor:
      return Conversion::kTensorList;
    case Conversion::kInt:
      return Conversion::kIntList;
    case Conversion::kFloat:
      return Conversion::kFloatList;
    case Conversion::kBool:
      return Conversion::kBoolList;
    case Conversion::kScalar:
      return Conversion::kScalarList;
    case Conversion::kString:
      return Conversion::kStringList;
    default:
      return Conversion::kAny;
  }
}

Conversion conversion_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return Conversion::kTensor;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
      return Conversion::kInt;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return Conversion::kFloat;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return Conversion::kBool;
    case c10::TypeKind::NumberType:
      return Conversion::kScalar;
    case c10::TypeKind::StringType:
      return Conversion::kString;
    case c10::TypeKind::DeviceObjType:
      return Conversion::kDevice;
    case c10::TypeKind::ListType:
      return list_conversion_of(*type.expectRef<c10::ListType>().getElementType());
    default:
      return Conversion::kAny;
  }
}

ArgRule rule_of(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  const bool optional = type->kind() == c10::TypeKind::OptionalType;
  if (optional) type = type->expectRef<c10::OptionalType>().getElementType();
  ArgRule rule;
  rule.name = argument.name();
  rule.conversion = conversion_of(*type);
  if (optional && rule.conversion == Conversion::kTensor)
    rule.conversion = Conversion::kOptionalTensor;
  rule.optional = optional;
  rule.broadcasts = argument.N().has_value();
  rule.keyword_only = argument.kwarg_only();
  rule.has_default = argument.default_value().has_value();
  rule.written = argument.alias_info() && argument.alias_info()->isWrite();
  if (rule.has_default) rule.default_value = *argument.default_value();
  return rule;
}

Overload overload_of(c10::OperatorHandle handle) {
  Overload made{handle, {}, 0, false, false, handle.hasTag(at::Tag::nondeterministic_seeded),
                nullptr};
  for (const c10::Argument& argument : handle.schema().arguments()) {
    made.rules.push_back(rule_of(argument));
    if (!argument.kwarg_only()) ++made.num_positional;
    made.mutates |= made.rules.back().written;
    made.writes_out |= argument.is_out();
  }
  made.check = find_kernel_check(made);
  return made;
}

void add_all_overloads(std::vector<Overload>& out, const std::string& qualified) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(qualified)))
    if (auto handle = dispatcher.findSchema(op->schema().operator_name()))
      out.push_back(overload_of(*handle));
}

// Python's list (should_allow_numbers_as_tensors) without the copies.
constexpr std::string_view kNumbersAsTensors[] = {
    "add",          "add_",          "div",      "div_",      "divide",      "divide_",
    "floor_divide", "floor_divide_", "mul",      "mul_",      "multiply",    "multiply_",
    "sub",          "sub_",          "subtract", "subtract_", "true_divide", "true_divide_"};

OpInfo resolve(const Function& function) {
  OpInfo info;
  if (function.kind() == FunctionKind::kOperator) {
    if (function.name().starts_with("quantized_decomposed::")) register_quantized_decomposed();
    std::string qualified(function.name(), 0, function.name().find("::") + 2);
    qualified += function.base_name();
    auto handle =
        c10::Dispatcher::singleton().findSchema({qualified, std::string(function.overload_name())});
    if (handle)
      info.overloads.push_back(overload_of(*handle));
    else if (function.overload_name().empty())
      add_all_overloads(info.overloads, qualified);
  } else if (function.kind() == FunctionKind::kTorch) {
    add_all_overloads(info.overloads, operator_name_of_torch_function(function));
  }
  info.numbers_as_tensors = std::find(std::begin(kNumbersAsTensors), std::end(kNumbersAsTensors),
                                      function.base_name()) != std::end(kNumbersAsTensors);
  return info;
}

std::mutex& resolve_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

std::string operator_name_of_torch_function(const Function& function) {
  if (function.kind() != FunctionKind::kTorch) return {};
  std::string_view path = function.name();
  path.remove_prefix(std::string_view("torch.").size());
  // The few that Python calls otherwise than LibTorch does.
  if (path == "nn.functional.logsigmoid") return "aten::log_sigmoid";
  if (path == "_segment_reduce") return "aten::segment_reduce";
  // torch.linalg.norm is aten::linalg_norm; torch.nn.functional.relu is aten::relu.
  std::string prefix;
  for (std::string_view family : {"linalg", "special", "fft"})
    if (path.starts_with(family) && path.size() > family.size() && path[family.size()] == '.')
      prefix = std::string(family) + "_";
  return "aten::" + prefix + std::string(function.base_name());
}

const OpInfo& OpInfo::of(const Function& function) {
  if (const OpInfo* known = function.info_.load(std::memory_order_acquire)) return *known;
  static const OpInfo nothing;
  if (function.kind() == FunctionKind::kBuiltin || function.kind() == FunctionKind::kWrapped) {
    function.info_.store(&nothing, std::memory_order_release);
    return nothing;
  }
  std::lock_guard lock(resolve_mutex());
  if (const OpInfo* known = function.info_.load(std::memory_order_acquire)) return *known;
  OpInfo resolved = resolve(function);
  if (resolved.overloads.empty()) return nothing;  // may be registered later
  const OpInfo* stored = new OpInfo(std::move(resolved));
  function.info_.store(stored, std::memory_order_release);
  return *stored;
}

const OpInfo& OpInfo::of_method(std::string_view name) {
  // Keys are parts of function names, which live for ever.
  thread_local std::unordered_map<std::string_view, const OpInfo*> known;
  if (auto found = known.find(name); found != known.end()) return *found->second;
  const Function* function = Function::get("torch." + std::string(name));
  const OpInfo& info = of(*function);
  if (!info.overloads.empty()) known.emplace(function->base_name(), &info);
  return info;
}

}  // namespace fx
