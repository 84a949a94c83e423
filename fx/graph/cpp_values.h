#pragma once

#include <ATen/core/function_schema.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fx/graph/argument.h"

/// C++ source for values, with the C++ types that are known of them.
namespace fx::cpp {

/// The C++ type of an expression.
enum class Type : std::uint8_t {
  kNone,          ///< no value
  kTensor,        ///< at::Tensor
  kInt,           ///< std::int64_t
  kFloat,         ///< double
  kBool,          ///< bool
  kScalar,        ///< at::Scalar
  kString,        ///< std::string or a literal
  kDtype,         ///< at::ScalarType
  kLayout,        ///< at::Layout
  kMemoryFormat,  ///< at::MemoryFormat
  kDevice,        ///< at::Device
  kIntList,       ///< std::vector<std::int64_t>
  kFloatList,     ///< std::vector<double>
  kBoolList,      ///< std::vector<bool>
  kTensorList,    ///< std::vector<at::Tensor>
  kTuple,         ///< std::tuple of `items`
  kMixed,         ///< a literal list, tuple or dict of several types; has no C++ type of its own
};

/// A piece of C++ and its type.
struct Expr {
  Type type = Type::kNone;
  std::string text;
  std::vector<Type> items;  ///< of a kTuple
};

/// "at::Tensor"; of a tuple "std::tuple<at::Tensor, at::Tensor>".
std::string type_name(const Expr& expr);
std::string type_name(Type type);

/// A string literal; with embedded zeros a std::string.
std::string string_literal(std::string_view text);
std::string float_literal(double value);
/// "at::kFloat" for the usual dtypes, else "at::ScalarType::QInt8".
std::string dtype_literal(c10::ScalarType dtype);

/// Gives the expression of a node.
using NodeExpr = std::function<Expr(const Node&)>;

/// The expression of an argument. A list or tuple of one type becomes a vector; others are kMixed.
Expr expr_of(const Argument& argument, const NodeExpr& node);

/// `a == b` or `a != b` of bools and at::Scalars; nothing for other types and operators.
std::optional<Expr> equality(const Expr& a, const Expr& b, std::string_view infix);
/// What TORCH_CHECK is given for the message in the arguments of an assertion: nothing, a text, or
/// the parts of a tuple.
Expr message_of(std::span<const Argument> args, const NodeExpr& node);

/// `argument` as an expression for `parameter` of a schema, or nothing when it does not fit.
/// @param wrap_numbers a number may stand for a tensor.
std::optional<std::string> convert(const Argument& argument, const c10::Argument& parameter,
                                   const NodeExpr& node, bool wrap_numbers);

/// `argument` as a c10::IValue. Works for everything that has an expression.
std::string ivalue(const Argument& argument, const NodeExpr& node);

/// The type of a schema's result.
Type type_of(const c10::Type& type);

}  // namespace fx::cpp
