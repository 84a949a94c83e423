// What the call of a kernel asks of the heap, counted in operator new.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/compile/compile.h"
#include "fx/compile/kernel.h"
#include "fx/compile/lower_math.h"
#include "tests/base/counted_new.h"

namespace fx::loops {
namespace {

// Objects that the second and each later call of the kernel makes.
std::size_t objects_of(const Kernel& kernel, const std::vector<at::Tensor>& inputs) {
  c10::SmallVector<at::Tensor, 4> outputs;
  EXPECT_TRUE(kernel.run(inputs, outputs));
  outputs.clear();
  return count_new([&] {
    EXPECT_TRUE(kernel.run(inputs, outputs));
    outputs.clear();
  });
}

TEST(KernelAllocations, none_but_the_results) {
  const torch::NoGradGuard no_grad;
  const auto make_result = [] { at::empty_strided({4, 6}, {6, 1}, at::TensorOptions(at::kFloat)); };
  make_result();
  const std::size_t result = count_new(make_result);
  const std::int64_t sizes[] = {4, 6};
  const std::int64_t last[] = {1};
  const at::Tensor x = torch::randn({4, 6});
  const at::Tensor transposed = torch::randn({6, 4}).t();
  {
    TensorProgram program;
    const Num a(program, program.input(at::kFloat, sizes));
    const Num b(program, program.input(at::kFloat, sizes));
    const Tensor sum = (exp(a) + b).tensor();
    const Kernel kernel("pointwise", program, {sum}, {{0, 1}});
    EXPECT_EQ(objects_of(kernel, {x, x}), result);
    EXPECT_EQ(objects_of(kernel, {x, transposed}), result);
  }
  {
    TensorProgram program;
    const Num a(program, program.input(at::kFloat, sizes));
    const Num shifted = exp(a - a.reduce(Reduce::kMax, last, true));
    const Tensor softmax = (shifted / shifted.reduce(Reduce::kSum, last, true)).tensor();
    const Kernel kernel("softmax", program, {softmax}, {{0, 1}});
    EXPECT_EQ(objects_of(kernel, {x}), result);
    EXPECT_EQ(objects_of(kernel, {transposed}), result);
  }
}

// Of a compiled program: the same for one operator in a kernel and for twenty.
TEST(KernelAllocations, do_not_grow_with_the_kernel) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({4, 6});
  std::size_t counts[2];
  for (const int length : {3, 20}) {
    const Compiled fast = compile([length](at::Tensor t) {
      for (int i = 0; i < length; ++i) t = torch::exp(t) * 0.1 + i;
      return t;
    });
    for (int i = 0; i < 3; ++i) fast({x});
    Values inputs{x};
    counts[length == 20] = count_new([&] { fast(std::move(inputs)); });
  }
  EXPECT_EQ(counts[0], counts[1]);
}

}  // namespace
}  // namespace fx::loops
