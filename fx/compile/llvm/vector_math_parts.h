#pragma once

#include "fx/compile/llvm/vector_math_ir.h"

/// Steps that several functions share.
namespace fx::loops::math {

/// x = n ln 2 + r.
struct ExpReduced {
  Words word;  ///< n in the low bits
  Floats n;
  Floats r;
};

/// For |x| < 2^20 or so. With a bias b in [-1/2, 0], r is in [(-1/2 - b) ln 2, (1/2 - b) ln 2].
ExpReduced reduce_exp(Floats x, double bias = 0.0);

/// Makes n 0 for e^x from 3/4 to 3/2.
constexpr double kExpm1Bias = -0.0849625;  // 1/2 - log2(3/2)

/// e^r - 1 for the r of that bias.
Floats expm1_near(Floats r);

/// x * 2^n for x in [2^-20, 2) and n in [-150, 128], rounded once. `word` has n in its low bits.
Floats scale(Floats x, Floats n, Words word);

/// x = m 2^e with m in [3/4, 3/2), so that x near 1 has e = 0. With AVX-512 m is NaN where x is
/// negative, and e infinite where x is zero or infinity.
struct Split {
  Floats e;
  Floats m;
};
Split split(Floats x);

/// What a logarithm y is where x is no positive finite number.
Floats log_special(Floats x, Floats y);

}  // namespace fx::loops::math
