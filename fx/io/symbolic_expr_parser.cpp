#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/io/shown.h"
#include "fx/io/symbolic_ops.h"

namespace fx::io {
namespace {

using Op = SymbolicExpr::Op;

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

SymbolicExpr integer(std::int64_t value) {
  SymbolicExpr expr;
  expr.value = value;
  return expr;
}

/// What waits for its operands.
enum class Operator : std::uint8_t { kBinary, kSubtract, kNegate, kNot, kOpen, kCall };

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
    if (!is_identifier(name)) fail("no name: " + shown(name));
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
    if (operand.op == Op::kFloat) {
      operand.number = -operand.number;
      return operand;
    }
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
    if (row->max_args == kMany && args.size() == 1) return std::move(args[0]);
    return row->op == Op::kPow ? power(std::move(args)) : make(row->op, std::move(args));
  }
  SymbolicExpr name_value(std::string_view name) const {
    SymbolicExpr expr;
    if (name == "True" || name == "true" || name == "False" || name == "false") {
      expr.op = Op::kBoolean;
      expr.value = name == "True" || name == "true" ? 1 : 0;
      return expr;
    }
    if (!is_identifier(name)) fail("no name: " + shown(name));
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
    if (error != std::errc() || rest != digits.data() + digits.size() ||
        !std::isfinite(expr.number))
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

}  // namespace

SymbolicExpr parse_symbolic_expr(std::string_view text, const std::string& label) {
  if (text.size() > kMaxExpressionBytes)
    throw ImportError(ErrorCode::kBadExpression,
                      label + ": an expression of " + std::to_string(text.size()) + " bytes");
  return ExprParser(text, label).parse();
}

}  // namespace fx::io
