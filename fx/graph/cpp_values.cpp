#include "fx/graph/cpp_values.h"

#include <cmath>
#include <cstdio>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/node.h"

namespace fx::cpp {
namespace {

using Kind = Argument::Kind;

std::string int_literal(std::int64_t value) {
  // The smallest one is no literal: its magnitude does not fit.
  if (value == std::numeric_limits<std::int64_t>::min())
    return "std::numeric_limits<std::int64_t>::min()";
  return std::to_string(value);
}

std::string layout_literal(c10::Layout layout) {
  constexpr std::string_view kNames[] = {"kStrided",   "kSparse",    "kSparseCsr", "kMkldnn",
                                         "kSparseCsc", "kSparseBsr", "kSparseBsc", "kJagged"};
  return "at::" + std::string(kNames[static_cast<std::size_t>(layout)]);
}

std::string memory_format_literal(c10::MemoryFormat format) {
  constexpr std::string_view kNames[] = {"Contiguous", "Preserve", "ChannelsLast",
                                         "ChannelsLast3d"};
  return "at::MemoryFormat::" + std::string(kNames[static_cast<std::size_t>(format)]);
}

std::string braces(std::string type, const std::vector<std::string>& items) {
  type += '{';
  for (std::size_t i = 0; i < items.size(); ++i) type += (i ? ", " : "") + items[i];
  return type + '}';
}

// The one type of all items; an int among floats is a float. Nothing for mixed or no items.
std::optional<Type> common_type(const std::vector<Expr>& items) {
  std::optional<Type> common;
  for (const Expr& item : items) {
    Type type = item.type;
    if (!common || *common == type) {
      common = type;
    } else if ((*common == Type::kInt && type == Type::kFloat) ||
               (*common == Type::kFloat && type == Type::kInt)) {
      common = Type::kFloat;
    } else {
      return std::nullopt;
    }
  }
  return common;
}

std::optional<Type> list_type(Type item) {
  switch (item) {
    case Type::kInt:
      return Type::kIntList;
    case Type::kFloat:
      return Type::kFloatList;
    case Type::kBool:
      return Type::kBoolList;
    case Type::kTensor:
      return Type::kTensorList;
    default:
      return std::nullopt;
  }
}

std::vector<Expr> exprs_of(std::span<const Argument> items, const NodeExpr& node) {
  std::vector<Expr> out;
  for (const Argument& item : items) out.push_back(expr_of(item, node));
  return out;
}

std::vector<std::string> texts_of(const std::vector<Expr>& items) {
  std::vector<std::string> out;
  for (const Expr& item : items) out.push_back(item.text);
  return out;
}

bool is_sequence(const Argument& argument) {
  return argument.kind() == Kind::kList || argument.kind() == Kind::kTuple;
}

// A list argument for a parameter whose elements have the type `element`.
std::optional<std::string> convert_list(const Argument& argument, const c10::Argument& parameter,
                                        const c10::Type& element, const NodeExpr& node) {
  const Type item_type = type_of(element);
  const bool optional_tensors = element.kind() == c10::TypeKind::OptionalType;
  if (!is_sequence(argument)) {
    const Expr expr = expr_of(argument, node);
    if (const auto wanted = list_type(item_type); wanted && expr.type == *wanted) return expr.text;
    // One number stands for a list: "int[2] stride".
    if (parameter.N() && expr.type == item_type && item_type != Type::kTensor)
      return braces("std::vector<" + type_name(item_type) + ">", {expr.text});
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (const Argument& item : argument.items()) {
    const Expr expr = expr_of(item, node);
    const bool fits =
        expr.type == item_type || (item_type == Type::kFloat && expr.type == Type::kInt) ||
        (item_type == Type::kScalar &&
         (expr.type == Type::kInt || expr.type == Type::kFloat || expr.type == Type::kBool)) ||
        (optional_tensors && (expr.type == Type::kTensor || expr.type == Type::kNone));
    if (!fits) return std::nullopt;
    texts.push_back(optional_tensors && expr.type == Type::kNone ? "std::nullopt" : expr.text);
  }
  if (optional_tensors) {
    if (texts.empty()) return "c10::List<std::optional<at::Tensor>>()";
    return "c10::List<std::optional<at::Tensor>>(" + braces("", texts) + ")";
  }
  if (item_type == Type::kBool && parameter.N())
    return braces("std::array<bool, " + std::to_string(*parameter.N()) + ">", texts);
  const std::string name = item_type == Type::kScalar ? "at::Scalar" : type_name(item_type);
  return braces("std::vector<" + name + ">", texts);
}

}  // namespace

// --- names and literals
// ------------------------------------------------------------------------------

std::string type_name(Type type) {
  switch (type) {
    case Type::kTensor:
      return "at::Tensor";
    case Type::kInt:
      return "std::int64_t";
    case Type::kFloat:
      return "double";
    case Type::kBool:
      return "bool";
    case Type::kScalar:
      return "at::Scalar";
    case Type::kString:
      return "std::string";
    case Type::kDtype:
      return "at::ScalarType";
    case Type::kLayout:
      return "at::Layout";
    case Type::kMemoryFormat:
      return "at::MemoryFormat";
    case Type::kDevice:
      return "at::Device";
    case Type::kIntList:
      return "std::vector<std::int64_t>";
    case Type::kFloatList:
      return "std::vector<double>";
    case Type::kBoolList:
      return "std::vector<bool>";
    case Type::kTensorList:
      return "std::vector<at::Tensor>";
    case Type::kNone:
    case Type::kTuple:
    case Type::kMixed:
      break;
  }
  return "auto";
}

std::string type_name(const Expr& expr) {
  if (expr.type != Type::kTuple) return type_name(expr.type);
  std::string out = "std::tuple<";
  for (std::size_t i = 0; i < expr.items.size(); ++i)
    out += (i ? ", " : "") + type_name(expr.items[i]);
  return out + ">";
}

std::string string_literal(std::string_view text) {
  std::string out = "\"";
  bool zero = false, after_escape = false;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    zero |= byte == 0;
    if (byte < 0x20 || byte >= 0x7f) {
      // Octal escapes have at most three digits, so that what follows cannot join in.
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\%03o", byte);
      out += buffer;
    } else {
      // "??" would start a trigraph for old compilers.
      if (c == '"' || c == '\\' || (c == '?' && after_escape)) out += '\\';
      out += c;
    }
    after_escape = c == '?';
  }
  out += '"';
  return zero ? "std::string(" + out + ", " + std::to_string(text.size()) + ")" : out;
}

std::string float_literal(double value) {
  if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
  return float_repr(value);
}

std::string dtype_literal(c10::ScalarType dtype) {
  return "at::k" + std::string(c10::toString(dtype));
}

Type type_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return Type::kTensor;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return Type::kInt;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return Type::kFloat;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return Type::kBool;
    case c10::TypeKind::NumberType:
      return Type::kScalar;
    case c10::TypeKind::StringType:
      return Type::kString;
    case c10::TypeKind::ScalarTypeType:
      return Type::kDtype;
    case c10::TypeKind::LayoutType:
      return Type::kLayout;
    case c10::TypeKind::MemoryFormatType:
      return Type::kMemoryFormat;
    case c10::TypeKind::DeviceObjType:
      return Type::kDevice;
    case c10::TypeKind::ListType:
      return list_type(type_of(*type.expectRef<c10::ListType>().getElementType()))
          .value_or(Type::kMixed);
    default:
      return Type::kMixed;
  }
}

