#include "fx/compile/llvm/vector_math.h"

namespace fx::loops::math {
namespace {

// Adding it rounds a number below 2^22 to an integer, which then stands in the low bits of the sum.
constexpr double kMagic = 0x1.8p23;

// x = n ln 2 + r with |r| <= ln 2 / 2. Cody and Waite, "Software Manual for the Elementary
// Functions": ln 2 is the sum of two floats. n times the first is subtracted without an error,
// since fma rounds only the difference, which has fewer bits than x.
struct Reduced {
  Words word;  // n in the low bits
  Floats n;
  Floats r;
};

// With a bias, which is 0 or below, r is in (-1/2 - bias, 1/2 - bias) ln 2.
Reduced reduce(Floats x, double bias = 0.0) {
  constexpr double kInverse = 0x1.715476p+0;
  const Floats sum = bias == 0.0 ? fma(x, kInverse, kMagic) : fma(x, kInverse, bias) + kMagic;
  const Floats n = sum - kMagic;
  const Floats r = fma(n, -0x1.62e43p-1, x);
  return {bits(sum), n, fma(n, 0x1.05c61p-29, r)};
}

// x * 2^n for x in [0.5, 2) and n in [-150, 128], rounded once. `word` has n in its low bits.
Floats scale(Floats x, Floats n, Words word) {
  if (x.b->wide()) return x.b->scalef(x, n);
  // 2^n may be out of range, 2^(n-64) or 2^(n+64) is not.
  const Mask down = negative(bits(n));
  const Words exponent =
      (word << 23) + select(down, x.b->word((127u + 64u) << 23), x.b->word((127u - 64u) << 23));
  return x * as_floats(exponent) * select(down, x.b->number(0x1p-64), x.b->number(0x1p64));
}

}  // namespace

// e^x = 2^n e^r. Arguments are cut off where the result is 0 or infinity anyway.
Floats exp(Floats x) {
  const Reduced p = reduce(at_least(at_most(x, 89.0), -104.5));
  return scale(polynomial(p.r, tables::kExp), p.n, p.word);
}

Floats exp2(Floats x) {
  x = at_least(at_most(x, 128.5), -150.5);
  const Floats sum = x + kMagic;
  const Floats n = sum - kMagic;
  return scale(polynomial(x - n, tables::kExp2), n, bits(sum));
}

// e^x - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)): n is 128 where the result is next to overflow,
// and -26 where it rounds to -1. n is 0 for e^x from 3/4 to 3/2: beyond, the result of the
// subtraction is no smaller than what is subtracted, and does not magnify its rounding.
Floats expm1(Floats x) {
  constexpr double kBias = -0.0849625;  // 1/2 - log2(3/2)
  const Reduced p = reduce(at_least(at_most(x, 89.0), -17.5), kBias);
  const Floats q = fma(p.r * p.r, polynomial(p.r, tables::kExpm1), p.r);
  const Floats half_power = as_floats((p.word << 23) + (126u << 23));
  const Floats half = fma(half_power, q, half_power - 0.5);
  return select(abs(x) < 0x1p-25, x, half + half);
}

}  // namespace fx::loops::math
