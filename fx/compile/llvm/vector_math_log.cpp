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

// e ln 2 + log(1 + f), summed from the smallest to the largest term.
Floats log_of(Floats e, Floats f) {
  return fma(e, kLn2High, fma(polynomial(f, tables::kLog), f, e * kLn2Low) + f);
}

// log1p(x) + extra ln 2. With e that of 1 + x, rounded: 1 + x = (1 + f) 2^e for
// f = x 2^-e + (2^-e - 1), which rounds once at most and is x where e is 0.
Floats log1p_of(Floats x, Floats extra) {
  Builder& b = *x.b;
  const Floats u = x + 1.0;
  if (b.wide()) {
    const Split s = split(u);
    const Floats f = b.scalef(x, -s.e) + (b.scalef(b.number(1), -s.e) - 1.0);
    // NaN stays, 0 gives -infinity, infinity itself, what is negative NaN.
    return b.fix_up(log_of(s.e + extra, f), u, 0x03530422);
  }
  const Words e = (bits(u) - 0x3f400000u) >> 23;
  const Floats m = as_floats(bits(u) - (e << 23));
  const Floats power = as_floats(b.word(0x3f800000u) - (e << 23));
  const Floats f = select(u < 0x1p60, fma(power, x, power - 1.0), m - 1.0);
  return log_special(u, log_of(convert(e) + extra, f));
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

Floats log10(Floats x) {
  const Split s = split(x);
  const Floats f = s.m - 1.0;
  const Floats low = fma(polynomial(f, tables::kLog10), f, s.e * kLog10Of2Low);
  return log_special(x, fma(s.e, kLog10Of2High, fma(f, 0.5, low)));
}

// Its result has the sign of x, which alone remains of -0.
Floats log1p(Floats x) { return copysign(log1p_of(x, x.b->number(0)), x); }

// log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))), log a + ln 2 of what is large.
Floats asinh(Floats x) {
  Builder& b = *x.b;
  const Floats a = abs(x);
  const Mask large = a > kLarge;
  const Floats square = a * a;
  const Floats p = a + square / (sqrt(fma(a, a, 1.0)) + 1.0);
  return copysign(log1p_of(select(large, a, p), select(large, b.number(1), b.number(0))), x);
}

// log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(t (t + 2))) for t = x - 1.
Floats acosh(Floats x) {
  Builder& b = *x.b;
  const Mask large = x > kLarge;
  const Floats t = x - 1.0;
  const Floats p = t + sqrt(fma(t, t, t + t));
  const Floats y = log1p_of(select(large, x, p), select(large, b.number(1), b.number(0)));
  return select(x < 1.0, b.number(std::numeric_limits<double>::quiet_NaN()), y);
}

// log((1 + a) / (1 - a)) / 2 = log1p(2 a / (1 - a)) / 2.
Floats atanh(Floats x) {
  const Floats a = abs(x);
  return copysign(log1p_of((a + a) / (1.0 - a), x.b->number(0)) * 0.5, x);
}

}  // namespace fx::loops::math
