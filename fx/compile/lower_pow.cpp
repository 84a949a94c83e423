#include <cmath>

#include "fx/compile/lower_table.h"

/// Powers. Of those with a constant exponent, eager computes some in other ways, which shows in
/// signs of zeros, infinities and rounding.
namespace fx::loops {
namespace {

/// x to the power of n > 0 by squaring; integers wrap.
Num integer_power(const Num& x, std::int64_t n) {
  std::optional<Num> product;
  Num square = x;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) product = product ? *product * square : square;
    if (n > 1) square = square * square;
  }
  return *product;
}

Num float_power(const Num& x, double exponent, c10::ScalarType type) {
  // The root of -0 is -0 and that of -inf is NaN; of half, it is a power like others.
  const bool rooted = type != c10::ScalarType::Half;
  if (exponent == 0.5 && rooted) return sqrt(x);
  if (exponent == -0.5 && rooted) return 1.0 / sqrt(x);
  if (exponent == 2) return x * x;
  if (exponent == 3) {
    const bool rounds = type == c10::ScalarType::BFloat16;
    return (rounds ? (x * x).rounded(type) : x * x) * x;
  }
  if (exponent == 4) return integer_power(x, 4);
  if (exponent == -1) return 1.0 / x;
  if (exponent == -2) return 1.0 / (x * x);
  return x.apply(Op::kPow, x.number(exponent).rounded(type));
}

Tensors power(const Call& call, const Operand& base, const c10::Scalar& exponent) {
  const Operand number{.number = exponent, .type = exponent.type(), .wrapped = true};
  const c10::ScalarType type = call.result_type({base, number});
  const Num x = call.read(base, type);
  if (is_bool(type)) call.unsupported("pow of bools");
  if (is_floating(type)) {
    if (exponent.toDouble() == 0) return {call.number(type, 1).expand(x.tensor().dims).tensor()};
    if (exponent.toDouble() == 1) return result(x, type);
    return result(float_power(x, exponent.toDouble(), type), type);
  }
  const std::int64_t n = exponent.toLong();
  if (n < 0) call.unsupported("a negative power of integers");
  if (n == 0) return {call.number(type, 1).expand(x.tensor().dims).tensor()};
  return result(integer_power(x, n), type);
}

}  // namespace

Tensors lower_pow_scalar(const Call& call) {
  const Operand base = call.operand("self");
  const c10::Scalar exponent = call.scalar("exponent");
  const Operand number{.number = exponent, .type = exponent.type(), .wrapped = true};
  // A float as the power of integers becomes a tensor, which may hold anything.
  if (is_floating(base.type) || !is_floating(number.type))
    call.checked_number("exponent", call.result_type({base, number}));
  return power(call, base, exponent);
}

Tensors lower_square(const Call& call) { return power(call, call.operand("self"), 2); }

Tensors lower_pow(const Call& call) {
  const Operand base = call.operand("self");
  const Operand exponent = call.operand("exponent");
  const c10::ScalarType type = call.result_type({base, exponent});
  if (!is_floating(type)) call.unsupported("pow of integers");
  const Num y = call.read(exponent, type);
  if (!base.tensor && base.wrapped && base.number.toDouble() == 2)
    return result(y.apply(Op::kExp2), type);
  return result(call.read(base, type).apply(Op::kPow, y), type);
}

}  // namespace fx::loops
