#include "fx/compile/loop_ops.h"

#include <c10/util/Exception.h>

namespace fx::loops {

std::string_view to_string(Op op) {
  switch (op) {
#define FX_LOOP_OP(enumerator, name, arity) \
  case Op::enumerator:                      \
    return name;
#include "fx/compile/loop_ops.def"
#undef FX_LOOP_OP
  }
  return "?";
}

int arity(Op op) {
  switch (op) {
#define FX_LOOP_OP(enumerator, name, arity) \
  case Op::enumerator:                      \
    return arity;
#include "fx/compile/loop_ops.def"
#undef FX_LOOP_OP
  }
  return 0;
}

bool is_expensive(Op op) {
  switch (op) {
    case Op::kScan:  // cannot be computed again
    case Op::kDiv:
    case Op::kSqrt:
    case Op::kTruncDiv:
    case Op::kFloorDiv:
    case Op::kTruncRem:
    case Op::kFloorRem:
      return true;
    default:
      return op >= Op::kExp;
  }
}

bool is_predicate(Op op) {
  switch (op) {
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kIsNan:
      return true;
    default:
      return false;
  }
}

std::string_view to_string(Reduce reduce) {
  switch (reduce) {
    case Reduce::kSum:
      return "sum";
    case Reduce::kProd:
      return "prod";
    case Reduce::kMax:
      return "max";
    case Reduce::kMin:
      return "min";
    case Reduce::kAny:
      return "any";
    case Reduce::kAll:
      return "all";
    case Reduce::kLogAddExp:
      return "logaddexp";
  }
  return "?";
}

bool is_loop_type(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Bool:
    case c10::ScalarType::Byte:
    case c10::ScalarType::Char:
    case c10::ScalarType::Short:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
      return true;
    default:
      return false;
  }
}

std::string_view type_name(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Bool:
      return "bool";
    case c10::ScalarType::Byte:
      return "u8";
    case c10::ScalarType::Char:
      return "i8";
    case c10::ScalarType::Short:
      return "i16";
    case c10::ScalarType::Int:
      return "i32";
    case c10::ScalarType::Long:
      return "i64";
    case c10::ScalarType::Half:
      return "f16";
    case c10::ScalarType::BFloat16:
      return "bf16";
    case c10::ScalarType::Float:
      return "f32";
    case c10::ScalarType::Double:
      return "f64";
    default:
      return "?";
  }
}

}  // namespace fx::loops
