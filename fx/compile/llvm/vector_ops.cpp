#include "fx/compile/llvm/vector_ops.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <limits>

#include "fx/base/error.h"
#include "fx/compile/llvm/vector_math.h"
#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

using ::llvm::Value;

bool is_unsigned(c10::ScalarType type) {
  return type == c10::ScalarType::Byte || type == c10::ScalarType::Bool;
}

bool is_integer(c10::ScalarType type) { return c10::isIntegralType(type, /*includeBool=*/true); }

}  // namespace

::llvm::Type* VectorOps::scalar_type(c10::ScalarType type) const {
  switch (type) {
    case c10::ScalarType::Bool:
      return ir_.getInt1Ty();
    case c10::ScalarType::Byte:
    case c10::ScalarType::Char:
      return ir_.getInt8Ty();
    case c10::ScalarType::Short:
    case c10::ScalarType::BFloat16:
      return ir_.getInt16Ty();
    case c10::ScalarType::Int:
      return ir_.getInt32Ty();
    case c10::ScalarType::Long:
      return ir_.getInt64Ty();
    case c10::ScalarType::Half:
      return ir_.getHalfTy();
    case c10::ScalarType::Float:
      return ir_.getFloatTy();
    case c10::ScalarType::Double:
      return ir_.getDoubleTy();
    default:
      FX_ASSERT(false, "no such type in a kernel");
  }
}

::llvm::Type* VectorOps::memory_type(c10::ScalarType type) const {
  return type == c10::ScalarType::Bool ? ir_.getInt8Ty() : scalar_type(type);
}

::llvm::VectorType* VectorOps::vector_type(c10::ScalarType type) const {
  return ::llvm::FixedVectorType::get(scalar_type(type), lanes_);
}

Value* VectorOps::splat(Value* scalar) const { return ir_.CreateVectorSplat(lanes_, scalar); }

Value* VectorOps::constant(c10::ScalarType type, const c10::Scalar& number) const {
  ::llvm::Type* scalar = scalar_type(type);
  ::llvm::Constant* value = nullptr;
  switch (type) {
    case c10::ScalarType::Float:
    case c10::ScalarType::Half:
      // Rounded once, as a C++ conversion does (LLVM's from double is the same).
      value = ::llvm::ConstantFP::get(ir_.getContext(),
                                      ::llvm::APFloat(static_cast<float>(number.toDouble())));
      if (type == c10::ScalarType::Half) {
        bool lost = false;
        ::llvm::APFloat half(static_cast<float>(number.toDouble()));
        half.convert(::llvm::APFloat::IEEEhalf(), ::llvm::APFloat::rmNearestTiesToEven, &lost);
        value = ::llvm::ConstantFP::get(ir_.getContext(), half);
      }
      break;
    case c10::ScalarType::Double:
      value = ::llvm::ConstantFP::get(ir_.getContext(), ::llvm::APFloat(number.toDouble()));
      break;
    case c10::ScalarType::BFloat16:
      value = ::llvm::ConstantInt::get(
          scalar, c10::BFloat16(static_cast<float>(number.toDouble())).x, false);
      break;
    case c10::ScalarType::Bool:
      value = ::llvm::ConstantInt::get(scalar, number.toBool() ? 1 : 0, false);
      break;
    default:
      value = ::llvm::ConstantInt::get(scalar, static_cast<std::uint64_t>(number.toLong()), true);
  }
  return ::llvm::ConstantVector::getSplat(::llvm::ElementCount::getFixed(lanes_), value);
}

Value* VectorOps::is_nan(c10::ScalarType type, Value* a) {
  (void)type;
  return ir_.CreateFCmpUNO(a, a);
}

Value* VectorOps::less(c10::ScalarType type, Value* a, Value* b) {
  if (!is_integer(type)) return ir_.CreateFCmpOLT(a, b);
  return is_unsigned(type) ? ir_.CreateICmpULT(a, b) : ir_.CreateICmpSLT(a, b);
}

Value* VectorOps::to_float(Value* value, c10::ScalarType from) {
  ::llvm::Type* to = vector_type(c10::ScalarType::Float);
  switch (from) {
    case c10::ScalarType::Float:
      return value;
    case c10::ScalarType::Double:
      return ir_.CreateFPTrunc(value, to);
    case c10::ScalarType::Half:
      return ir_.CreateFPExt(value, to);
    case c10::ScalarType::BFloat16: {
      Value* wide = ir_.CreateZExt(value, vector_type(c10::ScalarType::Int));
      return ir_.CreateBitCast(ir_.CreateShl(wide, 16), to);
    }
    default:
      return is_unsigned(from) ? ir_.CreateUIToFP(value, to) : ir_.CreateSIToFP(value, to);
  }
}

