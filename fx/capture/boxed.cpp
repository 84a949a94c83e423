#include "fx/capture/boxed.h"

#include "fx/base/error.h"
#include "fx/ops/value.h"

namespace fx {
namespace {

Argument complex_argument(const c10::IValue& value) {
  const auto number = value.toComplexDouble();
  return std::complex<double>(number.real(), number.imag());
}

TraceArg to_trace_arg(const c10::IValue& value, const c10::Type& type) {
  if (value.isNone()) return {};
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return to_trace_arg(value, *type.expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ScalarTypeType:
      return Argument(static_cast<at::ScalarType>(value.toInt()));
    case c10::TypeKind::LayoutType:
      return Argument(static_cast<at::Layout>(value.toInt()));
    case c10::TypeKind::MemoryFormatType:
      return Argument(static_cast<at::MemoryFormat>(value.toInt()));
    default:
      break;
  }
  if (value.isTensor()) return value.toTensor();
  if (value.isBool()) return Argument(value.toBool());
  if (value.isInt()) return Argument(value.toInt());
  if (value.isDouble()) return Argument(value.toDouble());
  if (value.isComplexDouble()) return complex_argument(value);
  if (value.isString()) return Argument(value.toStringRef());
  if (value.isDevice()) return Argument(value.toDevice());
  if (value.isSymInt()) return Argument(value.toSymInt().guard_int(__FILE__, __LINE__));
  if (value.isList()) {
    const c10::Type& element = type.kind() == c10::TypeKind::ListType
                                   ? *type.expectRef<c10::ListType>().getElementType()
                                   : *c10::AnyType::get();
    std::vector<TraceArg> items;
    for (const c10::IValue& item : value.toListRef()) items.push_back(to_trace_arg(item, element));
    return TraceArg::list(std::move(items));
  }
  throw TraceError(ErrorCode::kBadArgument,
                   "a graph cannot hold an argument of kind " + value.tagKind());
}

bool is_default(const c10::Argument& argument, const c10::IValue& value) {
  if (!argument.default_value()) return false;
  const c10::IValue& usual = *argument.default_value();
  if (usual.isNone() || value.isNone()) return usual.isNone() && value.isNone();
  if (value.isTensor() || usual.isTensor()) return false;
  if (usual.isIntList() && value.isIntList()) return usual.toIntVector() == value.toIntVector();
  return usual.tagKind() == value.tagKind() && usual == value;
}

}  // namespace

TraceArg to_trace_arg(const Value& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isNone()) return Argument();
  if (value.isTuple() || value.isList()) {
    std::vector<TraceArg> items;
    for (const Value& item : elements(value)) items.push_back(to_trace_arg(item));
    return value.isTuple() ? TraceArg::tuple(std::move(items)) : TraceArg(items);
  }
  if (value.isGenericDict()) {
    std::vector<std::pair<Argument, TraceArg>> items;
    for (const auto& item : value.toGenericDict())
      items.emplace_back(to_trace_arg(item.key()).argument(), to_trace_arg(item.value()));
    return TraceArg::dict(std::move(items));
  }
  if (value.isBool()) return Argument(value.toBool());
  if (value.isInt()) return Argument(value.toInt());
  if (value.isDouble()) return Argument(value.toDouble());
  if (value.isComplexDouble()) return complex_argument(value);
  if (value.isString()) return Argument(value.toStringRef());
  if (value.isDevice()) return Argument(value.toDevice());
  throw TraceError(ErrorCode::kBadArgument,
                   "the result holds " + describe(value) +
                       ", wanted tensors, numbers, strings, and tuples, lists and dicts of them");
}

BoxedCall boxed_call(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args) {
  const c10::FunctionSchema& schema = op.schema();
  BoxedCall call;
  const c10::OperatorName& name = op.operator_name();
  call.function =
      Function::get(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  auto convert = [&](std::size_t i) {
    const c10::Argument& argument = schema.arguments()[i];
    try {
      return to_trace_arg(args[i], *argument.real_type());
    } catch (const TraceError& error) {
      throw TraceError(error.code(), "argument '" + argument.name() + "' of " +
                                         toString(op.operator_name()) + ": " + error.text());
    }
  };
  std::size_t positional = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.kwarg_only()) break;
    if (!is_default(argument, args[i])) positional = i + 1;
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (!argument.kwarg_only()) {
      if (i < positional) call.args.push_back(convert(i));
    } else if (!is_default(argument, args[i])) {
      call.kwargs.push_back({argument.name(), convert(i)});
    }
  }
  return call;
}

std::optional<std::size_t> written_argument(const c10::FunctionSchema& schema, std::size_t index) {
  const c10::AliasInfo* result = schema.returns()[index].alias_info();
  if (!result || !result->isWrite()) return std::nullopt;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* argument = schema.arguments()[i].alias_info();
    if (argument && argument->isWrite() && argument->beforeSets() == result->beforeSets()) return i;
  }
  return std::nullopt;
}

}  // namespace fx
