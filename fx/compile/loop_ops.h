#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string_view>

/// The vocabulary of scalar operations that tensor expressions and loop nests share.
namespace fx::loops {

enum class Op : std::uint8_t {
#define FX_LOOP_OP(enumerator, name, arity) enumerator,
#include "fx/compile/loop_ops.def"
#undef FX_LOOP_OP
};

/// "floor_div".
std::string_view to_string(Op op);
/// Number of arguments.
int arity(Op op);
/// Whether it takes long enough that a result is better kept than computed again.
bool is_expensive(Op op);
/// Whether the result is a bool whatever the arguments are.
bool is_predicate(Op op);

enum class Reduce : std::uint8_t {
  kSum,
  kProd,
  kMax,  ///< NaN if there is one
  kMin,
  kAny,  ///< of bool
  kAll,
  kLogAddExp,  ///< log(exp(a) + exp(b)), NaN if there is one; in scans only
};
std::string_view to_string(Reduce reduce);

/// The dtypes that nests load, store and cast. On half and bfloat16 no other operation is defined:
/// whoever builds a nest casts to float and back, which says where eager rounds.
bool is_loop_type(c10::ScalarType type);
/// "f32", "bf16", "i64", "bool".
std::string_view type_name(c10::ScalarType type);

}  // namespace fx::loops
