#include "fx/compile/llvm/vector_math.h"
#include "fx/compile/llvm/vector_math_parts.h"

namespace fx::loops::math {
namespace {

// Adding it rounds a number below 2^22 to an integer, which then stands in the low bits of the sum.
constexpr double kMagic = 0x1.8p23;

// 2^(n + shift), which must be a normal number.
Floats power_of_two(Words word, std::uint32_t shift) {
  return as_floats((word << 23) + ((127u + shift) << 23));
}

// cosh x and sinh x of x >= 0: with x = n ln 2 + r, cosh r = 1 + c, sinh r = S, and half of
// P = 2^n + 2^-n, M = 2^n - 2^-n, they are P + (c P + S M) and M + (c M + S P). M is 0 where n is,
// so that small numbers keep their accuracy; n is 0 for all x with sinh x < 1/2, so that elsewhere
// the sums do not magnify the rounding of their terms. Powers are halved once more, since n is 129
// next to overflow.
struct Hyperbolic {
  Floats cosh_less_one;
  Floats sinh;
  Floats up;    // 2^(n-2)
  Floats down;  // 2^(-n-2)
  Floats plus;
  Floats minus;
};

Hyperbolic hyperbolic(Floats a) {
  constexpr double kBias = -0.1942419;  // 1/2 - asinh(1/2) / ln 2
  const ExpReduced p = reduce_exp(at_most(a, 89.5), kBias);
  const Floats s = p.r * p.r;
  const Floats up = power_of_two(p.word, 0u - 2u);
  // Where n is large it makes no difference, and its bits are those of another number.
  const Floats down =
      select(a < 64.0, as_floats(a.b->word(125u << 23) - (p.word << 23)), a.b->number(0));
  return {s * polynomial(s, tables::kCosh),
          fma(s * p.r, polynomial(s, tables::kSinh), p.r),
          up,
          down,
          up + down,
          up - down};
}

}  // namespace

// Cody and Waite, "Software Manual for the Elementary Functions": ln 2 is the sum of two floats. n
// times the first is subtracted without an error, since fma rounds only the difference, which has
// fewer bits than x.
ExpReduced reduce_exp(Floats x, double bias) {
  constexpr double kInverse = 0x1.715476p+0;
  const Floats sum = bias == 0.0 ? fma(x, kInverse, kMagic) : fma(x, kInverse, bias) + kMagic;
  const Floats n = sum - kMagic;
  const Floats r = fma(n, -0x1.62e43p-1, x);
  return {bits(sum), n, fma(n, 0x1.05c61p-29, r)};
}

Floats expm1_near(Floats r) { return fma(r * r, polynomial(r, tables::kExpm1), r); }

Floats scale(Floats x, Floats n, Words word) {
  if (x.b->wide()) return x.b->scalef(x, n);
  // 2^n may be out of range, 2^(n-64) or 2^(n+64) is not.
  const Mask down = negative(bits(n));
  const Words exponent =
      (word << 23) + select(down, x.b->word((127u + 64u) << 23), x.b->word((127u - 64u) << 23));
  return x * as_floats(exponent) * select(down, x.b->number(0x1p-64), x.b->number(0x1p64));
}

// e^x = 2^n e^r. Arguments are cut off where the result is 0 or infinity anyway.
Floats exp(Floats x) {
  const ExpReduced p = reduce_exp(at_least(at_most(x, 89.0), -104.5));
  return scale(polynomial(p.r, tables::kExp), p.n, p.word);
}

Floats exp2(Floats x) {
  x = at_least(at_most(x, 128.5), -150.5);
  const Floats sum = x + kMagic;
  const Floats n = sum - kMagic;
  return scale(polynomial(x - n, tables::kExp2), n, bits(sum));
}

// e^x - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)): n is 128 where the result is next to overflow,
// and -26 where it rounds to -1. Where n is not 0 the result is no smaller than what is
// subtracted, and does not magnify its rounding.
Floats expm1(Floats x) {
  const ExpReduced p = reduce_exp(at_least(at_most(x, 89.0), -17.5), kExpm1Bias);
  const Floats half_power = power_of_two(p.word, 0u - 1u);
  const Floats half = fma(half_power, expm1_near(p.r), half_power - 0.5);
  return select(abs(x) < 0x1p-25, x, half + half);
}

Floats sinh(Floats x) {
  const Floats a = abs(x);
  const Hyperbolic h = hyperbolic(a);
  const Floats half = h.minus + fma(h.sinh, h.plus, h.cosh_less_one * h.minus);
  return select(a < 0x1p-13, x, copysign(half + half, x));
}

Floats cosh(Floats x) {
  const Hyperbolic h = hyperbolic(abs(x));
  const Floats half = h.up + (h.down + fma(h.sinh, h.minus, h.cosh_less_one * h.plus));
  return half + half;
}

}  // namespace fx::loops::math
