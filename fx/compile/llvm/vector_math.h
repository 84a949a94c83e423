#pragma once

#include <llvm/IR/IRBuilder.h>

#include "fx/compile/loop_ops.h"

namespace fx::loops {

/// Elementary functions of float vectors as straight-line code, for those that networks spend their
/// time in. Errors are at most about 1 ulp (docs/vector-math.md is measured); NaN, infinities,
/// zeros and subnormal numbers are as in C.
class VectorMath {
 public:
  VectorMath(::llvm::IRBuilder<>& ir, unsigned lanes, bool wide)
      : ir_(ir), lanes_(lanes), wide_(wide) {}

  /// Null for a function that is not here.
  ::llvm::Value* call(Op op, ::llvm::ArrayRef<::llvm::Value*> args);

 private:
  ::llvm::Value* exp(::llvm::Value* x);

  ::llvm::Value* number(double value) const;
  ::llvm::Value* integer(std::int32_t value) const;
  ::llvm::Value* fma(::llvm::Value* a, ::llvm::Value* b, ::llvm::Value* c);
  /// Horner's scheme; the highest power first.
  ::llvm::Value* polynomial(::llvm::Value* x, ::llvm::ArrayRef<double> coefficients);
  /// x * 2^n for integral n in [-300, 300]; rounds once where the result is subnormal.
  ::llvm::Value* scale(::llvm::Value* x, ::llvm::Value* n);

  ::llvm::IRBuilder<>& ir_;
  unsigned lanes_;
  bool wide_;
};

}  // namespace fx::loops
