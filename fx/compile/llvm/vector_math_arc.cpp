#include <limits>

#include "fx/compile/llvm/vector_math.h"

namespace fx::loops::math {
namespace {

// pi and pi/2 as the sums of two floats.
constexpr double kPi = 0x1.921fb6p+1;
constexpr double kPiLow = -0x1.777a5cp-24;

// asin z = z + z^3 P(z^2) for |z| <= 1/2; beyond, asin a = pi/2 - 2 asin(sqrt((1 - a) / 2)), where
// 1 - a is exact.
struct ArcSine {
  Mask beyond;
  Floats z;
  Floats rest;  // asin z - z
};

ArcSine arc_sine(Floats a) {
  const Mask beyond = a > 0.5;
  const Floats half = fma(a, -0.5, 0.5);
  const Floats s = select(beyond, half, a * a);
  const Floats z = select(beyond, sqrt(half), a);
  return {beyond, z, s * z * polynomial(s, tables::kAsin)};
}

}  // namespace

Floats asin(Floats x) {
  const ArcSine p = arc_sine(abs(x));
  const Floats turned = fma(p.z + (p.rest - kPiLow / 4), -2.0, kPi / 2);
  return copysign(select(p.beyond, turned, p.z + p.rest), x);
}

// acos x = pi/2 - asin x = 2 asin(sqrt((1 - x) / 2)), acos(-x) = pi - acos x.
Floats acos(Floats x) {
  Builder& b = *x.b;
  const ArcSine p = arc_sine(abs(x));
  const Floats inner = b.number(kPi / 2) - (copysign(p.z, x) + (copysign(p.rest, x) - kPiLow / 2));
  const Floats right = p.z + p.rest;
  const Floats left = fma(p.z + (p.rest - kPiLow / 2), -2.0, kPi);
  return select(p.beyond, select(x < 0.0, left, right + right), inner);
}

// The larger of |y| and |x| divides the smaller: z is in [0, 1], and atan z is turned by pi/2 and
// pi as the quadrant says.
Floats atan2(Floats y, Floats x) {
  Builder& b = *x.b;
  const Floats ax = abs(x);
  const Floats ay = abs(y);
  const Mask steep = ax < ay;
  const Floats divisor = select(steep, ay, ax);
  const Floats dividend = select(steep, ax, ay);
  // 0 / 0 is 0, infinity / infinity is 1.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Floats z = dividend / divisor;
  z = select((divisor == 0.0) & (dividend == 0.0), b.number(0), z);
  z = select((dividend == infinity) & (divisor == infinity), b.number(1), z);
  const Floats s = z * z;
  const Floats rest = s * z * polynomial(s, tables::kAtan);
  // From [0, pi/4] to [0, pi/2], then to [0, pi].
  const Mask left = negative(bits(x));
  const Floats flat = z + rest;
  const Floats flat_left = b.number(kPi) - (z + (rest - kPiLow));
  const Floats up = b.number(kPi / 2) - (z + (rest - kPiLow / 2));
  const Floats up_left = (z + (rest + kPiLow / 2)) + kPi / 2;
  return copysign(select(left, select(steep, up_left, flat_left), select(steep, up, flat)), y);
}

Floats atan(Floats x) {
  const Floats a = abs(x);
  const Mask steep = a > 1.0;
  const Floats z = select(steep, -1.0 / a, a);
  const Floats s = z * z;
  const Floats rest = s * z * polynomial(s, tables::kAtan);
  const Floats turned = (z + (rest + kPiLow / 2)) + kPi / 2;
  return copysign(select(steep, turned, z + rest), x);
}

}  // namespace fx::loops::math
