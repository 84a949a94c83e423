#include "fx/io/symbolic_expr.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fx/base/text.h"
#include "fx/io/symbolic_ops.h"

namespace fx::io {
namespace {

using Op = SymbolicExpr::Op;

/// For printing: which operands need parentheses.
int precedence(const SymbolicExpr& expr) {
  constexpr int kAtom = kPowerPrecedence + 1;
  if (expr.op == Op::kInteger) return expr.value < 0 ? kProductPrecedence : kAtom;
  if (expr.op == Op::kFloat) return std::signbit(expr.number) ? kProductPrecedence : kAtom;
  if (expr.op == Op::kNot) return kUnaryPrecedence;
  auto row = std::ranges::find(kInfix, expr.op, &InfixRow::op);
  return row == kInfix.end() ? kAtom : row->precedence;
}

void print(std::string& out, const SymbolicExpr& expr);

void print_operand(std::string& out, const SymbolicExpr& expr, int least) {
  if (precedence(expr) >= least) return print(out, expr);
  out += '(';
  print(out, expr);
  out += ')';
}

void print_infix(std::string& out, const SymbolicExpr& expr, std::string_view token) {
  const int own = precedence(expr);
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    if (i > 0) out += token;
    print_operand(out, expr.args[i], i == 0 ? own : own + 1);
  }
}

void print_call(std::string& out, const SymbolicExpr& expr, std::string_view name) {
  out += name;
  out += '(';
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    if (i > 0) out += ", ";
    print(out, expr.args[i]);
  }
  out += ')';
}

void print_sum(std::string& out, const SymbolicExpr& expr) {
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    const SymbolicExpr& term = expr.args[i];
    if (i > 0 && term.op == Op::kInteger && term.value < 0 &&
        term.value != std::numeric_limits<std::int64_t>::min()) {
      out += " - " + std::to_string(-term.value);
      continue;
    }
    if (i > 0) out += " + ";
    print_operand(out, term, i == 0 ? kSumPrecedence : kProductPrecedence);
  }
}

void print(std::string& out, const SymbolicExpr& expr) {
  switch (expr.op) {
    case Op::kInteger:
      out += std::to_string(expr.value);
      return;
    case Op::kFloat:
      out += float_repr(expr.number);
      return;
    case Op::kBoolean:
      out += expr.value != 0 ? "True" : "False";
      return;
    case Op::kSymbol:
      out += expr.name;
      return;
    case Op::kAdd:
      return print_sum(out, expr);
    case Op::kNot:
      out += '~';
      return print_operand(out, expr.args[0], kPowerPrecedence + 1);
    case Op::kPow:
      print_operand(out, expr.args[0], kPowerPrecedence + 1);
      out += "**";
      return print_operand(out, expr.args[1], kPowerPrecedence + 1);
    case Op::kOther:
      return print_call(out, expr, expr.name);
    default:
      break;
  }
  auto row = std::ranges::find(kInfix, expr.op, &InfixRow::op);
  if (row != kInfix.end() && expr.args.size() > 1) {
    const bool spaced = row->precedence != kProductPrecedence;
    return print_infix(out, expr,
                       spaced ? " " + std::string(row->token) + " " : std::string(row->token));
  }
  print_call(out, expr, std::ranges::find(kFunctions, expr.op, &FunctionRow::op)->name);
}

/// What torch assumes of a symbol when it makes one, by the letter it starts with.
std::string_view assumptions(std::string_view symbol) {
  if (symbol.starts_with('u')) return ", integer=True";
  if (symbol.starts_with("zu")) return "";
  if (symbol.starts_with('z')) return ", real=True";
  return ", positive=True, integer=True";
}

void print_srepr(std::string& out, const SymbolicExpr& expr) {
  switch (expr.op) {
    case Op::kInteger:
      out += "Integer(" + std::to_string(expr.value) + ")";
      return;
    case Op::kFloat:
      out += "Float('" + float_repr(expr.number) + "', precision=53)";
      return;
    case Op::kBoolean:
      out += expr.value != 0 ? "true" : "false";
      return;
    case Op::kSymbol:
      out += "Symbol('" + expr.name + "'";
      out += assumptions(expr.name);
      out += ')';
      return;
    case Op::kOther:
      out += expr.name;
      break;
    case Op::kMod:
      out += "PythonMod";
      break;
    default:
      // The first name of a function is the one that torch writes.
      out += std::ranges::find(kFunctions, expr.op, &FunctionRow::op)->name;
      break;
  }
  out += '(';
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    if (i > 0) out += ", ";
    print_srepr(out, expr.args[i]);
  }
  out += ')';
}

using Value = std::optional<std::int64_t>;

Value floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return {};
  std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value binary(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      return __builtin_add_overflow(a, b, &result) ? Value() : result;
    case Op::kMul:
      return __builtin_mul_overflow(a, b, &result) ? Value() : result;
    case Op::kFloorDiv:
      return floor_div(a, b);
    case Op::kMod: {
      if (b == 0) return {};
      if (b == -1) return 0;
      result = a % b;
      return result != 0 && (result < 0) != (b < 0) ? result + b : result;
    }
    case Op::kCeilDiv: {
      Value quotient = floor_div(a, b);
      if (!quotient) return {};
      return a % b != 0 ? *quotient + 1 : *quotient;
    }
    case Op::kPow: {
      result = 1;
      for (std::int64_t i = 0; i < b; ++i)
        if (__builtin_mul_overflow(result, a, &result)) return {};
      return result;
    }
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    case Op::kAnd:
      return a != 0 && b != 0;
    case Op::kOr:
      return a != 0 || b != 0;
    default:
      return {};
  }
}

void collect_symbols(const SymbolicExpr& expr, std::vector<std::string>& out) {
  if (expr.op == Op::kSymbol && std::ranges::find(out, expr.name) == out.end())
    out.push_back(expr.name);
  for (const SymbolicExpr& arg : expr.args) collect_symbols(arg, out);
}

}  // namespace

std::string SymbolicExpr::str() const {
  std::string out;
  print(out, *this);
  return out;
}

std::string SymbolicExpr::srepr() const {
  std::string out;
  print_srepr(out, *this);
  return out;
}

std::vector<std::string> SymbolicExpr::symbols() const {
  std::vector<std::string> out;
  collect_symbols(*this, out);
  return out;
}

std::optional<std::int64_t> SymbolicExpr::evaluate(
    const std::function<std::optional<std::int64_t>(std::string_view)>& symbol_value) const {
  switch (op) {
    case Op::kInteger:
    case Op::kBoolean:
      return value;
    case Op::kSymbol:
      return symbol_value(name);
    case Op::kFloat:
    case Op::kTrueDiv:
    case Op::kOther:
      return {};
    case Op::kNot: {
      Value operand = args[0].evaluate(symbol_value);
      return operand ? Value(*operand == 0) : Value();
    }
    case Op::kWhere: {
      Value condition = args[0].evaluate(symbol_value);
      return condition ? args[*condition != 0 ? 1 : 2].evaluate(symbol_value) : Value();
    }
    default:
      break;
  }
  Value result = args[0].evaluate(symbol_value);
  for (std::size_t i = 1; result && i < args.size(); ++i) {
    Value next = args[i].evaluate(symbol_value);
    result = next ? binary(op, *result, *next) : Value();
  }
  return result;
}

}  // namespace fx::io
