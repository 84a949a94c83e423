#pragma once

#include <functional>

#include "fx/compile/llvm/vector_math_ir.h"
#include "fx/compile/loop_ops.h"

namespace fx::loops {

/// Elementary functions of float vectors as straight-line code. Largest errors, measured, stand in
/// docs/vector-math.md; NaN, infinities, zeros and subnormal numbers are as in C.
class VectorMath {
 public:
  /// The same function out of a library, for arguments that are too rare to have code of their own.
  using Library = std::function<::llvm::Value*()>;

  VectorMath(::llvm::IRBuilder<>& ir, unsigned lanes, bool wide) : b_(ir, lanes, wide) {}

  /// Null for a function that is not here. May begin new blocks.
  ::llvm::Value* call(Op op, ::llvm::ArrayRef<::llvm::Value*> args, const Library& library);

 private:
  math::Builder b_;
};

/// A float64 function of the library, whose asinh and acosh overflow above 1e154, its sinh and cosh
/// below their largest results: there from its log and exp. May begin new blocks.
::llvm::Value* mended_double(::llvm::IRBuilder<>& ir, unsigned lanes, Op op, ::llvm::Value* arg,
                             const std::function<::llvm::Value*(Op, ::llvm::Value*)>& library);

namespace math {

Floats exp(Floats x);
Floats exp2(Floats x);
Floats expm1(Floats x);
Floats log(Floats x);
Floats log2(Floats x);
Floats log10(Floats x);
Floats log1p(Floats x);
Floats sinh(Floats x);
Floats cosh(Floats x);
Floats tanh(Floats x);
Floats asinh(Floats x);
Floats acosh(Floats x);
Floats atanh(Floats x);
Floats erf(Floats x);
Floats erfc(Floats x);
Floats asin(Floats x);
Floats acos(Floats x);
Floats atan(Floats x);
Floats atan2(Floats y, Floats x);
Floats pow(Floats x, Floats y);
Floats sin(Floats x, const std::function<Floats()>& library);
Floats cos(Floats x, const std::function<Floats()>& library);
Floats tan(Floats x, const std::function<Floats()>& library);

}  // namespace math
}  // namespace fx::loops
