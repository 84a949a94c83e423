#pragma once

#include <llvm/IR/IRBuilder.h>

#include <utility>

#include "fx/compile/kernel_abi.h"
#include "fx/compile/llvm/vector_ops.h"

/// Vectors of lanes to and from memory.
namespace fx::loops {

class LaneMemory {
 public:
  /// @param wide the processor has AVX-512, whose gathers are worth it.
  LaneMemory(::llvm::IRBuilder<>& ir, VectorOps& ops, bool wide)
      : ir_(ir), ops_(ops), wide_(wide) {}

  /// Where the lanes of an operand lie.
  struct Address {
    c10::ScalarType type;
    ::llvm::Value* pointer;  ///< of lane 0
    LaneStride stride;
    ::llvm::Value* lane_stride = nullptr;  ///< in bytes, of LaneStride::kAny
  };

  /// Which lanes are read, and from where beside the address.
  struct Selection {
    ::llvm::Value* mask = nullptr;  ///< lanes that there are, the first ones; null: all
    /// Lanes for which the address is in the tensor: the others read nothing. Null: all.
    ::llvm::Value* guard = nullptr;
    /// Indices with the bytes that each steps, and whether all lanes have the same.
    ::llvm::SmallVector<std::pair<::llvm::Value*, ::llvm::Value*>, 2> gathered = {};
    bool gathered_uniform = true;
  };

  /// To be called at the entry of the function: memory that can always be read.
  void make_safe_memory();

  /// 0, 1, ... as i64.
  ::llvm::Value* lane_ids() const;
  /// Lanes below n - i.
  ::llvm::Value* mask_below(::llvm::Value* i, ::llvm::Value* n);

  ::llvm::Value* load(const Address& address, const Selection& selection);
  /// Of the selection all but the guard. Lanes go to different places.
  void store(const Address& address, ::llvm::Value* value, const Selection& selection);

  /// `pointer`, or a number in place of one, `bytes` further.
  ::llvm::Value* offset(::llvm::Value* pointer, ::llvm::Value* bytes);

 private:
  /// `address` with indices that all lanes have moved into the pointer, and out of the selection.
  Address with_uniform(const Address& address, Selection& selection);
  /// Lanes that do not lie one after the other.
  ::llvm::Value* load_scattered(const Address& address, const Selection& selection,
                                ::llvm::Value* active);

  ::llvm::IRBuilder<>& ir_;
  VectorOps& ops_;
  bool wide_;
  ::llvm::Value* safe_ = nullptr;
};

}  // namespace fx::loops
