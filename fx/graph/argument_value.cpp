#include "fx/graph/argument_value.h"

#include <algorithm>

#include "fx/base/error.h"

namespace fx {
namespace {

template <typename T>
c10::List<T> typed_list(const Values& items) {
  c10::List<T> list;
  list.reserve(items.size());
  for (const Value& item : items) list.push_back(item.to<T>());
  return list;
}

Values values_of(std::span<const Argument> items, NodeReader read, EnumReader enumerated) {
  Values values;
  values.reserve(items.size());
  for (const Argument& item : items) values.push_back(value_of(item, read, enumerated));
  return values;
}

Value dict_value(std::span<const DictItem> items, NodeReader read, EnumReader enumerated) {
  const bool string_keys = std::all_of(items.begin(), items.end(), [](const DictItem& item) {
    return item.first.kind() == Argument::Kind::kString;
  });
  c10::impl::GenericDict dict(
      string_keys ? c10::TypePtr(c10::StringType::get()) : c10::TypePtr(c10::AnyType::get()),
      c10::AnyType::get());
  for (const DictItem& item : items)
    dict.insert_or_assign(value_of(item.first, read, enumerated),
                          value_of(item.second, read, enumerated));
  return dict;
}

// Enumerations are ints, as everywhere in LibTorch.
Value enum_as_int(const Argument& argument) {
  switch (argument.kind()) {
    case Argument::Kind::kDtype:
      return static_cast<std::int64_t>(argument.to_dtype());
    case Argument::Kind::kLayout:
      return static_cast<std::int64_t>(argument.to_layout());
    default:
      return static_cast<std::int64_t>(argument.to_memory_format());
  }
}

Args arguments_of(const Values& values, ValueConverter convert) {
  Args args;
  args.reserve(values.size());
  for (const Value& value : values) args.push_back(argument_of(value, convert));
  return args;
}

}  // namespace

Value make_list(Values items) {
  auto all = [&](bool (Value::*is)() const) {
    return !items.empty() &&
           std::all_of(items.begin(), items.end(), [&](const Value& item) { return (item.*is)(); });
  };
  if (all(&Value::isInt)) return typed_list<std::int64_t>(items);
  if (all(&Value::isTensor)) return typed_list<at::Tensor>(items);
  if (all(&Value::isDouble)) return typed_list<double>(items);
  if (all(&Value::isBool)) return typed_list<bool>(items);
  c10::impl::GenericList list(c10::AnyType::get());
  list.reserve(items.size());
  for (Value& item : items) list.push_back(std::move(item));
  return list;
}

Value value_of(const Argument& argument, NodeReader read) {
  return value_of(argument, read, enum_as_int);
}

Value value_of(const Argument& argument, NodeReader read, EnumReader enumerated) {
  switch (argument.kind()) {
    case Argument::Kind::kNone:
      return {};
    case Argument::Kind::kBool:
      return argument.to_bool();
    case Argument::Kind::kInt:
      return argument.to_int();
    case Argument::Kind::kFloat:
      return argument.to_double();
    case Argument::Kind::kDevice:
      return argument.to_device();
    case Argument::Kind::kDtype:
    case Argument::Kind::kLayout:
    case Argument::Kind::kMemoryFormat:
      return enumerated(argument);
    case Argument::Kind::kEllipsis:
      return make_ellipsis();
    case Argument::Kind::kNode:
      return read(argument.node());
    case Argument::Kind::kString:
      return argument.to_string();
    case Argument::Kind::kComplex:
      return c10::complex<double>(argument.to_complex());
    case Argument::Kind::kList:
      return make_list(values_of(argument.items(), read, enumerated));
    case Argument::Kind::kTuple:
      return c10::ivalue::Tuple::create(values_of(argument.items(), read, enumerated));
    case Argument::Kind::kDict:
      return dict_value(argument.dict_items(), read, enumerated);
    case Argument::Kind::kSlice: {
      Values parts = values_of(argument.items(), read, enumerated);
      return make_slice(std::move(parts[0]), std::move(parts[1]), std::move(parts[2]));
    }
  }
  FX_ASSERT(false, "unknown kind of argument");
}

Value value_of(const Argument& argument) {
  return value_of(argument, [](Node&) -> Value { FX_ASSERT(false, "the argument holds a node"); });
}

Argument argument_of(const Value& value, ValueConverter convert) {
  if (value.isNone()) return {};
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return value.toDevice();
  if (value.isComplexDouble()) return std::complex<double>(value.toComplexDouble());
  if (value.isList()) return Argument::list(arguments_of(elements(value), convert));
  if (value.isTuple()) return Argument::tuple(arguments_of(elements(value), convert));
  if (value.isGenericDict()) {
    std::vector<DictItem> items;
    for (const auto& item : value.toGenericDict())
      items.emplace_back(argument_of(item.key(), convert), argument_of(item.value(), convert));
    return Argument::dict(std::move(items));
  }
  if (const Slice* slice = as_slice(value))
    return Argument::slice(argument_of(slice->start, convert), argument_of(slice->stop, convert),
                           argument_of(slice->step, convert));
  if (is_ellipsis(value)) return Argument::ellipsis();
  return convert(value);
}

}  // namespace fx
