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
    case Op::kSin:
      return math::sin(x, rare).v;
    case Op::kCos:
      return math::cos(x, rare).v;
    default:
      return nullptr;
  }
}

}  // namespace fx::loops
