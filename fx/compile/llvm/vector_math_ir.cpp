#include "fx/compile/llvm/vector_math_ir.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

namespace fx::loops::math {

using ::llvm::Value;

namespace {

constexpr std::int32_t kCurrentRounding = 4;

::llvm::IRBuilder<>& ir(Floats a) { return a.b->ir(); }
::llvm::IRBuilder<>& ir(Words a) { return a.b->ir(); }

}  // namespace

::llvm::Type* Builder::float_type() const {
  return ::llvm::FixedVectorType::get(double_ ? ir_.getDoubleTy() : ir_.getFloatTy(), lanes_);
}

::llvm::Type* Builder::word_type() const {
  return ::llvm::FixedVectorType::get(ir_.getInt32Ty(), lanes_);
}

Floats Builder::number(double value) {
  const ::llvm::APFloat rounded =
      double_ ? ::llvm::APFloat(value) : ::llvm::APFloat(static_cast<float>(value));
  return {this,
          ::llvm::ConstantVector::getSplat(::llvm::ElementCount::getFixed(lanes_),
                                           ::llvm::ConstantFP::get(ir_.getContext(), rounded))};
}

Words Builder::word(std::uint32_t value) {
  return {this, ::llvm::ConstantVector::getSplat(::llvm::ElementCount::getFixed(lanes_),
                                                 ir_.getInt32(value))};
}

Value* Builder::any(Mask mask) { return ir_.CreateOrReduce(mask.v); }

Floats Builder::unless_any(Mask rare, Floats quick, const std::function<Floats()>& slow) {
  ::llvm::BasicBlock* before = ir_.GetInsertBlock();
  ::llvm::Function* function = before->getParent();
  auto* slowly = ::llvm::BasicBlock::Create(ir_.getContext(), "slow", function);
  auto* after = ::llvm::BasicBlock::Create(ir_.getContext(), "after", function);
  ir_.CreateCondBr(any(rare), slowly, after,
                   ::llvm::MDBuilder(ir_.getContext()).createBranchWeights(1, 1000));
  ir_.SetInsertPoint(slowly);
  const Floats value = select(rare, slow(), quick);
  ::llvm::BasicBlock* slow_end = ir_.GetInsertBlock();
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
  ::llvm::PHINode* result = ir_.CreatePHI(float_type(), 2);
  result->addIncoming(quick.v, before);
  result->addIncoming(value.v, slow_end);
  return {this, result};
}

Floats Builder::mantissa(Floats x) {
  // Interval [3/4, 3/2), NaN of what is negative.
  constexpr std::uint32_t kKind = 0b1111;
  return {this, ir_.CreateIntrinsic(::llvm::Intrinsic::x86_avx512_mask_getmant_ps_512, {},
                                    {x.v, ir_.getInt32(kKind), x.v, ir_.getInt16(0xffff),
                                     ir_.getInt32(kCurrentRounding)})};
}

Floats Builder::exponent(Floats x) {
  return {this,
          ir_.CreateIntrinsic(::llvm::Intrinsic::x86_avx512_mask_getexp_ps_512, {},
                              {x.v, x.v, ir_.getInt16(0xffff), ir_.getInt32(kCurrentRounding)})};
}

Floats Builder::scalef(Floats x, Floats n) {
  return {this, ir_.CreateIntrinsic(
                    ::llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                    {x.v, n.v, x.v, ir_.getInt16(0xffff), ir_.getInt32(kCurrentRounding)})};
}

Floats Builder::fix_up(Floats x, Floats by, std::uint32_t table) {
  return {this, ir_.CreateIntrinsic(::llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512, {},
                                    {x.v, by.v, word(table).v, ir_.getInt32(0),
                                     ir_.getInt16(0xffff), ir_.getInt32(kCurrentRounding)})};
}

Floats Builder::lookup(const float (&table)[16], Words index) {
  ::llvm::SmallVector<::llvm::Constant*, 16> cells;
  for (float cell : table)
    cells.push_back(::llvm::ConstantFP::get(ir_.getContext(), ::llvm::APFloat(cell)));
  if (wide_)
    return {this, ir_.CreateIntrinsic(::llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                                      {::llvm::ConstantVector::get(cells), index.v})};
  if (!::llvm::Triple(ir_.GetInsertBlock()->getModule()->getTargetTriple()).isX86()) {
    // No instruction for it: one lane after the other.
    Value* cell_of = ir_.CreateAnd(index.v, word(15).v);
    Value* found = ::llvm::PoisonValue::get(float_type());
    for (std::uint64_t lane = 0; lane < lanes_; ++lane)
      found =
          ir_.CreateInsertElement(found,
                                  ir_.CreateExtractElement(::llvm::ConstantVector::get(cells),
                                                           ir_.CreateExtractElement(cell_of, lane)),
                                  lane);
    return {this, found};
  }
  // VPERMPS of AVX2 has eight lanes; of four lanes (beside doubles) it takes two copies.
  ::llvm::SmallVector<int, 8> copies;
  for (int lane = 0; lane < 8; ++lane) copies.push_back(lane % static_cast<int>(lanes_));
  Value* eight = lanes_ == 8 ? index.v : ir_.CreateShuffleVector(index.v, copies);
  const auto half = [&](std::size_t begin) {
    Value* found = ir_.CreateIntrinsic(
        ::llvm::Intrinsic::x86_avx2_permps, {},
        {::llvm::ConstantVector::get(::llvm::ArrayRef(cells).slice(begin, 8)), eight});
    if (lanes_ != 8)
      found = ir_.CreateShuffleVector(found, ::llvm::ArrayRef(copies).take_front(lanes_));
    return Floats{this, found};
  };
  return select(negative(index << 28), half(8), half(0));
}

Floats operator+(Floats a, Floats b) { return {a.b, ir(a).CreateFAdd(a.v, b.v)}; }
Floats operator-(Floats a, Floats b) { return {a.b, ir(a).CreateFSub(a.v, b.v)}; }
Floats operator*(Floats a, Floats b) { return {a.b, ir(a).CreateFMul(a.v, b.v)}; }
Floats operator/(Floats a, Floats b) { return {a.b, ir(a).CreateFDiv(a.v, b.v)}; }
Floats operator-(Floats a) { return {a.b, ir(a).CreateFNeg(a.v)}; }

Floats fma(Floats a, Floats b, Floats c) {
  return {a.b, ir(a).CreateIntrinsic(::llvm::Intrinsic::fma, {a.v->getType()}, {a.v, b.v, c.v})};
}

Floats abs(Floats a) { return {a.b, ir(a).CreateUnaryIntrinsic(::llvm::Intrinsic::fabs, a.v)}; }

Floats sqrt(Floats a) { return {a.b, ir(a).CreateUnaryIntrinsic(::llvm::Intrinsic::sqrt, a.v)}; }

Floats round(Floats a) { return {a.b, ir(a).CreateUnaryIntrinsic(::llvm::Intrinsic::rint, a.v)}; }

Floats copysign(Floats a, Floats b) {
  return {a.b, ir(a).CreateBinaryIntrinsic(::llvm::Intrinsic::copysign, a.v, b.v)};
}

Floats polynomial(Floats x, std::span<const double> coefficients) {
  Floats sum = x.b->number(coefficients[0]);
  for (double c : coefficients.subspan(1)) sum = c == 0 ? sum * x : fma(sum, x, c);
  return sum;
}

Mask operator<(Floats a, Floats b) { return {a.b, ir(a).CreateFCmpOLT(a.v, b.v)}; }
Mask operator==(Floats a, Floats b) { return {a.b, ir(a).CreateFCmpOEQ(a.v, b.v)}; }
Mask operator!=(Floats a, Floats b) { return {a.b, ir(a).CreateFCmpUNE(a.v, b.v)}; }
Mask operator&(Mask a, Mask b) { return {a.b, a.b->ir().CreateAnd(a.v, b.v)}; }
Mask operator|(Mask a, Mask b) { return {a.b, a.b->ir().CreateOr(a.v, b.v)}; }

Floats select(Mask mask, Floats a, Floats b) { return {a.b, ir(a).CreateSelect(mask.v, a.v, b.v)}; }
Words select(Mask mask, Words a, Words b) { return {a.b, ir(a).CreateSelect(mask.v, a.v, b.v)}; }

Floats at_most(Floats x, double high) { return select(x > high, x.b->number(high), x); }
Floats at_least(Floats x, double low) { return select(x < low, x.b->number(low), x); }

Words bits(Floats a) { return {a.b, ir(a).CreateBitCast(a.v, a.b->word_type())}; }
Floats as_floats(Words a) { return {a.b, ir(a).CreateBitCast(a.v, a.b->float_type())}; }
Floats convert(Words a) { return {a.b, ir(a).CreateSIToFP(a.v, a.b->float_type())}; }

Words operator+(Words a, Words b) { return {a.b, ir(a).CreateAdd(a.v, b.v)}; }
Words operator-(Words a, Words b) { return {a.b, ir(a).CreateSub(a.v, b.v)}; }
Words operator^(Words a, Words b) { return {a.b, ir(a).CreateXor(a.v, b.v)}; }
Words operator&(Words a, Words b) { return {a.b, ir(a).CreateAnd(a.v, b.v)}; }
Words operator<<(Words a, unsigned count) {
  return {a.b, ir(a).CreateShl(a.v, std::uint64_t{count})};
}
Words operator>>(Words a, unsigned count) {
  return {a.b, ir(a).CreateAShr(a.v, std::uint64_t{count})};
}
Mask negative(Words a) {
  return {a.b, ir(a).CreateICmpSLT(a.v, ::llvm::Constant::getNullValue(a.v->getType()))};
}

}  // namespace fx::loops::math
