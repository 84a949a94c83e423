#include <limits>

#include "fx/compile/lower_table.h"

/// Functions of two tensors, or a tensor and a number, element by element.
namespace fx::loops {
namespace {

/// Two operands in the type that eager computes in.
struct Pair {
  c10::ScalarType type;
  Num a;
  Num b;
};

enum class Integers : std::uint8_t { kKeep, kToFloat, kRefuse };

Pair read_pair(const Call& call, const char* first, const char* second, Integers integers,
               Precision precision = Precision::kRounded) {
  const Operand a = call.operand(first);
  const Operand b = call.operand(second);
  c10::ScalarType type = call.result_type({a, b});
  if (!is_floating(type) && integers == Integers::kToFloat) type = float_type(type);
  if (!is_floating(type) && integers == Integers::kRefuse) call.unsupported("not of floats");
  return {type, call.read(a, type), call.read(b, type, precision)};
}

template <typename F>
Tensors binary(const Call& call, Integers integers, F f) {
  const Pair pair = read_pair(call, "self", "other", integers);
  return result(f(pair.a, pair.b), pair.type);
}

Num alpha(const Call& call, c10::ScalarType type) {
  const Operand value = call.operand("alpha");
  if (value.type == c10::ScalarType::Bool && !is_bool(type)) call.unsupported("alpha is a bool");
  if (!is_floating(type) && is_floating(value.type)) call.unsupported("alpha is a float");
  return call.checked_number("alpha", type);
}

bool is_one(const Call& call, const char* argument) {
  const Operand value = call.operand(argument);
  return !value.tensor && !value.number.isBoolean() && value.number.toDouble() == 1.0;
}

void refuse_bools(const Call& call) {
  if (is_bool(call.operand("self").type) || is_bool(call.operand("other").type))
    call.unsupported("subtraction of bools");
}

/// a + sign * alpha * b.
Tensors add_scaled(const Call& call, const Pair& pair, int sign) {
  if (is_bool(pair.type)) {
    const Operand factor = call.operand("alpha");
    if (is_floating(factor.type)) call.unsupported("alpha is a float");
    return {(pair.a | (pair.b & call.read(factor, pair.type))).tensor()};
  }
  if (is_one(call, "alpha")) return result(sign > 0 ? pair.a + pair.b : pair.a - pair.b, pair.type);
  const Num factor = sign > 0 ? alpha(call, pair.type) : -alpha(call, pair.type);
  const Num sum = is_floating(pair.type) ? fma(factor, pair.b, pair.a) : pair.a + factor * pair.b;
  return result(sum, pair.type);
}

/// Float division that rounds down, as Python's: by the remainder, which is exact. Where the
/// quotient overflows, Sleef has none.
Num floor_divide(const Num& a, const Num& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Num rest = a.apply(Op::kFmod, b);
  const Num plain = a / b;
  const Num overflows = (abs(plain) == kInfinity) & (abs(a) != kInfinity);
  const Num quotient = select(overflows, a, a - rest) / b;
  const Num down = (rest != 0.0) & ((b < 0.0) ^ (rest < 0.0));
  const Num exact = select(down, quotient - 1.0, quotient);
  const Num floored = floor(exact);
  const Num nearest = select(exact - floored > 0.5, floored + 1.0, floored);
  const Num signed_zero = a.number(0.0).apply(Op::kCopysign, plain);
  return select(b == 0.0, plain, select(exact == 0.0, signed_zero, nearest));
}

Tensors divide_down(const Call& call) {
  const Pair pair = read_pair(call, "self", "other", Integers::kKeep, Precision::kOpmath);
  if (is_bool(pair.type)) call.unsupported("floor division of bools");
  if (is_floating(pair.type)) return result(floor_divide(pair.a, pair.b), pair.type);
  return result(pair.a.apply(Op::kFloorDiv, pair.b.apply(Op::kDivisor)), pair.type);
}

Tensors divide_towards_zero(const Call& call) {
  const Pair pair = read_pair(call, "self", "other", Integers::kKeep, Precision::kOpmath);
  if (is_bool(pair.type)) call.unsupported("division of bools");
  if (is_floating(pair.type)) return result(trunc(pair.a / pair.b), pair.type);
  return result(pair.a.apply(Op::kTruncDiv, pair.b.apply(Op::kDivisor)), pair.type);
}

/// a * f(b), rounded in between too; 0 where a is 0.
template <typename F>
Tensors x_times_log(const Call& call, F f) {
  const Pair pair = read_pair(call, "self", "other", Integers::kToFloat);
  const Num product = pair.a * f(pair.b).rounded(pair.type);
  return result(select(is_nan(pair.b), pair.b, select(pair.a == 0.0, 0.0, product)), pair.type);
}

Tensors bits(const Call& call, Op op) {
  const Pair pair = read_pair(call, "self", "other", Integers::kKeep);
  if (is_floating(pair.type)) call.unsupported("bits of floats");
  return result(pair.a.apply(op, pair.b), pair.type);
}

Tensors shift(const Call& call, Op op) {
  const Pair pair = read_pair(call, "self", "other", Integers::kKeep);
  if (!is_integral(pair.type)) call.unsupported("a shift of what is no integer");
  return result(pair.a.apply(op, pair.b), pair.type);
}

Tensors logical(const Call& call, Op op) {
  const Pair pair = read_pair(call, "self", "other", Integers::kKeep);
  const auto truth = [](const Num& x) { return x.cast(c10::ScalarType::Bool); };
  return {truth(pair.a).apply(op, truth(pair.b)).tensor()};
}

}  // namespace

Tensors lower_add(const Call& call) {
  return add_scaled(call, read_pair(call, "self", "other", Integers::kKeep), 1);
}

Tensors lower_sub(const Call& call) {
  refuse_bools(call);
  return add_scaled(call, read_pair(call, "self", "other", Integers::kKeep), -1);
}

Tensors lower_rsub(const Call& call) {
  refuse_bools(call);
  return add_scaled(call, read_pair(call, "other", "self", Integers::kKeep), -1);
}

Tensors lower_mul(const Call& call) {
  const Pair pair = read_pair(call, "self", "other", Integers::kKeep, Precision::kOpmath);
  if (is_bool(pair.type)) return {(pair.a & pair.b).tensor()};
  return result(pair.a * pair.b, pair.type);
}

Tensors lower_div(const Call& call) {
  const Pair pair = read_pair(call, "self", "other", Integers::kToFloat, Precision::kOpmath);
  return result(pair.a / pair.b, pair.type);
}

Tensors lower_div_mode(const Call& call) {
  if (!call.has("rounding_mode")) return lower_div(call);
  const std::string mode = call.text("rounding_mode");
  if (mode == "trunc") return divide_towards_zero(call);
  if (mode == "floor") return divide_down(call);
  call.unsupported("rounding_mode " + mode);
}

Tensors lower_floor_divide(const Call& call) { return divide_down(call); }

Tensors lower_remainder(const Call& call) {
  return binary(call, Integers::kKeep, [&](const Num& a, const Num& b) {
    if (is_bool(a.type())) call.unsupported("remainder of bools");
    if (!is_floating(a.type())) return a.apply(Op::kFloorRem, b.apply(Op::kDivisor));
    const Num rest = a.apply(Op::kFmod, b);
    return select((rest != 0.0) & ((b < 0.0) ^ (rest < 0.0)), rest + b, rest);
  });
}

Tensors lower_fmod(const Call& call) {
  return binary(call, Integers::kKeep, [&](const Num& a, const Num& b) {
    if (is_bool(a.type())) call.unsupported("fmod of bools");
    if (!is_floating(a.type())) return a.apply(Op::kTruncRem, b.apply(Op::kDivisor));
    return a.apply(Op::kFmod, b);
  });
}

Tensors lower_atan2(const Call& call) {
  return binary(call, Integers::kToFloat,
                [](const Num& a, const Num& b) { return a.apply(Op::kAtan2, b); });
}

Tensors lower_copysign(const Call& call) {
  return binary(call, Integers::kToFloat,
                [](const Num& a, const Num& b) { return a.apply(Op::kCopysign, b); });
}

Tensors lower_hypot(const Call& call) {
  return binary(call, Integers::kRefuse,
                [](const Num& a, const Num& b) { return a.apply(Op::kHypot, b); });
}

Tensors lower_maximum(const Call& call) {
  return binary(call, Integers::kKeep, [](const Num& a, const Num& b) { return maximum(a, b); });
}

Tensors lower_minimum(const Call& call) {
  return binary(call, Integers::kKeep, [](const Num& a, const Num& b) { return minimum(a, b); });
}

Tensors lower_fmax(const Call& call) {
  return binary(call, Integers::kKeep,
                [](const Num& a, const Num& b) { return a.apply(Op::kFmax, b); });
}

Tensors lower_fmin(const Call& call) {
  return binary(call, Integers::kKeep,
                [](const Num& a, const Num& b) { return a.apply(Op::kFmin, b); });
}

Tensors lower_xlogy(const Call& call) {
  return x_times_log(call, [](const Num& b) { return log(b); });
}

Tensors lower_xlog1py(const Call& call) {
  return x_times_log(call, [](const Num& b) { return log1p(b); });
}

Tensors lower_logaddexp(const Call& call) {
  return binary(call, Integers::kRefuse, [](const Num& a, const Num& b) {
    const Num difference = a - b;
    const Num sum = maximum(a, b) + log1p(exp(-abs(difference)));
    // Two infinities of one sign have no difference.
    return select((a == b) & (difference != 0.0), a, sum);
  });
}

Tensors lower_logaddexp2(const Call& call) {
  return binary(call, Integers::kRefuse, [](const Num& a, const Num& b) {
    const Num difference = a - b;
    const Num power = (-abs(difference)).apply(Op::kExp2);
    const Num sum = fma(log1p(power), a.number(1.4426950408889634), maximum(a, b));
    return select((a == b) & (difference != 0.0), a, sum);
  });
}

Tensors lower_heaviside(const Call& call) {
  const Operand x = call.operand("self");
  const Operand values = call.operand("values");
  if (x.type != values.type) call.unsupported("values of another dtype");
  const Num a = call.read(x, x.type);
  const Num b = call.read(values, x.type);
  return result(select(a == 0, b, select(a > 0, a.number(1), a.number(0))), x.type);
}

Tensors lower_bitwise_and(const Call& call) { return bits(call, Op::kBitAnd); }
Tensors lower_bitwise_or(const Call& call) { return bits(call, Op::kBitOr); }
Tensors lower_bitwise_xor(const Call& call) { return bits(call, Op::kBitXor); }
Tensors lower_left_shift(const Call& call) { return shift(call, Op::kShl); }
Tensors lower_right_shift(const Call& call) { return shift(call, Op::kShr); }
Tensors lower_logical_and(const Call& call) { return logical(call, Op::kBitAnd); }
Tensors lower_logical_or(const Call& call) { return logical(call, Op::kBitOr); }
Tensors lower_logical_xor(const Call& call) { return logical(call, Op::kBitXor); }

}  // namespace fx::loops
