#pragma once

#include <c10/core/Scalar.h>
#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <string>
#include <vector>

#include "fx/compile/loop_ops.h"

/// One scalar operation on a vector of lanes, as LLVM instructions.
namespace fx::loops {

/// Vectors by type: bool is <n x i1>, bfloat16 its bits in <n x i16>, everything else what it is.
class VectorOps {
 public:
  /// @param wide the processor has 512-bit vectors.
  VectorOps(::llvm::IRBuilder<>& ir, ::llvm::Module& module, unsigned lanes, bool wide)
      : ir_(ir), module_(module), lanes_(lanes), wide_(wide) {}

  unsigned lanes() const noexcept { return lanes_; }
  ::llvm::Type* scalar_type(c10::ScalarType type) const;
  /// As it lies in memory: bool is i8.
  ::llvm::Type* memory_type(c10::ScalarType type) const;
  ::llvm::VectorType* vector_type(c10::ScalarType type) const;

  ::llvm::Value* constant(c10::ScalarType type, const c10::Scalar& number) const;
  ::llvm::Value* splat(::llvm::Value* scalar) const;
  /// at::Tensor::to.
  ::llvm::Value* cast(::llvm::Value* value, c10::ScalarType from, c10::ScalarType to);
  /// Operations but leaves, casts and divisor; `type` is that of the arguments (of a select: of the
  /// last two).
  ::llvm::Value* apply(Op op, c10::ScalarType type, ::llvm::ArrayRef<::llvm::Value*> args);

  ::llvm::Value* combine(Reduce reduce, c10::ScalarType type, ::llvm::Value* a, ::llvm::Value* b);
  /// The value that changes nothing.
  ::llvm::Value* identity(Reduce reduce, c10::ScalarType type) const;
  /// All lanes of `value` combined as a balanced tree, in each lane of the result.
  ::llvm::Value* across(Reduce reduce, c10::ScalarType type, ::llvm::Value* value);

  /// A comparison in case of floating or signed or unsigned numbers.
  ::llvm::Value* less(c10::ScalarType type, ::llvm::Value* a, ::llvm::Value* b);
  ::llvm::Value* is_nan(c10::ScalarType type, ::llvm::Value* a);

 private:
  ::llvm::Value* to_float(::llvm::Value* value, c10::ScalarType from);
  ::llvm::Value* float_to_int(::llvm::Value* value, c10::ScalarType to);
  ::llvm::Value* round_to_bfloat16(::llvm::Value* value);
  ::llvm::Value* integer_division(Op op, c10::ScalarType type, ::llvm::Value* a, ::llvm::Value* b);
  ::llvm::Value* shift(Op op, c10::ScalarType type, ::llvm::Value* a, ::llvm::Value* b);
  ::llvm::Value* extremum(Op op, c10::ScalarType type, ::llvm::Value* a, ::llvm::Value* b);
  ::llvm::Value* function(Op op, c10::ScalarType type, ::llvm::ArrayRef<::llvm::Value*> args);
  ::llvm::Value* library_call(Op op, c10::ScalarType type, ::llvm::ArrayRef<::llvm::Value*> args);

  ::llvm::IRBuilder<>& ir_;
  ::llvm::Module& module_;
  unsigned lanes_;
  bool wide_;
};

/// The vector functions of LibTorch that a kernel may call, by their names there. What is not in
/// this table cannot be linked to.
struct RuntimeSymbol {
  std::string name;
  void* address;
};
const std::vector<RuntimeSymbol>& runtime_symbols();
/// "Sleef_expf16_u10avx512f" for 16 floats; empty if there is none.
std::string runtime_symbol(Op op, c10::ScalarType type, unsigned lanes);
/// The same on a processor with NEON, whether or not this process has it.
std::string neon_symbol(Op op, c10::ScalarType type, unsigned lanes);

}  // namespace fx::loops
