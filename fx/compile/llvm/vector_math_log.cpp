#include <limits>

#include "fx/compile/llvm/vector_math.h"
#include "fx/compile/llvm/vector_math_parts.h"

namespace fx::loops::math {
namespace {

// In each the first has 16 bits, so that its product with e is exact, and the second is positive,
// so that the sum is infinite where e is.
constexpr double kLn2High = 0x1.62e4p-1;
constexpr double kLn2Low = 0x1.7f7d1cp-20;
constexpr double kLog10Of2High = 0x1.3441p-2;
constexpr double kLog10Of2Low = 0x1.a84fbcp-21;

// e ln 2 + log(1 + f) + small, summed from the smallest to the largest term.
Floats log_of(Floats e, Floats f, const Floats* small = nullptr) {
  const Floats low = small ? fma(e, kLn2Low, *small) : e * kLn2Low;
  return fma(e, kLn2High, fma(polynomial(f, tables::kLog), f, low) + f);
}

// What the inverse hyperbolic functions add to an argument of log1p.
struct Extra {
  Mask doubled;  // the result is that of twice the argument, which is large
  Floats low;    // what rounding of the argument lost, elsewhere
};

// log1p(x). With e that of 1 + x, rounded: 1 + x = (1 + f) 2^e for f = x 2^-e + (2^-e - 1), which
// rounds once at most and is x where e is 0.
Floats log1p_of(Floats x, const Extra* extra = nullptr) {
  Builder& b = *x.b;
  const Floats u = x + 1.0;
  const auto result = [&](Floats e, Floats f, Floats power) {
    if (!extra) return log_of(e, f);
    const Floats low = select(extra->doubled, b.number(0), extra->low * power);
    return log_of(select(extra->doubled, e + 1.0, e), f, &low);
  };
  if (b.wide()) {
    const Split s = split(u);
    const Floats power = b.scalef(b.number(1), -s.e);
    const Floats f = fma(power, x, power - 1.0);
    // NaN stays, 0 gives -infinity, infinity itself, what is negative NaN.
    return b.fix_up(result(s.e, f, power), u, 0x03530422);
  }
  const Words e = (bits(u) - 0x3f400000u) >> 23;
  const Floats m = as_floats(bits(u) - (e << 23));
  const Floats power = as_floats(b.word(0x3f800000u) - (e << 23));
  const Floats f = select(u < 0x1p60, fma(power, x, power - 1.0), m - 1.0);
  return log_special(u, result(convert(e), f, power));
}

// From here on squares lose nothing by being left out, and might overflow.
constexpr double kLarge = 0x1p28;

}  // namespace

Split split(Floats x) {
  Builder& b = *x.b;
  if (b.wide()) {
    const Floats m = b.mantissa(x);
    const Floats e = b.exponent(x);
    return {select(m < 1.0, e + 1.0, e), m};
  }
  const Mask subnormal = x < 0x1p-126;
  const Words word = bits(select(subnormal, x * 0x1p23, x));
  const Words e = (word - 0x3f400000u) >> 23;
  return {convert(e) - select(subnormal, b.number(23), b.number(0)), as_floats(word - (e << 23))};
}

// With AVX-512 it comes by itself.
Floats log_special(Floats x, Floats y) {
  Builder& b = *x.b;
  if (b.wide()) return y;
  const double infinity = std::numeric_limits<double>::infinity();
  const Floats other = select(x < 0.0, b.number(std::numeric_limits<double>::quiet_NaN()),
                              select(x == 0.0, b.number(-infinity), x));
  return select((x > 0.0) & (x < infinity), y, other);
}

Floats log(Floats x) {
  const Split s = split(x);
  return log_special(x, log_of(s.e, s.m - 1.0));
}

Floats log2(Floats x) {
  const Split s = split(x);
  const Floats f = s.m - 1.0;
  // e + f is exact where e is -1: the result, smaller than either, sees one rounding.
  return log_special(x, fma(f, polynomial(f, tables::kLog2), s.e + f));
}

// With m in [2/3, 4/3] a sum of logarithms of different signs is not much smaller than either.
Floats log10(Floats x) {
  const Split s = split(x);
  const Mask high = s.m > 4.0 / 3;
  const Floats e = select(high, s.e + 1.0, s.e);
  const Floats f = select(high, fma(s.m, 0.5, -1.0), s.m - 1.0);
  const Floats low = fma(polynomial(f, tables::kLog10), f, e * kLog10Of2Low);
  return log_special(x, fma(e, kLog10Of2High, fma(f, 0.5, low)));
}

// Its result has the sign of x, which alone remains of -0.
Floats log1p(Floats x) { return copysign(log1p_of(x), x); }

// log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))), log a + ln 2 of what is large.
Floats asinh(Floats x) {
  const Floats a = abs(x);
  const Mask large = a > kLarge;
  const Floats square = a * a;
  const Floats smaller = square / (sqrt(fma(a, a, 1.0)) + 1.0);
  const Floats p = a + smaller;
  const Extra extra{large, smaller - (p - a)};
  return copysign(log1p_of(select(large, a, p), &extra), x);
}

// log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(t (t + 2))) for t = x - 1.
Floats acosh(Floats x) {
  Builder& b = *x.b;
  const Mask large = x > kLarge;
  const Floats t = x - 1.0;
  const Floats root = sqrt(fma(t, t, t + t));
  const Floats p = t + root;
  const Extra extra{large, t - (p - root)};
  const Floats y = log1p_of(select(large, x, p), &extra);
  return select(x < 1.0, b.number(std::numeric_limits<double>::quiet_NaN()), y);
}

// log((1 + a) / (1 - a)) / 2 = log1p(2 a / (1 - a)) / 2; where that is small, so that the rounding
// of the quotient shows in full, a polynomial.
Floats atanh(Floats x) {
  const Floats a = abs(x);
  const Floats s = x * x;
  const Floats small = fma(s * x, polynomial(s, tables::kAtanh), x);
  const Floats large = copysign(log1p_of((a + a) / (1.0 - a)) * 0.5, x);
  return select(a < 0.25, small, large);
}

}  // namespace fx::loops::math