// c10::BFloat16's rounding: to nearest, ties to even, NaN to one pattern.
Value* VectorOps::round_to_bfloat16(Value* value) {
  ::llvm::Type* words = vector_type(c10::ScalarType::Int);
  const auto number = [&](std::int64_t n) { return constant(c10::ScalarType::Int, n); };
  Value* bits = ir_.CreateBitCast(value, words);
  Value* odd = ir_.CreateAnd(ir_.CreateLShr(bits, number(16)), number(1));
  Value* rounded = ir_.CreateAdd(bits, ir_.CreateAdd(odd, number(0x7fff)));
  rounded = ir_.CreateLShr(rounded, number(16));
  rounded = ir_.CreateSelect(ir_.CreateFCmpUNO(value, value), number(0x7fc0), rounded);
  return ir_.CreateTrunc(rounded, vector_type(c10::ScalarType::BFloat16));
}

// What the conversion instructions of x86 give, and so eager: the lowest number for NaN and for
// what does not fit; types smaller than int32 take the low bits of the conversion to int32.
Value* VectorOps::float_to_int(Value* value, c10::ScalarType to) {
  const bool wide = to == c10::ScalarType::Long;
  const c10::ScalarType via = wide ? c10::ScalarType::Long : c10::ScalarType::Int;
  ::llvm::Type* float_type = value->getType();
  const double limit = wide ? 0x1p63 : 0x1p31;
  Value* fits = ir_.CreateAnd(ir_.CreateFCmpOGE(value, ::llvm::ConstantFP::get(float_type, -limit)),
                              ir_.CreateFCmpOLT(value, ::llvm::ConstantFP::get(float_type, limit)));
  if (!wide && float_type->getScalarType()->isDoubleTy())
    // Above -2^31 - 1 a double still truncates to -2^31.
    fits = ir_.CreateAnd(ir_.CreateFCmpOGT(value, ::llvm::ConstantFP::get(float_type, -0x1p31 - 1)),
                         ir_.CreateFCmpOLT(value, ::llvm::ConstantFP::get(float_type, limit)));
  Value* safe = ir_.CreateSelect(fits, value, ::llvm::ConstantFP::get(float_type, 0.0));
  Value* lowest = constant(via, wide ? std::numeric_limits<std::int64_t>::min()
                                     : std::numeric_limits<std::int32_t>::min());
  Value* converted = ir_.CreateSelect(fits, ir_.CreateFPToSI(safe, vector_type(via)), lowest);
  return to == via ? converted : ir_.CreateTrunc(converted, vector_type(to));
}

Value* VectorOps::cast(Value* value, c10::ScalarType from, c10::ScalarType to) {
  if (from == to) return value;
  if (to == c10::ScalarType::Bool) {
    if (is_integer(from))
      return ir_.CreateICmpNE(value, ::llvm::Constant::getNullValue(value->getType()));
    if (from == c10::ScalarType::BFloat16 || from == c10::ScalarType::Half)
      value = to_float(value, from);
    return ir_.CreateFCmpUNE(value, ::llvm::Constant::getNullValue(value->getType()));
  }
  switch (to) {
    case c10::ScalarType::Float:
      return to_float(value, from);
    case c10::ScalarType::Double:
      if (from == c10::ScalarType::Float) return ir_.CreateFPExt(value, vector_type(to));
      if (from == c10::ScalarType::BFloat16 || from == c10::ScalarType::Half)
        return ir_.CreateFPExt(to_float(value, from), vector_type(to));
      return is_unsigned(from) ? ir_.CreateUIToFP(value, vector_type(to))
                               : ir_.CreateSIToFP(value, vector_type(to));
    case c10::ScalarType::Half:
      return ir_.CreateFPTrunc(to_float(value, from), vector_type(to));
    case c10::ScalarType::BFloat16:
      return round_to_bfloat16(to_float(value, from));
    default:
      break;
  }
  if (!is_integer(from)) {
    if (from != c10::ScalarType::Double) value = to_float(value, from);
    return float_to_int(value, to);
  }
  return ir_.CreateIntCast(value, vector_type(to), !is_unsigned(from));
}

