#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <vector>

#include "fx/compile/kernel_abi.h"
#include "fx/compile/nest.h"

namespace fx::loops {

/// What the code is made for.
struct KernelTarget {
  bool wide = false;  ///< 512-bit vectors of AVX-512
  bool neon = false;  ///< 128-bit vectors of NEON; neither: those of AVX2
};

/// Number of lanes of a nest's vectors.
unsigned lanes_of(const Nest& nest, const KernelTarget& target);

/// Number of vectors that the kernel does beside each other.
unsigned columns_of(const Nest& nest);

/// The kernel of a nest as function `name` of `module`, of type KernelFunction.
/// @throws Unsupported when the target lacks something.
void emit_kernel(::llvm::Module& module, const Nest& nest, const KernelShape& shape,
                 const KernelTarget& target, const std::string& name);

}  // namespace fx::loops
