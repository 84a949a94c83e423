#include "fx/compile/jit.h"
#include "fx/compile/unsupported.h"

// Takes the place of the folder llvm in a build without LLVM.
namespace fx::loops {

const std::string& jit_problem() {
  static const std::string problem = "fxcpp was built without LLVM";
  return problem;
}

std::shared_ptr<const KernelCode> compile_kernel(const Nest&, const KernelShape&) {
  throw Unsupported(jit_problem());
}

std::uint64_t num_compilations() { return 0; }

std::string kernel_text(const Nest&, const KernelShape&, CodeStage) {
  throw Unsupported(jit_problem());
}

std::string kernel_text(const Nest&, const KernelShape&, CodeStage, const std::string&) {
  throw Unsupported(jit_problem());
}

}  // namespace fx::loops
