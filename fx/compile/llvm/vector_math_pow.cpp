#include <limits>

#include "fx/compile/llvm/vector_math.h"
#include "fx/compile/llvm/vector_math_parts.h"

namespace fx::loops::math {

// |x|^y = 2^(y log2|x|). The error of the exponent is that of the result, up to 150 times larger
// than the exponent's relative one: logarithm and product are computed in float64, 2^r of the
// rest in float32. Zeros and infinities of x come out by log2 0 = -infinity and its like.
Floats pow(Floats x, Floats y) {
  Builder& b = *x.b;
  Builder d = b.doubles();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Floats a = abs(x);
  const Split s = split(a);
  const Floats f = d.widen(s.m) - 1.0;
  const Floats logarithm = fma(f, polynomial(f, tables::kPow), d.widen(log_special(a, s.e)));
  const Floats t = at_least(at_most(d.widen(y) * logarithm, 128.5), -150.5);
  constexpr double kMagic = 0x1.8p52;
  const Floats n = (t + kMagic) - kMagic;
  const Floats n_float = b.narrow(n);
  const Words word = bits(n_float + 0x1.8p23);
  Floats power = scale(polynomial(b.narrow(t - n), tables::kExp2), n_float, word);
  // Of 1, also to the power of NaN and infinity; and what has the power 0.
  power = select((a == 1.0) & (abs(y) == infinity), b.number(1), power);
  power = select((x == 1.0) | (y == 0.0), b.number(1), power);
  // Negative numbers have integral powers only, odd ones of which are negative.
  const Mask integral = round(y) == y;
  const Floats half = y * 0.5;
  const Mask odd = integral & (round(half) != half);
  power = select(odd, copysign(power, x), power);
  const Mask without = (x < 0.0) & (x > -infinity) & (round(y) != y);
  return select(without, b.number(std::numeric_limits<double>::quiet_NaN()), power);
}

}  // namespace fx::loops::math
