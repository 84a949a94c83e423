#include <cmath>
#include <limits>

#include "fx/compile/lower_table.h"

/// Functions of one tensor, element by element.
namespace fx::loops {
namespace {

/// Of a float function: computed in opmath, integers as the default dtype.
template <typename F>
Tensors float_function(const Call& call, F f) {
  const c10::ScalarType type = float_type(call.tensor("self").type());
  return result(f(call.read_float("self")), type);
}

/// Of functions that are not there for integers.
template <typename F>
Tensors float_only(const Call& call, F f) {
  if (!is_floating(call.tensor("self").type())) call.unsupported("not of floats");
  return float_function(call, f);
}

/// The same for all elements, of the sizes of `x`.
Tensors filled(const Num& x, const Num& value) { return {value.expand(x.tensor().dims).tensor()}; }

/// Rounding to integers: integers are what they are.
template <typename F>
Tensors rounding(const Call& call, F f) {
  const Num x = call.tensor("self");
  if (is_bool(x.type())) call.unsupported("not of bools");
  if (is_integral(x.type())) return {x.tensor()};
  return float_function(call, f);
}

/// A question about floats that is answered `otherwise` for all integers.
template <typename F>
Tensors predicate(const Call& call, bool otherwise, F f) {
  const Num x = call.tensor("self");
  if (!is_floating(x.type())) return filled(x, call.number(c10::ScalarType::Bool, otherwise));
  return {f(call.read_float("self")).tensor()};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double largest(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Half:
      return std::numeric_limits<c10::Half>::max();
    case c10::ScalarType::BFloat16:
      return std::numeric_limits<c10::BFloat16>::max();
    case c10::ScalarType::Float:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

#define FX_LOWER_FUNCTION(name, op)                                        \
  Tensors lower_##name(const Call& call) {                                 \
    return float_function(call, [](const Num& x) { return x.apply(op); }); \
  }
FX_LOWER_FUNCTION(acos, Op::kAcos)
FX_LOWER_FUNCTION(acosh, Op::kAcosh)
FX_LOWER_FUNCTION(asin, Op::kAsin)
FX_LOWER_FUNCTION(asinh, Op::kAsinh)
FX_LOWER_FUNCTION(atan, Op::kAtan)
FX_LOWER_FUNCTION(atanh, Op::kAtanh)
FX_LOWER_FUNCTION(cos, Op::kCos)
FX_LOWER_FUNCTION(cosh, Op::kCosh)
FX_LOWER_FUNCTION(erf, Op::kErf)
FX_LOWER_FUNCTION(erfc, Op::kErfc)
FX_LOWER_FUNCTION(exp, Op::kExp)
FX_LOWER_FUNCTION(exp2, Op::kExp2)
FX_LOWER_FUNCTION(expm1, Op::kExpm1)
FX_LOWER_FUNCTION(lgamma, Op::kLgamma)
FX_LOWER_FUNCTION(log, Op::kLog)
FX_LOWER_FUNCTION(log10, Op::kLog10)
FX_LOWER_FUNCTION(log1p, Op::kLog1p)
FX_LOWER_FUNCTION(log2, Op::kLog2)
FX_LOWER_FUNCTION(sin, Op::kSin)
FX_LOWER_FUNCTION(sinh, Op::kSinh)
FX_LOWER_FUNCTION(sqrt, Op::kSqrt)
FX_LOWER_FUNCTION(tan, Op::kTan)
FX_LOWER_FUNCTION(tanh, Op::kTanh)
#undef FX_LOWER_FUNCTION

Tensors lower_rsqrt(const Call& call) {
  return float_function(call, [](const Num& x) { return 1.0 / sqrt(x); });
}

Tensors lower_reciprocal(const Call& call) {
  return float_function(call, [](const Num& x) { return 1.0 / x; });
}

Tensors lower_sigmoid(const Call& call) {
  return float_function(call, [](const Num& x) { return 1.0 / (1.0 + exp(-x)); });
}

Tensors lower_logit(const Call& call) {
  const c10::ScalarType type = float_type(call.tensor("self").type());
  // Eager rounds each step.
  const auto inverse = [&](const Num& z) {
    return log((z / (1.0 - z).rounded(type)).rounded(type));
  };
  return float_function(call, [&](const Num& x) {
    if (!call.has("eps")) return inverse(x);
    const Num low = call.checked_number("eps", type);
    // In eager's order, which shows where the bounds are crossed (eps > 0.5).
    return inverse(select(x < low, low, at_most(x, (1.0 - low).rounded(type))));
  });
}

Tensors lower_rad2deg(const Call& call) {
  return float_function(call, [](const Num& x) { return x * (180.0 / M_PI); });
}

Tensors lower_deg2rad(const Call& call) {
  return float_function(call, [](const Num& x) { return x * (M_PI / 180.0); });
}

Tensors lower_identity(const Call& call) { return {call.tensor("self").tensor()}; }

Tensors lower_positive(const Call& call) {
  if (is_bool(call.tensor("self").type())) call.unsupported("positive of bools");
  return lower_identity(call);
}

Tensors lower_neg(const Call& call) {
  const Num x = call.tensor("self");
  if (is_bool(x.type())) call.unsupported("neg of bools");
  return result(-x.cast(opmath(x.type())), x.type());
}

Tensors lower_abs(const Call& call) {
  const Num x = call.tensor("self");
  if (is_bool(x.type())) call.unsupported("abs of bools");
  if (x.type() == c10::ScalarType::Byte) return {x.tensor()};
  return result(abs(x.cast(opmath(x.type()))), x.type());
}

Tensors lower_sign(const Call& call) {
  const Num x = call.tensor("self");
  if (is_bool(x.type())) return {x.tensor()};
  const Num value = x.cast(opmath(x.type()));
  const Num positive = select(value > 0, value.number(1), value.number(0));
  if (x.type() == c10::ScalarType::Byte) return result(positive, x.type());
  return result(select(value < 0, value.number(-1), positive), x.type());
}

Tensors lower_floor(const Call& call) {
  return rounding(call, [](const Num& x) { return floor(x); });
}

Tensors lower_ceil(const Call& call) {
  return rounding(call, [](const Num& x) { return x.apply(Op::kCeil); });
}

Tensors lower_trunc(const Call& call) {
  return rounding(call, [](const Num& x) { return trunc(x); });
}

Tensors lower_round(const Call& call) {
  return rounding(call, [](const Num& x) { return x.apply(Op::kNearbyInt); });
}

Tensors lower_round_decimals(const Call& call) {
  const std::int64_t decimals = call.integer("decimals");
  const c10::ScalarType type = call.tensor("self").type();
  if (decimals == 0) return float_only(call, [](const Num& x) { return x.apply(Op::kNearbyInt); });
  return float_only(call, [&](const Num& x) {
    const double power = std::pow(10.0, static_cast<double>(std::abs(decimals)));
    const Num scale = call.number(type, power).cast(x.type());
    const Num scaled = (decimals < 0 ? x / scale : x * scale).apply(Op::kNearbyInt);
    return decimals < 0 ? scaled * scale : scaled / scale;
  });
}

Tensors lower_frac(const Call& call) {
  return float_only(call, [](const Num& x) { return x - trunc(x); });
}

Tensors lower_isnan(const Call& call) {
  return predicate(call, false, [](const Num& x) { return is_nan(x); });
}

Tensors lower_isinf(const Call& call) {
  return predicate(call, false, [](const Num& x) { return abs(x) == kInfinity; });
}

Tensors lower_isfinite(const Call& call) {
  return predicate(call, true, [](const Num& x) { return abs(x) < kInfinity; });
}

Tensors lower_isposinf(const Call& call) {
  return predicate(call, false, [](const Num& x) { return x == kInfinity; });
}

Tensors lower_isneginf(const Call& call) {
  return predicate(call, false, [](const Num& x) { return x == -kInfinity; });
}

Tensors lower_signbit(const Call& call) {
  const Num x = call.tensor("self");
  if (is_integral(x.type()) && x.type() != c10::ScalarType::Byte) return {(x < 0).tensor()};
  return predicate(call, false,
                   [](const Num& z) { return z.number(1.0).apply(Op::kCopysign, z) < 0.0; });
}

Tensors lower_logical_not(const Call& call) {
  return {(~call.tensor("self").cast(c10::ScalarType::Bool)).tensor()};
}

Tensors lower_bitwise_not(const Call& call) {
  const Num x = call.tensor("self");
  if (is_floating(x.type())) call.unsupported("bitwise_not of floats");
  return {(~x).tensor()};
}

Tensors lower_nan_to_num(const Call& call) {
  const Num x = call.tensor("self");
  const c10::ScalarType type = x.type();
  if (!is_floating(type)) return {x.tensor()};
  const auto value = [&](const char* argument, double otherwise) {
    return call.number(type, call.real(argument, otherwise)).cast(opmath(type));
  };
  const Num wide = x.cast(opmath(type));
  const Num finite = select(wide == kInfinity, value("posinf", largest(type)),
                            select(wide == -kInfinity, value("neginf", -largest(type)), wide));
  return result(select(is_nan(wide), value("nan", 0.0), finite), type);
}

}  // namespace fx::loops
