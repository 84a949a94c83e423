#include <cmath>

#include "fx/passes/operation.h"
#include "fx/passes/simplify_context.h"

/// Rules of the pass simplify that compute with numbers: each element of the result depends on the
/// same one of the operand.
namespace fx::detail {
namespace {

using c10::ScalarType;

constexpr std::array<std::string_view, 18> kIdempotent = {
    "abs",   "absolute", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "clone", "fix",
    "floor", "hardtanh", "relu", "relu6", "round",     "sign",      "tril", "triu",  "trunc"};

bool is_unary(const Node& node) { return node.num_args() == 1 && node.kwargs().empty(); }

bool is_abs(const Node& node) {
  const std::string_view name = operation_of(node);
  return is_unary(node) && (name == "abs" || name == "absolute");
}
bool is_neg(const Node& node) {
  const std::string_view name = operation_of(node);
  return is_unary(node) && (name == "neg" || name == "negative");
}
bool is_bitwise_not(const Node& node) {
  const std::string_view name = operation_of(node);
  return is_unary(node) && (name == "bitwise_not" || name == "inv" || name == "invert");
}
bool is_relu(const Node& node) { return is_unary(node) && operation_of(node) == "relu"; }

bool is_real_floating(ScalarType type) {
  return type == c10::kFloat || type == c10::kDouble || type == c10::kHalf ||
         type == c10::kBFloat16;
}
bool is_integer(ScalarType type) {
  return type == c10::kByte || type == c10::kChar || type == c10::kShort || type == c10::kInt ||
         type == c10::kLong;
}
bool is_real(ScalarType type) {
  return is_real_floating(type) || is_integer(type) || type == c10::kBool;
}

// Bits of the numbers that a type holds without a gap.
int digits_of(ScalarType type) {
  switch (type) {
    case c10::kBool:
      return 1;
    case c10::kChar:
      return 7;
    case c10::kByte:
    case c10::kBFloat16:
      return 8;
    case c10::kHalf:
      return 11;
    case c10::kShort:
      return 15;
    case c10::kFloat:
      return 24;
    case c10::kInt:
      return 31;
    case c10::kDouble:
      return 53;
    default:
      return 63;
  }
}

// Whether each value of `from` is one of `to`; of real types.
bool holds_all(ScalarType to, ScalarType from) {
  if (to == from) return true;
  if (to == c10::kBool) return false;
  if (is_real_floating(from))
    return (to == c10::kDouble && is_real_floating(from)) ||
           (to == c10::kFloat && from != c10::kDouble);
  const bool has_sign = from != c10::kByte && from != c10::kBool;
  if (has_sign && to == c10::kByte) return false;
  return digits_of(from) <= digits_of(to);
}

}  // namespace

bool simplify_idempotent(SimplifyContext& context, Node& node) {
  const std::string_view name = operation_of(node);
  if (!contains(kIdempotent, name)) return false;
  Node* inner = context.inner_of(node);
  if (!inner || operation_of(*inner) != name || !has_equal_options(node, *inner)) return false;
  // round(decimals) rounds what multiplication and division rounded before.
  if (name == "round" && !is_unary(node)) return false;
  context.rewire(node, with_input(node, inner->args()[0]));
  return true;
}

bool simplify_same_again(SimplifyContext& context, Node& node) {
  Node& input = node.args()[0].node();
  const std::string_view name = operation_of(node);
  if (const auto dtype = conversion_of(node); dtype && name != "_to_copy") {
    // Only what is known of the graph alone; remove_noops does the others.
    if (!context.inner_of(node) || context.dtype_of(input) != dtype) return false;
    context.replace(node, input);
    return true;
  }
  if (name != "contiguous" && name != "detach") return false;
  const Node* inner = context.inner_of(node);
  if (!inner || operation_of(*inner) != name || !has_equal_options(node, *inner)) return false;
  context.replace(node, input);
  return true;
}

bool simplify_double_negation(SimplifyContext& context, Node& node) {
  const Node* inner = context.inner_of(node);
  if (!inner) return false;
  Node& x = inner->args()[0].node();
  const bool is_logical =
      is_unary(node) && is_unary(*inner) && operation_of(node) == "logical_not" &&
      operation_of(*inner) == "logical_not" && context.dtype_of(x) == c10::kBool;
  if (!is_logical && !(is_neg(node) && is_neg(*inner)) &&
      !(is_bitwise_not(node) && is_bitwise_not(*inner)))
    return false;
  if (!context.may_stand_for(x, node)) return false;
  context.replace(node, x);
  return true;
}

bool simplify_abs_of_neg(SimplifyContext& context, Node& node) {
  if (!is_abs(node)) return false;
  const Node* inner = context.inner_of(node);
  if (!inner || !is_neg(*inner)) return false;
  const auto type = context.dtype_of(inner->args()[0].node());
  if (!type || *type == c10::kByte ||
      !(is_integer(*type) || (is_real_floating(*type) && context.without_gradients())))
    return false;
  context.rewire(node, {inner->args()[0]});
  return true;
}

bool simplify_relu_of_abs(SimplifyContext& context, Node& node) {
  if (!is_relu(node) || !context.without_gradients()) return false;
  const Node* inner = context.inner_of(node);
  if (!inner || !is_abs(*inner)) return false;
  const auto type = context.dtype_of(inner->args()[0].node());
  if (!type || !is_real_floating(*type)) return false;
  context.retarget(node, "abs", "", {inner->args()[0]});
  return true;
}

bool simplify_abs_of_relu(SimplifyContext& context, Node& node) {
  // operator.relu is no function.
  if (!is_abs(node) || node.calls("operator.abs")) return false;
  const Node* inner = context.inner_of(node);
  if (!inner || !is_relu(*inner)) return false;
  const auto type = context.dtype_of(inner->args()[0].node());
  if (!type || !is_integer(*type)) return false;
  context.retarget(node, "relu", "", {inner->args()[0]});
  return true;
}

bool simplify_equal_operands(SimplifyContext& context, Node& node) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "and_", "bitwise_and", "bitwise_or", "fmax", "fmin", "maximum", "minimum", "or_"};
  if (node.num_args() != 2 || !node.kwargs().empty() || !contains(kNames, operation_of(node)) ||
      !(node.args()[0] == node.args()[1]))
    return false;
  Node& x = node.args()[0].node();
  const auto type = context.dtype_of(x);
  if (!type || !is_real(*type) || (is_real_floating(*type) && !context.without_gradients()) ||
      !context.may_stand_for(x, node))
    return false;
  context.replace(node, x);
  return true;
}

