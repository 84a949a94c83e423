#include "fx/compile/llvm/vector_math.h"

namespace fx::loops::math {
namespace {

// Larger arguments go to the library.
constexpr double kLargest = 0x1p20;

// a = n pi/2 + r + low with |r| a little more than pi/4 at most, n in the low bits of `word`.
struct Quarter {
  Words word;
  Floats r;
  Floats low;
};

// Cody and Waite's reduction with pi/2 in three floats: n times the first is subtracted without an
// error, since fma rounds only the difference. n times the second is the sum of two floats
// (Dekker), and what its subtraction rounds away is computed (Fast2Sum): near a multiple of pi the
// result keeps its bits.
Quarter reduce(Floats a) {
  constexpr double kMagic = 0x1.8p23;  // adding it rounds to an integer
  constexpr double kPart1 = 0x1.921fb6p+0;
  constexpr double kPart2 = -0x1.777a5cp-25;
  constexpr double kPart3 = -0x1.ee59dap-50;
  const Floats sum = fma(a, 0x1.45f306p-1, kMagic);
  const Floats n = sum - kMagic;
  const Floats first = fma(n, -kPart1, a);
  const Floats product = n * kPart2;
  const Floats r = first - product;
  const Floats lost = (first - r) - product;
  const Floats product_low = fma(n, kPart2, -product);
  return {bits(sum), r, fma(n, -kPart3, lost - product_low)};
}

Floats sin_near(Quarter q, Floats s) {
  return q.r + fma(s * q.r, polynomial(s, tables::kSin), q.low);
}

Floats cos_near(Quarter q, Floats s) {
  return 1.0 - fma(s, polynomial(s, tables::kCos), q.r * q.low);
}

Mask odd(Words w) { return negative(w << 31); }

}  // namespace

Floats sin(Floats x, const std::function<Floats()>& library) {
  const Floats a = abs(x);
  const Quarter q = reduce(a);
  const Floats s = q.r * q.r;
  const Floats y = select(odd(q.word), cos_near(q, s), sin_near(q, s));
  const Words sign = ((q.word << 30) ^ bits(x)) & 0x80000000u;
  return x.b->unless_any(a > kLargest, as_floats(bits(y) ^ sign), library);
}

Floats cos(Floats x, const std::function<Floats()>& library) {
  const Floats a = abs(x);
  const Quarter q = reduce(a);
  const Floats s = q.r * q.r;
  const Floats y = select(odd(q.word), sin_near(q, s), cos_near(q, s));
  const Words sign = ((q.word + 1u) << 30) & 0x80000000u;
  return x.b->unless_any(a > kLargest, as_floats(bits(y) ^ sign), library);
}

// tan(r + pi/2) = -1 / tan r; what rounding of tan r loses is made up for by a step along the
// derivative of the quotient.
Floats tan(Floats x, const std::function<Floats()>& library) {
  const Floats a = abs(x);
  const Quarter q = reduce(a);
  const Floats s = q.r * q.r;
  const Floats rest = fma(s * q.r, polynomial(s, tables::kTan), fma(s, q.low, q.low));
  const Floats t = q.r + rest;
  const Floats lost = rest - (t - q.r);
  const Floats inverse = -1.0 / t;
  const Floats turned = fma(inverse * inverse, lost, inverse);
  const Words sign = bits(x) & 0x80000000u;
  const Floats y = as_floats(bits(select(odd(q.word), turned, t)) ^ sign);
  return x.b->unless_any(a > kLargest, y, library);
}

}  // namespace fx::loops::math