Value* VectorOps::extremum(Op op, c10::ScalarType type, Value* a, Value* b) {
  const bool larger = op == Op::kMaximum || op == Op::kFmax;
  if (op == Op::kMaximum || op == Op::kMinimum) {
    // b when either is NaN.
    Value* picked = ir_.CreateSelect(larger ? less(type, b, a) : less(type, a, b), a, b);
    return is_integer(type) ? picked : ir_.CreateSelect(is_nan(type, a), a, picked);
  }
  // a when either is NaN.
  Value* picked = ir_.CreateSelect(larger ? less(type, a, b) : less(type, b, a), b, a);
  return is_integer(type) ? picked : ir_.CreateSelect(is_nan(type, a), b, picked);
}

Value* VectorOps::shift(Op op, c10::ScalarType type, Value* a, Value* b) {
  ::llvm::Type* ty = a->getType();
  const unsigned bits = ty->getScalarSizeInBits();
  Value* fits = ir_.CreateICmpULT(b, ::llvm::ConstantInt::get(ty, bits));
  Value* zero = ::llvm::Constant::getNullValue(ty);
  if (op == Op::kShl)
    return ir_.CreateSelect(fits, ir_.CreateShl(a, ir_.CreateSelect(fits, b, zero)), zero);
  if (is_unsigned(type))
    return ir_.CreateSelect(fits, ir_.CreateLShr(a, ir_.CreateSelect(fits, b, zero)), zero);
  return ir_.CreateAShr(a, ir_.CreateSelect(fits, b, ::llvm::ConstantInt::get(ty, bits - 1)));
}

// `b` is not zero.
Value* VectorOps::integer_division(Op op, c10::ScalarType type, Value* a, Value* b) {
  ::llvm::Type* ty = a->getType();
  Value* zero = ::llvm::Constant::getNullValue(ty);
  const bool is_signed = !is_unsigned(type);
  Value* quotient = nullptr;
  if (type == c10::ScalarType::Long) {
    // The lowest number by -1 would trap: divide by 1 and negate.
    Value* minus_one = ir_.CreateICmpEQ(b, ::llvm::Constant::getAllOnesValue(ty));
    Value* safe = ir_.CreateSelect(minus_one, ::llvm::ConstantInt::get(ty, 1), b);
    quotient = ir_.CreateSelect(minus_one, ir_.CreateSub(zero, a), ir_.CreateSDiv(a, safe));
  } else {
    // Exact in floating point: the quotient of two integers of n bits is wrong in its integer part
    // only if it has more than n + 1 bits.
    const c10::ScalarType real =
        type == c10::ScalarType::Int ? c10::ScalarType::Double : c10::ScalarType::Float;
    ::llvm::Type* real_type = vector_type(real);
    const auto to_real = [&](Value* v) {
      return is_signed ? ir_.CreateSIToFP(v, real_type) : ir_.CreateUIToFP(v, real_type);
    };
    Value* ratio = ir_.CreateFDiv(to_real(a), to_real(b));
    // -2^31 / -1 is 2^31, which wraps in the conversion through int64.
    Value* whole = ir_.CreateFPToSI(
        ratio,
        vector_type(type == c10::ScalarType::Int ? c10::ScalarType::Long : c10::ScalarType::Int));
    quotient = ir_.CreateTrunc(whole, ty);
  }
  if (op == Op::kTruncDiv) return quotient;
  Value* rest = ir_.CreateSub(a, ir_.CreateMul(quotient, b));
  if (op == Op::kTruncRem) return rest;
  if (!is_signed) return op == Op::kFloorDiv ? quotient : rest;
  Value* adjust =
      ir_.CreateAnd(ir_.CreateICmpNE(rest, zero), ir_.CreateICmpSLT(ir_.CreateXor(rest, b), zero));
  if (op == Op::kFloorDiv) return ir_.CreateAdd(quotient, ir_.CreateSExt(adjust, ty));
  return ir_.CreateAdd(rest, ir_.CreateSelect(adjust, b, zero));
}

Value* VectorOps::function(Op op, c10::ScalarType type, ::llvm::ArrayRef<Value*> args) {
  const auto library = [&]() -> Value* { return library_call(op, type, args); };
  if (type == c10::ScalarType::Float)
    if (Value* own = VectorMath(ir_, lanes_, wide_).call(op, args, library)) return own;
  if (type == c10::ScalarType::Double && args.size() == 1)
    return mended_double(ir_, lanes_, op, args[0],
                         [&](Op other, Value* x) { return library_call(other, type, {x}); });
  return library();
}

