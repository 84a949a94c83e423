#include "fx/io/symbolic_expr.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <limits>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

using Op = SymbolicExpr::Op;

struct FunctionRow {
  std::string_view name;
  Op op;
  std::size_t min_args;
  std::size_t max_args;
};

constexpr std::size_t kMany = 100'000;

/// Functions by sympy's and torch.utils._sympy.functions' names. What is not here is kept as
/// kOther.
constexpr std::array kFunctions = {
    FunctionRow{"Add", Op::kAdd, 1, kMany},
    FunctionRow{"Mul", Op::kMul, 1, kMany},
    FunctionRow{"Pow", Op::kPow, 2, 2},
    FunctionRow{"PowByNatural", Op::kPow, 2, 2},
    FunctionRow{"FloorDiv", Op::kFloorDiv, 2, 2},
    FunctionRow{"CleanDiv", Op::kFloorDiv, 2, 2},
    FunctionRow{"Mod", Op::kMod, 2, 2},
    FunctionRow{"PythonMod", Op::kMod, 2, 2},
    FunctionRow{"CeilDiv", Op::kCeilDiv, 2, 2},
    FunctionRow{"IntTrueDiv", Op::kTrueDiv, 2, 2},
    FunctionRow{"FloatTrueDiv", Op::kTrueDiv, 2, 2},
    FunctionRow{"Min", Op::kMin, 1, kMany},
    FunctionRow{"Max", Op::kMax, 1, kMany},
    FunctionRow{"Equality", Op::kEq, 2, 2},
    FunctionRow{"Eq", Op::kEq, 2, 2},
    FunctionRow{"Unequality", Op::kNe, 2, 2},
    FunctionRow{"Ne", Op::kNe, 2, 2},
    FunctionRow{"StrictLessThan", Op::kLt, 2, 2},
    FunctionRow{"Lt", Op::kLt, 2, 2},
    FunctionRow{"LessThan", Op::kLe, 2, 2},
    FunctionRow{"Le", Op::kLe, 2, 2},
    FunctionRow{"StrictGreaterThan", Op::kGt, 2, 2},
    FunctionRow{"Gt", Op::kGt, 2, 2},
    FunctionRow{"GreaterThan", Op::kGe, 2, 2},
    FunctionRow{"Ge", Op::kGe, 2, 2},
    FunctionRow{"And", Op::kAnd, 1, kMany},
    FunctionRow{"Or", Op::kOr, 1, kMany},
    FunctionRow{"Not", Op::kNot, 1, 1},
    FunctionRow{"Where", Op::kWhere, 3, 3},
};

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

SymbolicExpr integer(std::int64_t value) {
  SymbolicExpr expr;
  expr.value = value;
  return expr;
}

/// Infix and prefix operators with Python's precedence, larger binds tighter.
enum class Operator : std::uint8_t { kBinary, kSubtract, kNegate, kNot, kOpen, kCall };

struct InfixRow {
  std::string_view token;
  Op op;
  int precedence;
};

constexpr int kOrPrecedence = 1, kAndPrecedence = 2, kNotPrecedence = 3, kComparePrecedence = 4;
constexpr int kSumPrecedence = 5, kProductPrecedence = 6, kUnaryPrecedence = 7,
              kPowerPrecedence = 8;

/// Longer tokens first.
constexpr std::array kInfix = {
    InfixRow{"**", Op::kPow, kPowerPrecedence},  InfixRow{"//", Op::kFloorDiv, kProductPrecedence},
    InfixRow{"==", Op::kEq, kComparePrecedence}, InfixRow{"!=", Op::kNe, kComparePrecedence},
    InfixRow{"<=", Op::kLe, kComparePrecedence}, InfixRow{">=", Op::kGe, kComparePrecedence},
    InfixRow{"<", Op::kLt, kComparePrecedence},  InfixRow{">", Op::kGt, kComparePrecedence},
    InfixRow{"*", Op::kMul, kProductPrecedence}, InfixRow{"/", Op::kTrueDiv, kProductPrecedence},
    InfixRow{"%", Op::kMod, kProductPrecedence}, InfixRow{"+", Op::kAdd, kSumPrecedence},
    InfixRow{"&", Op::kAnd, kAndPrecedence},     InfixRow{"|", Op::kOr, kOrPrecedence},
};

