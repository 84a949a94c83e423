#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "benchmarks/roofline.h"
#include "fx/compile/compile.h"

// Which operators become kernels, and how often code is made for them.
namespace fx {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <typename Program>
std::uint64_t codes_of(Program program, const at::Tensor& x) {
  const Compiled compiled = compile(std::move(program));
  EXPECT_TRUE(torch::equal(compiled(x).toTensor(), program(x)));
  return compiled.num_kernel_codes();
}

TEST(CompileCost, ConversionsThatTheOperatorDoesInVectorsAreNoWork) {
  const auto product = [](at::Tensor x) { return x * x; };
  const auto magnitude = [](at::Tensor x) { return torch::abs(x); };
  for (c10::ScalarType type : {torch::kBFloat16, torch::kHalf, torch::kFloat}) {
    const at::Tensor x = torch::randn({64, 64}).to(type);
    EXPECT_EQ(codes_of(product, x), 0u) << type;
    EXPECT_EQ(codes_of(magnitude, x), 0u) << type;
    // Together they move half as much.
    EXPECT_EQ(codes_of([](at::Tensor t) { return torch::abs(t * t); }, x), 1u) << type;
  }
  // Eager's exponential of halves is slower than that of floats.
  const Compiled exponential = compile([](at::Tensor x) { return torch::exp(x); });
  exponential(torch::randn({64}).to(torch::kBFloat16));
  EXPECT_EQ(exponential.num_kernel_codes(), 1u);
}

TEST(CompileCost, OperatorsThatDoSomethingOnceStayAlone) {
  const at::Tensor x = torch::randn({32, 16});
  const at::Tensor p = torch::rand({16}) + 0.5;
  const auto norm = [p](at::Tensor t) {
    return torch::batch_norm(t, p, p, p, p, false, 0.1, 1e-5, false);
  };
  EXPECT_EQ(codes_of(norm, x), 0u);  // lanes along the channels: a root for each element
  const Compiled images = compile(norm);
  images(torch::randn({2, 16, 4, 4}));
  EXPECT_EQ(images.num_kernel_codes(), 1u);
  EXPECT_EQ(codes_of([](at::Tensor t) { return torch::tril(t); }, x), 0u);
  EXPECT_EQ(codes_of([](at::Tensor t) { return torch::lerp(t, t, 0.25); }, x), 0u);
}

TEST(CompileCost, LongChainsAreCutIntoEqualParts) {
  const auto program = [](at::Tensor t) {
    for (int i = 0; i < 400; ++i) t = (t * 1.01 + 0.5).sin();
    return t;
  };
  const Compiled compiled = compile(program);
  const at::Tensor x = torch::randn({70});
  EXPECT_TRUE(torch::allclose(compiled(x).toTensor(), program(x), 1e-4, 1e-4));
  EXPECT_THAT(compiled.stage("expressions"), HasSubstr("kernel_9 is kernel_0\n"));
}

TEST(CompileCost, EqualGroupsShareTheirKernel) {
  const at::Tensor w = torch::randn({16, 16}) / 4;
  const at::Tensor x = torch::randn({8, 16});
  const auto program = [w](at::Tensor t) {
    for (int i = 0; i < 4; ++i) t = torch::mm(torch::sigmoid(t) * torch::tanh(t) + 0.5, w);
    return torch::sigmoid(t) * torch::tanh(t) + 0.25;  // another number
  };
  const Compiled compiled = compile(program);
  compiled(x);
  EXPECT_TRUE(torch::allclose(compiled(x).toTensor(), program(x), 1e-5, 1e-6));
  const std::string stage = compiled.stage("expressions");
  for (const char* twin : {"kernel_1", "kernel_2", "kernel_3"})
    EXPECT_THAT(stage, HasSubstr(std::string(twin) + " is kernel_0\n"));
  EXPECT_THAT(stage, Not(HasSubstr("kernel_4 is")));
  // Each counts its own calls.
  EXPECT_THAT(compiled.explain(), HasSubstr("kernel_0: 2 calls of machine code"));
  EXPECT_THAT(compiled.explain(), HasSubstr("kernel_3: 2 calls of machine code"));
  // Another size, and a dtype that the example had not.
  const at::Tensor other = torch::randn({3, 16});
  EXPECT_TRUE(torch::allclose(compiled(other).toTensor(), program(other), 1e-5, 1e-6));
}

TEST(CompileCost, GroupsOfOtherSizesOrStridesDoNot) {
  const at::Tensor x = torch::randn({8, 16});
  const auto cell = [](const at::Tensor& t) { return torch::sigmoid(t) * torch::tanh(t) + 0.5; };
  const auto program = [cell](at::Tensor t) {
    const at::Tensor square = torch::mm(cell(t), t.t());           // 8 x 8
    const at::Tensor turned = torch::mm(t.t(), cell(square)).t();  // 8 x 16, columns adjacent
    return cell(turned);
  };
  const Compiled compiled = compile(program);
  for (int run = 0; run < 2; ++run)
    EXPECT_TRUE(torch::allclose(compiled(x).toTensor(), program(x), 1e-5, 1e-6));
  EXPECT_EQ(compiled(x).toTensor().strides(), program(x).strides());
  EXPECT_THAT(compiled.stage("expressions"), Not(HasSubstr(" is kernel_")));
}

TEST(CompileCost, VectorsBesideEachOtherGiveTheSameNumbers) {
  const auto program = [](at::Tensor t) {
    const at::Tensor x = torch::tanh(torch::exp(t * 0.5) + t);
    return torch::sigmoid(torch::gelu(x) * t + 1.0) * t;
  };
  const at::Tensor many = torch::randn({3, 20011});  // a rest, too
  const Compiled large = compile(program);
  large(many);
  const at::Tensor found = large(many).toTensor();
  EXPECT_TRUE(torch::allclose(found, program(many), 1e-5, 1e-6));
  EXPECT_THAT(large.stage("llvm"), HasSubstr("main"));
  // Few elements have code of their own, and the same results.
  const Compiled small = compile(program);
  small(many.narrow(1, 0, 50).contiguous());
  EXPECT_THAT(small.stage("llvm"), Not(HasSubstr("main")));
  for (std::int64_t at : {0, 48, 64, 19990, 20000}) {
    const std::int64_t count = std::min<std::int64_t>(50, 20011 - at);
    EXPECT_TRUE(torch::equal(small(many.narrow(1, at, count).contiguous()).toTensor(),
                             found.narrow(1, at, count)))
        << at;
  }
}

// What `make bench-kernels` divides by the rates of the machine.
TEST(CompileCost, InstructionsOfAKernelAreCounted) {
  const Compiled compiled = compile([](at::Tensor x) { return (x * 2 + 1) / (x - 3); });
  compiled(torch::randn({1000}));
  const bool wide = compiled.stage("llvm").find("<16 x float>") != std::string::npos;
  const bench::VectorCounts each = bench::vector_work(compiled.stage("llvm"));
  const double vector = wide ? 16 : 8;
  EXPECT_DOUBLE_EQ(each.products * vector, 1);
  EXPECT_DOUBLE_EQ(each.others * vector, 2);
  EXPECT_DOUBLE_EQ(each.divisions * vector, 1);
  const bench::VectorRates rates{.products = 2, .divisions = 1, .all = 4};
  EXPECT_DOUBLE_EQ(rates.milliseconds({.products = 4, .divisions = 1, .others = 2}, 3), 6);
}

}  // namespace
}  // namespace fx
