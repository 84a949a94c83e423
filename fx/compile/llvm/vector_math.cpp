#include "fx/compile/llvm/vector_math.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace fx::loops {

using ::llvm::Value;

Value* VectorMath::call(Op op, ::llvm::ArrayRef<Value*> args) {
  switch (op) {
    case Op::kExp:
      return exp(args[0]);
    default:
      return nullptr;
  }
}

Value* VectorMath::number(double value) const {
  return ::llvm::ConstantVector::getSplat(
      ::llvm::ElementCount::getFixed(lanes_),
      ::llvm::ConstantFP::get(ir_.getContext(), ::llvm::APFloat(static_cast<float>(value))));
}

Value* VectorMath::integer(std::int32_t value) const {
  return ::llvm::ConstantVector::getSplat(::llvm::ElementCount::getFixed(lanes_),
                                          ir_.getInt32(static_cast<std::uint32_t>(value)));
}

Value* VectorMath::fma(Value* a, Value* b, Value* c) {
  return ir_.CreateIntrinsic(::llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

Value* VectorMath::polynomial(Value* x, ::llvm::ArrayRef<double> coefficients) {
  Value* sum = number(coefficients[0]);
  for (double c : coefficients.drop_front()) sum = fma(sum, x, number(c));
  return sum;
}

Value* VectorMath::scale(Value* x, Value* n) {
  if (wide_ && lanes_ == 16) {
    Value* all = ::llvm::Constant::getAllOnesValue(ir_.getInt16Ty());
    return ir_.CreateIntrinsic(::llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                               {x, n, x, all, ir_.getInt32(4)});
  }
  // In two steps, since 2^n itself may be out of range.
  ::llvm::Type* words = ::llvm::FixedVectorType::get(ir_.getInt32Ty(), lanes_);
  const auto power = [&](Value* k) {
    return ir_.CreateBitCast(ir_.CreateShl(ir_.CreateAdd(k, integer(127)), 23), x->getType());
  };
  Value* whole = ir_.CreateFreeze(ir_.CreateFPToSI(n, words));  // of NaN: any number will do
  Value* half = ir_.CreateAShr(whole, 1);
  return ir_.CreateFMul(ir_.CreateFMul(x, power(half)), power(ir_.CreateSub(whole, half)));
}

// e^x = 2^n e^r with n the integer next to x / ln 2 and r = x - n ln 2 (Cody and Waite: ln 2 in two
// parts). Arguments are cut off where the result is 0 or infinity anyway, NaN passes.
Value* VectorMath::exp(Value* x) {
  Value* high = number(89.0);
  Value* low = number(-104.5);
  x = ir_.CreateSelect(ir_.CreateFCmpOGT(x, high), high, x);
  x = ir_.CreateSelect(ir_.CreateFCmpOLT(x, low), low, x);
  Value* n = ir_.CreateUnaryIntrinsic(::llvm::Intrinsic::rint,
                                      ir_.CreateFMul(x, number(1.4426950408889634)));
  Value* r = fma(n, number(-0x1.62e4p-1), x);
  r = fma(n, number(-0x1.7f7d1cp-20), r);
  Value* p = polynomial(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                            1.6666665459e-1, 5.0000001201e-1});
  p = fma(ir_.CreateFMul(r, r), p, ir_.CreateFAdd(r, number(1.0)));
  return scale(p, n);
}

}  // namespace fx::loops
