#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "fx/compile/compile.h"
#include "fx/compile/fused_kernel.h"
#include "fx/compile/unsupported.h"

// Kernels for a processor with NEON, as text: vectors of 128 bits, fused products, masked rests,
// and nothing of x86.
namespace fx {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kNeon = "aarch64-linux-gnu";

std::string text_of(const Compiled& fast, loops::CodeStage stage, const char* triple = kNeon) {
  std::string text;
  for (const auto& module : fast.graph_module()->modules())
    if (const auto* fused = dynamic_cast<const loops::FusedKernel*>(module.get()))
      for (const loops::Kernel* kernel : fused->kernels()) text += kernel->code_text(stage, triple);
  return text;
}

// Of all programs: LLVM and assembly.
struct Text {
  std::string llvm;
  std::string assembly;
};

template <typename Program>
Text compiled(Program program, const at::Tensor& x) {
  const torch::NoGradGuard no_grad;
  const Compiled fast = compile(program);
  fast(x);
  const Text text{text_of(fast, loops::CodeStage::kLlvm),
                  text_of(fast, loops::CodeStage::kAssembly)};
  EXPECT_THAT(text.llvm, HasSubstr("target triple = \"aarch64"));
  EXPECT_THAT(text.assembly, HasSubstr("ret"));
  for (const char* foreign : {"x86", "avx", "<8 x float>", "v8f32", "v16f32", "<8 x double>"})
    EXPECT_THAT(text.llvm, Not(HasSubstr(foreign)));
  for (const char* foreign : {"xmm", "ymm", "zmm", "%r", "avx"})
    EXPECT_THAT(text.assembly, Not(HasSubstr(foreign)));
  return text;
}

TEST(Neon, pointwise) {
  const Text text = compiled([](at::Tensor x) { return torch::exp(x * 0.5) * x + torch::tanh(x); },
                             torch::randn({100}));
  EXPECT_THAT(text.llvm, HasSubstr("<4 x float>"));
  EXPECT_THAT(text.llvm, HasSubstr("@llvm.fma.v4f32"));
  EXPECT_THAT(text.llvm, HasSubstr("@llvm.masked.store.v4f32"));
  EXPECT_THAT(text.llvm, HasSubstr("@llvm.masked.load.v4f32"));
  EXPECT_THAT(text.assembly, HasSubstr("fmla\tv"));
  EXPECT_THAT(text.assembly, HasSubstr(".4s"));
}

TEST(Neon, rows_and_columns_are_reduced) {
  for (const std::int64_t dim : {0, 1}) {
    const Text text = compiled([dim](at::Tensor x) { return torch::softmax(x * 2, dim); },
                               torch::randn({100, 200}));
    EXPECT_THAT(text.llvm, HasSubstr("<4 x float>"));
    EXPECT_THAT(text.assembly, HasSubstr("fmla\tv"));
    EXPECT_THAT(text.assembly, HasSubstr("fcmg"));  // of the maximum
    EXPECT_THAT(text.assembly, HasSubstr("fadd\tv"));
  }
}

TEST(Neon, doubles_and_integers) {
  const Text doubles = compiled([](at::Tensor x) { return torch::exp(x * 0.5) + x; },
                                torch::randn({100}, at::kDouble));
  EXPECT_THAT(doubles.llvm, HasSubstr("<2 x double>"));
  EXPECT_THAT(doubles.assembly, HasSubstr(".2d"));
  EXPECT_THAT(doubles.assembly, HasSubstr("Sleef_expd2_u10"));
  const Text integers = compiled([](at::Tensor x) { return (x * 3 + 1) * x; },
                                 torch::randint(0, 100, {100}, at::kInt));
  EXPECT_THAT(integers.llvm, HasSubstr("<4 x i32>"));
  EXPECT_THAT(integers.assembly, AnyOf(HasSubstr("mul\tv"), HasSubstr("mla\tv")));
}

TEST(Neon, gathers_and_tables) {
  const Text text = compiled([](at::Tensor x) { return torch::log(torch::pow(x, 1.7) + x.t()); },
                             torch::rand({30, 30}) + 1);
  EXPECT_THAT(text.llvm, HasSubstr("<4 x float>"));
}

TEST(Neon, other_processors_are_refused) {
  const torch::NoGradGuard no_grad;
  const Compiled fast = compile([](at::Tensor x) { return torch::exp(x) + 1; });
  fast(torch::ones({4}));
  EXPECT_THROW(text_of(fast, loops::CodeStage::kLlvm, "riscv64-linux-gnu"), loops::Unsupported);
}

}  // namespace
}  // namespace fx