// --- expressions
// -------------------------------------------------------------------------------------

Expr expr_of(const Argument& argument, const NodeExpr& node) {
  switch (argument.kind()) {
    case Kind::kNone:
      return {Type::kNone, "std::nullopt", {}};
    case Kind::kNode:
      return node(argument.node());
    case Kind::kBool:
      return {Type::kBool, argument.to_bool() ? "true" : "false", {}};
    case Kind::kInt:
      return {Type::kInt, int_literal(argument.to_int()), {}};
    case Kind::kFloat:
      return {Type::kFloat, float_literal(argument.to_double()), {}};
    case Kind::kString:
      return {Type::kString, string_literal(argument.to_string()), {}};
    case Kind::kComplex:
      return {Type::kScalar,
              "at::Scalar(c10::complex<double>(" + float_literal(argument.to_complex().real()) +
                  ", " + float_literal(argument.to_complex().imag()) + "))",
              {}};
    case Kind::kDtype:
      return {Type::kDtype, dtype_literal(argument.to_dtype()), {}};
    case Kind::kLayout:
      return {Type::kLayout, layout_literal(argument.to_layout()), {}};
    case Kind::kMemoryFormat:
      return {Type::kMemoryFormat, memory_format_literal(argument.to_memory_format()), {}};
    case Kind::kDevice:
      return {Type::kDevice, "at::Device(" + string_literal(argument.to_device().str()) + ")", {}};
    case Kind::kList:
    case Kind::kTuple: {
      const std::vector<Expr> items = exprs_of(argument.items(), node);
      const std::optional<Type> common = common_type(items);
      const std::optional<Type> list = common ? list_type(*common) : std::nullopt;
      if (!list) return {Type::kMixed, "", {}};
      return {*list, braces(type_name(*list), texts_of(items)), {}};
    }
    default:
      return {Type::kMixed, "", {}};
  }
}