Value* VectorOps::library_call(Op op, c10::ScalarType type, ::llvm::ArrayRef<Value*> args) {
  const bool x86 = ::llvm::Triple(module_.getTargetTriple()).isX86();
  std::string name = x86 ? runtime_symbol(op, type, lanes_) : neon_symbol(op, type, lanes_);
  ::llvm::SmallVector<Value*, 2> passed(args.begin(), args.end());
  // There are no functions of four floats, which is what stands beside four doubles.
  const bool padded = x86 && name.empty() && type == c10::ScalarType::Float && lanes_ == 4;
  if (padded) {
    name = runtime_symbol(op, type, 8);
    for (Value*& arg : passed) arg = ir_.CreateShuffleVector(arg, {0, 1, 2, 3, 0, 1, 2, 3});
  }
  if (name.empty())
    throw Unsupported(std::string(to_string(op)) + " of " + std::string(type_name(type)) +
                      " on this processor");
  ::llvm::SmallVector<::llvm::Type*, 2> params(passed.size(), passed[0]->getType());
  auto* signature = ::llvm::FunctionType::get(passed[0]->getType(), params, false);
  ::llvm::FunctionCallee callee = module_.getOrInsertFunction(name, signature);
  ::llvm::CallInst* call = ir_.CreateCall(callee, passed);
  call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  return padded ? ir_.CreateShuffleVector(call, {0, 1, 2, 3}) : call;
}

Value* VectorOps::apply(Op op, c10::ScalarType type, ::llvm::ArrayRef<Value*> args) {
  const bool integer = is_integer(type);
  const auto unary = [&](::llvm::Intrinsic::ID id) {
    return ir_.CreateUnaryIntrinsic(id, args[0]);
  };
  const auto compare = [&](::llvm::CmpInst::Predicate real, ::llvm::CmpInst::Predicate with_sign,
                           ::llvm::CmpInst::Predicate without) -> Value* {
    if (integer) return ir_.CreateICmp(is_unsigned(type) ? without : with_sign, args[0], args[1]);
    if (type == c10::ScalarType::BFloat16)
      return ir_.CreateFCmp(real, to_float(args[0], type), to_float(args[1], type));
    return ir_.CreateFCmp(real, args[0], args[1]);
  };
  using Pred = ::llvm::CmpInst;
  switch (op) {
    case Op::kAdd:
      return integer ? ir_.CreateAdd(args[0], args[1]) : ir_.CreateFAdd(args[0], args[1]);
    case Op::kSub:
      return integer ? ir_.CreateSub(args[0], args[1]) : ir_.CreateFSub(args[0], args[1]);
    case Op::kMul:
      return integer ? ir_.CreateMul(args[0], args[1]) : ir_.CreateFMul(args[0], args[1]);
    case Op::kDiv:
      return ir_.CreateFDiv(args[0], args[1]);
    case Op::kNeg:
      return integer ? ir_.CreateNeg(args[0]) : ir_.CreateFNeg(args[0]);
    case Op::kAbs:
      if (!integer) return unary(::llvm::Intrinsic::fabs);
      if (is_unsigned(type)) return args[0];
      return ir_.CreateSelect(
          ir_.CreateICmpSLT(args[0], ::llvm::Constant::getNullValue(args[0]->getType())),
          ir_.CreateNeg(args[0]), args[0]);
    case Op::kFma:
      return ir_.CreateIntrinsic(::llvm::Intrinsic::fma, {args[0]->getType()}, args);
    case Op::kTruncDiv:
    case Op::kFloorDiv:
    case Op::kTruncRem:
    case Op::kFloorRem:
      return integer_division(op, type, args[0], args[1]);
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kFmax:
    case Op::kFmin:
      return extremum(op, type, args[0], args[1]);
    case Op::kBitAnd:
      return ir_.CreateAnd(args[0], args[1]);
    case Op::kBitOr:
      return ir_.CreateOr(args[0], args[1]);
    case Op::kBitXor:
      return ir_.CreateXor(args[0], args[1]);
    case Op::kBitNot:
      return ir_.CreateNot(args[0]);
    case Op::kShl:
    case Op::kShr:
      return shift(op, type, args[0], args[1]);
    case Op::kEq:
      return compare(Pred::FCMP_OEQ, Pred::ICMP_EQ, Pred::ICMP_EQ);
    case Op::kNe:
      return compare(Pred::FCMP_UNE, Pred::ICMP_NE, Pred::ICMP_NE);
    case Op::kLt:
      return compare(Pred::FCMP_OLT, Pred::ICMP_SLT, Pred::ICMP_ULT);
    case Op::kLe:
      return compare(Pred::FCMP_OLE, Pred::ICMP_SLE, Pred::ICMP_ULE);
    case Op::kGt:
      return compare(Pred::FCMP_OGT, Pred::ICMP_SGT, Pred::ICMP_UGT);
    case Op::kGe:
      return compare(Pred::FCMP_OGE, Pred::ICMP_SGE, Pred::ICMP_UGE);
    case Op::kIsNan:
      return is_nan(type, args[0]);
    case Op::kSelect:
      return ir_.CreateSelect(args[0], args[1], args[2]);
    case Op::kFloor:
      return unary(::llvm::Intrinsic::floor);
    case Op::kCeil:
      return unary(::llvm::Intrinsic::ceil);
    case Op::kTrunc:
      return unary(::llvm::Intrinsic::trunc);
    case Op::kNearbyInt:
      return unary(::llvm::Intrinsic::nearbyint);
    case Op::kSqrt:
      return unary(::llvm::Intrinsic::sqrt);
    case Op::kCopysign:
      return ir_.CreateBinaryIntrinsic(::llvm::Intrinsic::copysign, args[0], args[1]);
    case Op::kConstant:
    case Op::kScalar:
    case Op::kExtent:
    case Op::kLoad:
    case Op::kReduced:
    case Op::kCast:
    case Op::kDivisor:
      FX_ASSERT(false, "not an operation on vectors");
    default:
      return function(op, type, args);
  }
}

