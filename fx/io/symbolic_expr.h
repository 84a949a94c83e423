#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fx::io {

/// An integer or boolean expression over symbols, as torch.export records sizes and checks. Read by
/// a small grammar of its own; text from a file is never evaluated as code.
struct SymbolicExpr {
  enum class Op : std::uint8_t {
    kInteger,   ///< value
    kFloat,     ///< number
    kBoolean,   ///< value 0 or 1
    kSymbol,    ///< name
    kAdd,       ///< n-ary
    kMul,       ///< n-ary
    kPow,       ///< base, exponent (a non-negative integer)
    kFloorDiv,  ///< rounds towards minus infinity, as Python's //
    kMod,       ///< sign of the divisor, as Python's %
    kCeilDiv,
    kTrueDiv,  ///< not evaluated over integers
    kMin,      ///< n-ary
    kMax,      ///< n-ary
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
    kAnd,  ///< n-ary
    kOr,   ///< n-ary
    kNot,
    kWhere,  ///< condition, then, else
    kOther,  ///< a function that is only kept: name, arguments
  };

  Op op = Op::kInteger;
  std::int64_t value = 0;
  double number = 0;
  std::string name;
  std::vector<SymbolicExpr> args;
  std::size_t height = 0;  ///< longest way down to an expression without arguments

  /// Python's infix form: "2*s77 + 1", "s0//2", "Max(1, s0)".
  std::string str() const;

  /// sympy's srepr form, which torch.export writes: "Add(Mul(Integer(2), Symbol('s77',
  /// positive=True, integer=True)), Integer(1))". What is assumed of a symbol follows from its
  /// name, as torch names them: s0 is a positive integer, u0 an integer, z.. a real number.
  std::string srepr() const;

  /// The symbols that occur, each once, in order of first occurrence. O(nodes * symbols).
  std::vector<std::string> symbols() const;

  /// The value when `symbol_value` gives the symbols'; nothing if a symbol is unknown, on overflow
  /// of int64, division by zero, or for kFloat, kTrueDiv and kOther. O(nodes).
  std::optional<std::int64_t> evaluate(
      const std::function<std::optional<std::int64_t>(std::string_view)>& symbol_value) const;
};

/// Limits of parse_symbolic_expr: bytes of text, nesting of parentheses and calls, height of the
/// result.
inline constexpr std::size_t kMaxExpressionBytes = 64 * 1024;
inline constexpr std::size_t kMaxExpressionDepth = 100;
inline constexpr std::size_t kMaxExpressionHeight = 2 * kMaxExpressionDepth;

/// Reads sympy's srepr form ("Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)),
/// Integer(1))", torch 2.7 and later) and the infix form ("2*s0 + 1"). `label` starts each message.
/// @throws ImportError kBadExpression. O(size).
SymbolicExpr parse_symbolic_expr(std::string_view text, const std::string& label);

}  // namespace fx::io
