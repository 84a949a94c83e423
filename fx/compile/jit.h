#pragma once

#include <memory>
#include <string>

#include "fx/compile/kernel_abi.h"
#include "fx/compile/nest.h"

namespace fx::loops {

/// Machine code of one kernel. The code goes when this goes.
class KernelCode {
 public:
  virtual ~KernelCode() = default;
  KernelFunction function() const noexcept { return function_; }
  /// Number of lanes of its vectors.
  unsigned lanes() const noexcept { return lanes_; }
  /// Number of vectors of columns that it does beside each other.
  unsigned columns() const noexcept { return columns_; }

 protected:
  KernelFunction function_ = nullptr;
  unsigned lanes_ = 1;
  unsigned columns_ = 1;
};

/// Whether the loops of a row can be called one by one, see KernelArgs::phase.
bool has_phases(const Nest& nest, const KernelShape& shape);

/// What stages of a compilation look like, for people and tests.
enum class CodeStage : std::uint8_t { kLlvm, kAssembly };

/// Compiles a nest for this processor, in memory; equal nests share their code as long as one of
/// them lives. Thread safe.
/// @throws Unsupported when this processor or process cannot run such code: the reason.
std::shared_ptr<const KernelCode> compile_kernel(const Nest& nest, const KernelShape& shape);
/// @throws Unsupported as compile_kernel.
std::string kernel_text(const Nest& nest, const KernelShape& shape, CodeStage stage);
/// The same for another processor, which code can be looked at for and not run: `triple` as
/// "aarch64-linux-gnu", which has NEON (128-bit vectors).
/// @throws Unsupported when LLVM does not know it, or the code would need what it lacks.
std::string kernel_text(const Nest& nest, const KernelShape& shape, CodeStage stage,
                        const std::string& triple);

/// Pieces of machine code made by this process so far.
std::uint64_t num_compilations();

/// Why compile_kernel cannot work here, or empty. Tried once.
const std::string& jit_problem();

}  // namespace fx::loops