bool simplify_where_equal(SimplifyContext& context, Node& node) {
  // The method has its condition elsewhere.
  if (node.op() == Opcode::kCallMethod || operation_of(node) != "where" || node.num_args() != 3 ||
      !node.kwargs().empty() || !node.args()[1].is_node() || !(node.args()[1] == node.args()[2]))
    return false;
  Node& x = node.args()[1].node();
  if (!context.without_gradients() || !context.may_stand_for(x, node)) return false;
  context.replace(node, x);
  return true;
}

bool simplify_div_to_mul(SimplifyContext& context, Node& node) {
  static constexpr std::array<std::string_view, 4> kNames = {"div", "divide", "true_divide",
                                                             "truediv"};
  if (node.num_args() != 2 || !node.kwargs().empty() || !contains(kNames, operation_of(node)))
    return false;
  const Argument& by = node.args()[1];
  if (by.kind() != Argument::Kind::kInt && by.kind() != Argument::Kind::kFloat) return false;
  int exponent = 0;
  constexpr int kMaxExponent = 14;  // of half
  if (std::abs(std::frexp(by.to_double(), &exponent)) != 0.5) return false;
  exponent -= 1;
  if (exponent == 0 || std::abs(exponent) > kMaxExponent) return false;
  const auto type = context.dtype_of(node.args()[0].node());
  if (!type || !is_real_floating(*type)) return false;
  const Args args = {node.args()[0], 1.0 / by.to_double()};
  const std::string_view overload = node.op() == Opcode::kCallFunction
                                        ? node.target().function()->overload_name()
                                        : std::string_view();
  context.retarget(node, "mul", overload, args);
  return true;
}

bool simplify_cast_chain(SimplifyContext& context, Node& node) {
  const auto to = conversion_of(node);
  Node* inner = to ? context.inner_of(node) : nullptr;
  const auto between = inner ? conversion_of(*inner) : std::nullopt;
  if (!between) return false;
  Node& x = inner->args()[0].node();
  const auto from = context.dtype_of(x);
  if (!from || !is_real(*from) || !is_real(*between) || !is_real(*to) ||
      !holds_all(*between, *from))
    return false;
  // What does not fit an integer: undefined from floats, cut off from integers.
  if (is_integer(*to) && is_real_floating(*between) &&
      (is_real_floating(*from) || !holds_all(*to, *from)))
    return false;
  // Gradients come back through the same types.
  if (is_real_floating(*from) && is_real_floating(*to) && !holds_all(*between, *to) &&
      !context.without_gradients())
    return false;
  if (*to == *from && operation_of(node) != "_to_copy") {
    // The conversion would be x itself.
    if (!context.may_stand_for(x, node)) return false;
    context.replace(node, x);
    return true;
  }
  context.rewire(node, with_input(node, x));
  return true;
}

}  // namespace fx::detail