Value* VectorOps::combine(Reduce reduce, c10::ScalarType type, Value* a, Value* b) {
  switch (reduce) {
    case Reduce::kSum:
      return apply(Op::kAdd, type, {a, b});
    case Reduce::kProd:
      return apply(Op::kMul, type, {a, b});
    case Reduce::kMax:
      return apply(Op::kMaximum, type, {a, b});
    case Reduce::kMin:
      return apply(Op::kMinimum, type, {a, b});
    case Reduce::kAny:
      return apply(Op::kBitOr, type, {a, b});
    case Reduce::kAll:
      return apply(Op::kBitAnd, type, {a, b});
    case Reduce::kLogAddExp: {
      // What is added to the larger one. Nothing where both are one infinity; NaN goes through.
      Value* swaps = ir_.CreateFCmpOGT(a, b);
      Value* low = ir_.CreateSelect(swaps, b, a);
      Value* high = ir_.CreateSelect(swaps, a, b);
      Value* distance =
          ir_.CreateSelect(ir_.CreateFCmpOEQ(a, b), constant(type, 0), ir_.CreateFSub(low, high));
      Value* added = apply(Op::kLog1p, type, {apply(Op::kExp, type, {distance})});
      return ir_.CreateFAdd(added, high);
    }
  }
  FX_ASSERT(false, "unknown reduction");
}

Value* VectorOps::identity(Reduce reduce, c10::ScalarType type) const {
  switch (reduce) {
    case Reduce::kSum:
      // -0.0 would be the exact one for floats, but eager's sum of -0.0 is 0.0.
      return constant(type, 0);
    case Reduce::kProd:
      return constant(type, 1);
    case Reduce::kAny:
      return constant(type, false);
    case Reduce::kAll:
      return constant(type, true);
    case Reduce::kMax:
    case Reduce::kMin:
    case Reduce::kLogAddExp:
      break;
  }
  const bool lowest = reduce != Reduce::kMin;
  if (!is_integer(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return constant(type, lowest ? -infinity : infinity);
  }
  const unsigned bits = scalar_type(type)->getIntegerBitWidth();
  ::llvm::APInt value;
  if (is_unsigned(type))
    value = lowest ? ::llvm::APInt::getMinValue(bits) : ::llvm::APInt::getMaxValue(bits);
  else
    value =
        lowest ? ::llvm::APInt::getSignedMinValue(bits) : ::llvm::APInt::getSignedMaxValue(bits);
  return ::llvm::ConstantVector::getSplat(::llvm::ElementCount::getFixed(lanes_),
                                          ::llvm::ConstantInt::get(ir_.getContext(), value));
}

Value* VectorOps::across(Reduce reduce, c10::ScalarType type, Value* value) {
  for (unsigned half = lanes_ / 2; half >= 1; half /= 2) {
    ::llvm::SmallVector<int, 16> mask;
    for (unsigned lane = 0; lane < lanes_; ++lane) mask.push_back(static_cast<int>(lane ^ half));
    value = combine(reduce, type, value, ir_.CreateShuffleVector(value, mask));
  }
  return value;
}

}  // namespace fx::loops
