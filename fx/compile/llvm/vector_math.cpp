#include "fx/compile/llvm/vector_math.h"

namespace fx::loops {

::llvm::Value* VectorMath::call(Op op, ::llvm::ArrayRef<::llvm::Value*> args,
                                const Library& library) {
  const math::Floats x = b_.floats(args[0]);
  const auto rare = [&] { return b_.floats(library()); };
  switch (op) {
    case Op::kExp:
      return math::exp(x).v;
    case Op::kExp2:
      return math::exp2(x).v;
    case Op::kExpm1:
      return math::expm1(x).v;
    case Op::kLog:
      return math::log(x).v;
    case Op::kLog2:
      return math::log2(x).v;
    case Op::kLog10:
      return math::log10(x).v;
    case Op::kLog1p:
      return math::log1p(x).v;
    case Op::kTanh:
      return math::tanh(x).v;
    case Op::kErf:
      return math::erf(x).v;
    case Op::kSinh:
      return math::sinh(x).v;
    case Op::kCosh:
      return math::cosh(x).v;
    case Op::kAsinh:
      return math::asinh(x).v;
    case Op::kAcosh:
      return math::acosh(x).v;
    case Op::kAtanh:
      return math::atanh(x).v;
    case Op::kErfc:
      return math::erfc(x).v;
    case Op::kAsin:
      return math::asin(x).v;
    case Op::kAcos:
      return math::acos(x).v;
    case Op::kAtan:
      return math::atan(x).v;
    case Op::kAtan2:
      return math::atan2(x, b_.floats(args[1])).v;
    case Op::kPow:
      return math::pow(x, b_.floats(args[1])).v;
    case Op::kSin:
      return math::sin(x, rare).v;
    case Op::kCos:
      return math::cos(x, rare).v;
    case Op::kTan:
      return math::tan(x, rare).v;
    default:
      return nullptr;
  }
}

::llvm::Value* mended_double(::llvm::IRBuilder<>& ir, unsigned lanes, Op op, ::llvm::Value* arg,
                             const std::function<::llvm::Value*(Op, ::llvm::Value*)>& library) {
  math::Builder b = math::Builder(ir, lanes, false).doubles();
  const math::Floats x = b.floats(arg);
  const math::Floats a = math::abs(x);
  const math::Floats quick = b.floats(library(op, arg));
  switch (op) {
    case Op::kAsinh:
    case Op::kAcosh: {
      // The logarithm of twice the argument.
      constexpr double kLn2 = 0.69314718055994530942;
      const math::Mask large = (op == Op::kAsinh ? a : x) > 0x1p28;
      return b
          .unless_any(large, quick,
                      [&] {
                        const math::Floats y = b.floats(library(Op::kLog, a.v)) + kLn2;
                        return op == Op::kAsinh ? math::copysign(y, x) : y;
                      })
          .v;
    }
    case Op::kSinh:
    case Op::kCosh: {
      // e^a / 2 as the square of e^(a/2), halved in between.
      return b
          .unless_any(a > 709.0, quick,
                      [&] {
                        const math::Floats root = b.floats(library(Op::kExp, (a * 0.5).v));
                        const math::Floats y = (root * 0.5) * root;
                        return op == Op::kSinh ? math::copysign(y, x) : y;
                      })
          .v;
    }
    default:
      return quick.v;
  }
}

}  // namespace fx::loops
