#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <vector>

/// Loops as LLVM basic blocks.
namespace fx::loops {

/// Gets the index and the carried values, gives the next ones.
using CarriedBody = std::function<std::vector<::llvm::Value*>(
    ::llvm::Value* index, const std::vector<::llvm::Value*>& carried)>;

/// for (i = begin; i < end; i += step), signed, carrying values through. Code goes on behind the
/// loop; returns the carried values there.
std::vector<::llvm::Value*> carried_loop(::llvm::IRBuilder<>& ir, ::llvm::Value* begin,
                                         ::llvm::Value* end, ::llvm::Value* step, const char* name,
                                         const std::vector<::llvm::Value*>& carried,
                                         const CarriedBody& body);

/// Does `body` if `condition` holds; it leaves no values behind.
void when(::llvm::IRBuilder<>& ir, ::llvm::Value* condition, const char* name,
          const std::function<void()>& body);

/// The same as carried_loop with nothing carried.
void counted_loop(::llvm::IRBuilder<>& ir, ::llvm::Value* begin, ::llvm::Value* end,
                  ::llvm::Value* step, const char* name,
                  const std::function<void(::llvm::Value* index)>& body);

}  // namespace fx::loops