std::optional<std::string> convert(const Argument& argument, const c10::Argument& parameter,
                                   const NodeExpr& node, bool wrap_numbers) {
  // The real type tells dtypes and symbolic ints from plain ints.
  c10::TypePtr type = parameter.real_type();
  const bool optional = type->kind() == c10::TypeKind::OptionalType;
  if (optional) type = type->expectRef<c10::OptionalType>().getElementType();
  if (argument.is_none()) {
    if (optional || type->kind() == c10::TypeKind::GeneratorType) return "std::nullopt";
    return std::nullopt;
  }
  if (type->kind() == c10::TypeKind::ListType)
    return convert_list(argument, parameter, *type->expectRef<c10::ListType>().getElementType(),
                        node);
  const Expr expr = expr_of(argument, node);
  const Type wanted = type_of(*type);
  const bool number = expr.type == Type::kInt || expr.type == Type::kFloat ||
                      expr.type == Type::kBool || expr.type == Type::kScalar;
  switch (wanted) {
    case Type::kTensor:
      if (expr.type == Type::kTensor) return expr.text;
      if (number && wrap_numbers) return "at::native::wrapped_scalar_tensor(" + expr.text + ")";
      return std::nullopt;
    case Type::kScalar:
      if (number) return expr.text;
      if (expr.type == Type::kTensor && wrap_numbers) return expr.text + ".item()";
      return std::nullopt;
    case Type::kFloat:
      if (expr.type == Type::kFloat) return expr.text;
      if (argument.kind() == Kind::kInt)
        return float_literal(static_cast<double>(argument.to_int()));
      if (expr.type == Type::kInt) return "static_cast<double>(" + expr.text + ")";
      return std::nullopt;
    case Type::kDtype:
    case Type::kLayout:
    case Type::kMemoryFormat:
      if (expr.type == wanted) return expr.text;
      if (argument.kind() != Kind::kInt) return std::nullopt;
      if (wanted == Type::kDtype)
        return dtype_literal(static_cast<c10::ScalarType>(argument.to_int()));
      if (wanted == Type::kLayout)
        return layout_literal(static_cast<c10::Layout>(argument.to_int()));
      return memory_format_literal(static_cast<c10::MemoryFormat>(argument.to_int()));
    case Type::kDevice:
      if (expr.type == Type::kDevice) return expr.text;
      if (expr.type == Type::kString) return "at::Device(" + expr.text + ")";
      return std::nullopt;
    case Type::kInt:
    case Type::kBool:
    case Type::kString:
      if (expr.type == wanted) return expr.text;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::string ivalue(const Argument& argument, const NodeExpr& node) {
  switch (argument.kind()) {
    case Kind::kNone:
      return "c10::IValue()";
    case Kind::kInt:
      return "c10::IValue(std::int64_t{" + int_literal(argument.to_int()) + "})";
    case Kind::kString:
      return "c10::IValue(std::string(" + string_literal(argument.to_string()) + "))";
    case Kind::kDict: {
      std::string out = "dict({";
      bool first = true;
      for (const DictItem& item : argument.dict_items()) {
        out += (first ? "{" : ", {") + ivalue(item.first, node) + ", " + ivalue(item.second, node) +
               "}";
        first = false;
      }
      return out + "})";
    }
    case Kind::kTuple:
    case Kind::kList: {
      const bool tuple = argument.kind() == Kind::kTuple;
      if (!tuple) {
        const Expr expr = expr_of(argument, node);
        if (expr.type != Type::kMixed) return "c10::IValue(" + expr.text + ")";
      }
      std::string out = tuple ? "tuple({" : "list({";
      bool first = true;
      for (const Argument& item : argument.items()) {
        out += (first ? "" : ", ") + ivalue(item, node);
        first = false;
      }
      return out + "})";
    }
    case Kind::kNode: {
      const Expr expr = node(argument.node());
      if (expr.type == Type::kNone) return "c10::IValue()";
      return "c10::IValue(" + expr.text + ")";
    }
    case Kind::kSlice:
    case Kind::kEllipsis:
      throw GraphError(ErrorCode::kNotExpressible,
                       "a " + std::string(kind_name(argument.kind())) + " is no value in C++");
    default:
      return "c10::IValue(" + expr_of(argument, node).text + ")";
  }
}

std::optional<Expr> equality(const Expr& a, const Expr& b, std::string_view infix) {
  if (infix != "==" && infix != "!=") return std::nullopt;
  const std::string op = " " + std::string(infix) + " ";
  if (a.type == Type::kBool && b.type == Type::kBool)
    return Expr{Type::kBool, a.text + op + b.text, {}};
  if (a.type != Type::kScalar) return std::nullopt;
  // Only for nan, which differs from itself.
  if (b.type == Type::kScalar)
    return Expr{Type::kBool, a.text + ".toDouble()" + op + b.text + ".toDouble()", {}};
  if (b.type != Type::kInt && b.type != Type::kFloat && b.type != Type::kBool) return std::nullopt;
  return Expr{Type::kBool, (infix == "==" ? "" : "!") + a.text + ".equal(" + b.text + ")", {}};
}

Expr message_of(std::span<const Argument> args, const NodeExpr& node) {
  if (args.size() < 2) return {Type::kString, "\"\"", {}};
  const Argument& message = args[1];
  if (message.kind() != Argument::Kind::kTuple) return expr_of(message, node);
  Expr out{Type::kString, {}, {}};
  for (const Argument& part : message.items())
    out.text += (out.text.empty() ? "" : ", \" \", ") + expr_of(part, node).text;
  return out;
}

}  // namespace fx::cpp