/// Reads an expression with two explicit stacks (Dijkstra's shunting yard), so that the nesting of
/// the text costs heap and not stack.
class ExprParser {
 public:
  ExprParser(std::string_view text, const std::string& label) : text_(text), label_(label) {}

  SymbolicExpr parse() {
    for (;;) {
      while (!read_operand()) {
      }
      // After an operand: close what ends here, then an operator, a comma or the end.
      while (accept(")")) close();
      if (accept(",")) {
        reduce_to_open();
        if (pending_.empty() || pending_.back().kind != Operator::kCall)
          fail("a comma outside a call");
      } else if (!read_operator()) {
        break;
      }
    }
    if (peek() != '\0') fail("what follows byte " + std::to_string(at_) + " is unexpected");
    reduce_to_open();
    if (!pending_.empty()) fail("a parenthesis is not closed");
    return std::move(operands_.back());
  }

 private:
  struct Pending {
    Operator kind;
    Op op;
    int precedence;
    std::string_view name;      // of a call
    std::size_t first_operand;  // of a call
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw ImportError(ErrorCode::kBadExpression,
                      label_ + ": cannot read the expression " + shown(text_) + ": " + what);
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(std::string_view token) {
    peek();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token))
      fail("'" + std::string(token) + "' is wanted at byte " + std::to_string(at_));
  }
  /// A word: not the start of a longer name.
  bool accept_word(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    std::size_t end = at_ + word.size();
    if (end < text_.size() && is_name_char(text_[end])) return false;
    at_ = end;
    return true;
  }

  /// Reads one prefix operator, opening, or value; true after a value.
  bool read_operand() {
    if (accept("-")) return push({Operator::kNegate, {}, kUnaryPrecedence, {}, 0}), false;
    if (accept("~")) return push({Operator::kNot, {}, kUnaryPrecedence, {}, 0}), false;
    if (accept_word("not")) return push({Operator::kNot, {}, kNotPrecedence, {}, 0}), false;
    if (accept("(")) return open({Operator::kOpen, {}, 0, {}, 0}), false;
    char c = peek();
    if (c >= '0' && c <= '9') return operands_.push_back(parse_number()), true;
    if (!is_name_char(c) || c == '.') fail("a value is wanted at byte " + std::to_string(at_));
    std::size_t start = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    std::string_view name = text_.substr(start, at_ - start);
    // Some versions write torch's own functions with their module.
    if (std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
      name.remove_prefix(dot + 1);
    if (peek() != '(') return operands_.push_back(name_value(name)), true;
    ++at_;
    if (name == "Symbol") return operands_.push_back(parse_symbol()), true;
    if (name == "Integer") return operands_.push_back(parse_srepr_integer()), true;
    if (name == "Float") return operands_.push_back(parse_srepr_float()), true;
    if (peek() == ')') fail(std::string(name) + " without arguments");
    return open({Operator::kCall, {}, 0, name, operands_.size()}), false;
  }

  /// Reads an infix operator, if there is one.
  bool read_operator() {
    for (auto [word, op, precedence] :
         {InfixRow{"and", Op::kAnd, kAndPrecedence}, InfixRow{"or", Op::kOr, kOrPrecedence}})
      if (accept_word(word)) return push_infix(Operator::kBinary, op, precedence), true;
    for (const InfixRow& row : kInfix)
      if (accept(row.token)) return push_infix(Operator::kBinary, row.op, row.precedence), true;
    if (accept("-")) return push_infix(Operator::kSubtract, Op::kAdd, kSumPrecedence), true;
    return false;
  }

  void push(Pending pending) { pending_.push_back(pending); }
  void open(Pending pending) {
    if (++depth_ > kMaxExpressionDepth)
      fail("it is nested more than " + std::to_string(kMaxExpressionDepth) + " deep");
    push(pending);
  }
  void push_infix(Operator kind, Op op, int precedence) {
    // ** associates to the right, everything else to the left.
    const int least = op == Op::kPow ? precedence + 1 : precedence;
    while (!pending_.empty() && pending_.back().precedence >= least) {
      if (precedence == kComparePrecedence && pending_.back().precedence == kComparePrecedence)
        fail("a chain of comparisons");
      reduce();
    }
    push({kind, op, precedence, {}, 0});
  }

  void reduce_to_open() {
    while (!pending_.empty() && pending_.back().precedence > 0) reduce();
  }
  void close() {
    reduce_to_open();
    if (pending_.empty()) fail("a parenthesis too many");
    Pending opened = pending_.back();
    pending_.pop_back();
    --depth_;
    if (opened.kind == Operator::kCall) {
      auto first = operands_.begin() + static_cast<std::ptrdiff_t>(opened.first_operand);
      std::vector<SymbolicExpr> args(std::make_move_iterator(first),
                                     std::make_move_iterator(operands_.end()));
      operands_.erase(first, operands_.end());
      operands_.push_back(call(opened.name, std::move(args)));
    }
  }

  /// Applies the operator on top to the operands on top.
  void reduce() {
    Pending top = pending_.back();
    pending_.pop_back();
    SymbolicExpr right = std::move(operands_.back());
    operands_.pop_back();
    if (top.kind == Operator::kNegate) return operands_.push_back(negated(std::move(right)));
    if (top.kind == Operator::kNot)
      return operands_.push_back(make(Op::kNot, one(std::move(right))));
    if (top.kind == Operator::kSubtract) right = negated(std::move(right));
    SymbolicExpr left = std::move(operands_.back());
    operands_.pop_back();
    const bool associative =
        top.op == Op::kAdd || top.op == Op::kMul || top.op == Op::kAnd || top.op == Op::kOr;
    std::vector<SymbolicExpr> args;
    if (associative && left.op == top.op) {
      args = std::move(left.args);
    } else {
      args.push_back(std::move(left));
    }
    args.push_back(std::move(right));
    operands_.push_back(top.op == Op::kPow ? power(std::move(args))
                                           : make(top.op, std::move(args)));
  }

  static std::vector<SymbolicExpr> one(SymbolicExpr arg) {
    std::vector<SymbolicExpr> args;
    args.push_back(std::move(arg));
    return args;
  }
  SymbolicExpr make(Op op, std::vector<SymbolicExpr> args) const {
    SymbolicExpr expr;
    expr.op = op;
    expr.args = std::move(args);
    for (const SymbolicExpr& arg : expr.args) expr.height = std::max(expr.height, arg.height + 1);
    if (expr.height > kMaxExpressionHeight) fail("too many operations inside each other");
    return expr;
  }
  SymbolicExpr negated(SymbolicExpr operand) const {
    if (operand.op == Op::kInteger && operand.value != std::numeric_limits<std::int64_t>::min())
      return integer(-operand.value);
    std::vector<SymbolicExpr> args = one(integer(-1));
    args.push_back(std::move(operand));
    return make(Op::kMul, std::move(args));
  }
  /// Only powers with a known, small, non-negative exponent are integer arithmetic.
  SymbolicExpr power(std::vector<SymbolicExpr> args) const {
    const SymbolicExpr& exponent = args[1];
    if (exponent.op == Op::kInteger && exponent.value >= 0 && exponent.value < 64)
      return make(Op::kPow, std::move(args));
    if (exponent.op == Op::kInteger && exponent.value == -1) {
      std::vector<SymbolicExpr> quotient = one(integer(1));
      quotient.push_back(std::move(args[0]));
      return make(Op::kTrueDiv, std::move(quotient));
    }
    fail("powers need a constant exponent from 0 to 63");
  }
  SymbolicExpr call(std::string_view name, std::vector<SymbolicExpr> args) const {
    auto row = std::ranges::find(kFunctions, name, &FunctionRow::name);
    if (row == kFunctions.end()) {
      SymbolicExpr expr = make(Op::kOther, std::move(args));
      expr.name = name;
      return expr;
    }
    if (args.size() < row->min_args || args.size() > row->max_args)
      fail(std::string(name) + " with " + std::to_string(args.size()) + " arguments");
    return row->op == Op::kPow ? power(std::move(args)) : make(row->op, std::move(args));
  }
  SymbolicExpr name_value(std::string_view name) const {
    SymbolicExpr expr;
    if (name == "True" || name == "true" || name == "False" || name == "false") {
      expr.op = Op::kBoolean;
      expr.value = name == "True" || name == "true" ? 1 : 0;
      return expr;
    }
    if (!is_identifier(name)) fail("no symbol: " + shown(name));
    expr.op = Op::kSymbol;
    expr.name = name;
    return expr;
  }

  SymbolicExpr parse_number() {
    std::int64_t value = 0;
    const char* end = text_.data() + text_.size();
    auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) fail("a number that does not fit an int64");
    if (rest != end && (*rest == '.' || *rest == 'e')) return parse_float();
    if (rest != end && is_name_char(*rest))
      fail("a malformed number at byte " + std::to_string(at_));
    at_ = static_cast<std::size_t>(rest - text_.data());
    return integer(value);
  }
  SymbolicExpr parse_float() {
    SymbolicExpr expr;
    expr.op = Op::kFloat;
    const char* end = text_.data() + text_.size();
    auto [rest, error] = std::from_chars(text_.data() + at_, end, expr.number);
    if (error != std::errc() || (rest != end && is_name_char(*rest)))
      fail("a malformed number at byte " + std::to_string(at_));
    at_ = static_cast<std::size_t>(rest - text_.data());
    return expr;
  }

  /// Symbol('s0', positive=True, integer=True): the assumptions are dropped.
  SymbolicExpr parse_symbol() {
    SymbolicExpr expr = name_value(parse_string());
    while (!accept(")")) {
      expect(",");
      peek();
      while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
      expect("=");
      if (!accept_word("True") && !accept_word("False")) fail("an assumption that is no bool");
    }
    return expr;
  }
  /// Integer(-1)
  SymbolicExpr parse_srepr_integer() {
    const bool negative = accept("-");
    peek();
    SymbolicExpr value = parse_number();
    if (value.op != Op::kInteger) fail("Integer() holds no integer");
    if (negative) value.value = -value.value;
    expect(")");
    return value;
  }
  /// Float('1.5', precision=53)
  SymbolicExpr parse_srepr_float() {
    SymbolicExpr expr;
    expr.op = Op::kFloat;
    std::string digits = parse_string();
    auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), expr.number);
    if (error != std::errc() || rest != digits.data() + digits.size())
      fail("a malformed number " + shown(digits));
    if (accept(",")) {
      expect("precision");
      expect("=");
      peek();
      parse_number();
    }
    expect(")");
    return expr;
  }
  std::string parse_string() {
    expect("'");
    std::size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a string without end");
    std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }

  std::string_view text_;
  const std::string& label_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::vector<Pending> pending_;
  std::vector<SymbolicExpr> operands_;
};

/// For printing: which operands need parentheses.
int precedence(const SymbolicExpr& expr) {
  constexpr int kAtom = kPowerPrecedence + 1;
  if (expr.op == Op::kInteger) return expr.value < 0 ? kProductPrecedence : kAtom;
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

SymbolicExpr parse_symbolic_expr(std::string_view text, const std::string& label) {
  if (text.size() > kMaxExpressionBytes)
    throw ImportError(ErrorCode::kBadExpression,
                      label + ": an expression of " + std::to_string(text.size()) + " bytes");
  return ExprParser(text, label).parse();
}

}  // namespace fx::io
