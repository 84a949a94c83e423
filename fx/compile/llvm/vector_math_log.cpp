#include <limits>

#include "fx/compile/llvm/vector_math.h"

namespace fx::loops::math {
namespace {

// x = m 2^e with m in [3/4, 3/2), so that x near 1 has e = 0 and its logarithm no cancellation.
struct Split {
  Floats e;
  Floats m;
};

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

// What a logarithm is where x is not a positive number. With AVX-512 it comes by itself: the
// mantissa of a negative number is NaN, the exponent of zero and infinity infinite.
Floats special(Floats x, Floats y) {
  Builder& b = *x.b;
  if (b.wide()) return y;
  const double infinity = std::numeric_limits<double>::infinity();
  const Floats other = select(x < 0.0, b.number(std::numeric_limits<double>::quiet_NaN()),
                              select(x == 0.0, b.number(-infinity), x));
  return select((x > 0.0) & (x < infinity), y, other);
}

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

}  // namespace

Floats log(Floats x) {
  const Split s = split(x);
  return special(x, log_of(s.e, s.m - 1.0));
}

Floats log2(Floats x) {
  const Split s = split(x);
  const Floats f = s.m - 1.0;
  // e + f is exact where e is -1: the result, smaller than either, sees one rounding.
  return special(x, fma(f, polynomial(f, tables::kLog2), s.e + f));
}

Floats log10(Floats x) {
  const Split s = split(x);
  const Floats f = s.m - 1.0;
  const Floats low = fma(polynomial(f, tables::kLog10), f, s.e * kLog10Of2Low);
  return special(x, fma(s.e, kLog10Of2High, fma(f, 0.5, low)));
}

// With e that of 1 + x, rounded: 1 + x = (1 + f) 2^e for f = x 2^-e + (2^-e - 1), which rounds once
// at most and is x where e is 0.
Floats log1p(Floats x) {
  Builder& b = *x.b;
  const Floats u = x + 1.0;
  if (b.wide()) {
    const Split s = split(u);
    const Floats f = b.scalef(x, -s.e) + (b.scalef(b.number(1), -s.e) - 1.0);
    // NaN stays, 0 gives -infinity, infinity itself, what is negative NaN.
    const Floats y = b.fix_up(log_of(s.e, f), u, 0x03530422);
    return copysign(y, x);
  }
  const Words e = (bits(u) - 0x3f400000u) >> 23;
  const Floats m = as_floats(bits(u) - (e << 23));
  const Floats power = as_floats(b.word(0x3f800000u) - (e << 23));
  const Floats f = select(u < 0x1p60, fma(power, x, power - 1.0), m - 1.0);
  return copysign(special(u, log_of(convert(e), f)), x);
}

}  // namespace fx::loops::math
