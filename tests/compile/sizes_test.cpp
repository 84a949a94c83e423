#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "fx/capture/symbolic_trace.h"
#include "fx/compile/compile.h"
#include "fx/compile/jit.h"

// New sizes cost no compilation: behind the first call of each combination of sizes of 1 and of
// contiguity no machine code is made, however many elements, rows and columns there are.
namespace fx {
namespace {

using Make = std::function<at::Tensor(std::int64_t n)>;

struct Sized {
  const char* name;
  std::shared_ptr<GraphModule> program;
  std::vector<Make> inputs;  // of a size between 2 and 100,000
  double tolerance = 1e-5;
};

// About 100,000 elements at most, so that one of both sizes is large and the other is small.
std::int64_t beside(std::int64_t n) { return std::max<std::int64_t>(2, 100'000 / n); }

std::vector<Sized> programs() {
  using at::Tensor;
  const Make line = [](std::int64_t n) { return torch::randn({n}); };
  const Make rows = [](std::int64_t n) { return torch::randn({3, n}); };
  const Make columns = [](std::int64_t n) { return torch::randn({n, 5}); };
  const Make many_rows = [](std::int64_t n) { return torch::randn({beside(n), n}); };
  const Make cube = [](std::int64_t n) { return torch::randn({2, n, 3}); };
  const auto heavy = [](Proxy x) {
    const Tensor t = torch::tanh(torch::exp(static_cast<Tensor>(x) * 0.5) + x);
    return torch::sigmoid(torch::gelu(t) * x + 1.0) * x;
  };
  return {
      {"much work", symbolic_trace(heavy), {line}},
      {"much work in rows", symbolic_trace(heavy), {many_rows}},
      {"little work",
       symbolic_trace([](Proxy x) { return torch::relu(x * 2.0 + 1.0) * x; }),
       {line}},
      {"a row beside each row",
       symbolic_trace([](Proxy x, Proxy b) { return torch::gelu(x + b); }),
       {many_rows, line}},
      {"sum of all", symbolic_trace([](Proxy x) { return (x * 2.0 + x).sum(); }), {line}, 1e-3},
      {"sums of rows", symbolic_trace([](Proxy x) { return (x * x).sum(-1).sqrt(); }), {rows}},
      {"softmax of rows",
       symbolic_trace([](Proxy x) { return torch::softmax(x * 2.0, -1); }),
       {rows}},
      {"softmax of many rows",
       symbolic_trace([](Proxy x) { return torch::softmax(x * 2.0, -1); }),
       {many_rows}},
      {"sums of few columns",
       symbolic_trace([](Proxy x) { return (x * x).sum(0); }),
       {columns},
       1e-3},
      {"sums of columns",
       symbolic_trace([](Proxy x) { return (x * x).sum(0); }),
       {many_rows},
       1e-3},
      {"softmax of columns",
       symbolic_trace([](Proxy x) { return torch::softmax(x * 2.0, 0); }),
       {many_rows}},
      {"inner axis", symbolic_trace([](Proxy x) { return torch::softmax(x * 2.0, 1); }), {cube}},
      {"halves of rows, which lie apart",
       symbolic_trace([](Proxy x) {
         const std::vector<Tensor> halves = static_cast<Tensor>(x).chunk(2, -1);
         return torch::silu(halves[0]) * halves[1];
       }),
       {[](std::int64_t n) { return torch::randn({3, 2 * n}); }}},
      {"a gather",
       symbolic_trace(
           [](Proxy x, Proxy i) { return torch::relu(torch::embedding(x, i) * 2.0 + 1.0); }),
       {[](std::int64_t n) { return torch::randn({7, n}); },
        [](std::int64_t n) { return torch::randint(7, {std::min<std::int64_t>(n, 50)}); }}},
      {"a scan",
       symbolic_trace([](Proxy x) { return torch::cumsum(x * 2.0, 0) + 1.0; }),
       {columns},
       1e-3},
      {"transposed",
       symbolic_trace([](Proxy x) { return torch::gelu(static_cast<Tensor>(x).t() * 2.0); }),
       {many_rows}},
  };
}

const std::vector<std::int64_t> kSizes = {
    2,    3,    5,      7,      15,     16,     17,     31,     63,     64,     65,     100,
    127,  128,  129,    255,    256,    257,    511,    512,    513,    1000,   1024,   2049,
    4096, 8191, 10'000, 16'384, 20'000, 32'767, 32'768, 32'769, 50'000, 65'536, 100'000};

void walk(const Sized& test, const std::vector<std::int64_t>& sizes) {
  SCOPED_TRACE(test.name);
  const Compiled fast = compile(*test.program);
  std::uint64_t codes = 0;
  std::uint64_t all_codes = 0;
  bool first = true;
  for (const std::int64_t n : sizes) {
    Values inputs;
    for (const Make& make : test.inputs) inputs.push_back(make(n));
    const at::Tensor found = fast(inputs).toTensor();
    const at::Tensor wanted = test.program->forward(inputs).toTensor();
    ASSERT_EQ(found.sizes(), wanted.sizes());
    EXPECT_LE((found - wanted).abs().max().item<double>(),
              test.tolerance * (1 + wanted.abs().max().item<double>()))
        << n;
    if (first) {
      codes = fast.num_kernel_codes();
      all_codes = loops::num_compilations();
      EXPECT_GT(codes, 0u) << fast.explain();
    }
    first = false;
    EXPECT_EQ(fast.num_kernel_codes(), codes) << "size " << n;
    EXPECT_EQ(loops::num_compilations(), all_codes) << "size " << n;
  }
  EXPECT_EQ(fast.num_compilations(), 1u);
  EXPECT_NE(fast.explain().find(", 0 of operators"), std::string::npos) << fast.explain();
}

TEST(CompiledSizes, S0_27_growing_sizes_use_the_code_of_the_first_call) {
  const torch::NoGradGuard no_grad;
  for (const Sized& test : programs()) walk(test, kSizes);
}

TEST(CompiledSizes, S0_27_shrinking_sizes_do_too) {
  const torch::NoGradGuard no_grad;
  for (const Sized& test : programs()) walk(test, {kSizes.rbegin(), kSizes.rend()});
}

// A batch of one and another order in memory make one more code each, at their first call.
TEST(CompiledSizes, S0_27_sizes_of_one_and_strides_make_one_code_each) {
  const torch::NoGradGuard no_grad;
  const Compiled fast = compile(*symbolic_trace(
      [](Proxy x, Proxy y) { return torch::softmax(static_cast<at::Tensor>(x) * 2.0 + y, -1); }));
  const auto call = [&](const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor found = fast(x, y).toTensor();
    EXPECT_TRUE(torch::allclose(found, torch::softmax(x * 2.0 + y, -1), 1e-5, 1e-6));
    return fast.num_kernel_codes();
  };
  std::uint64_t codes = 0;
  const auto walk_class = [&](const std::function<std::uint64_t(std::int64_t)>& at) {
    const std::uint64_t before = codes;
    codes = at(2);
    EXPECT_EQ(codes, before + 1);
    for (const std::int64_t n : {3, 64, 129, 1000, 20'000, 100'000}) EXPECT_EQ(at(n), codes) << n;
  };
  walk_class([&](std::int64_t n) { return call(torch::randn({4, n}), torch::randn({4, n})); });
  walk_class([&](std::int64_t n) { return call(torch::randn({4, n}), torch::randn({1, n})); });
  walk_class(
      [&](std::int64_t n) { return call(torch::randn({n, 4}).t(), torch::randn({n, 4}).t()); });
}

// Kernels that differ only in what their scans do, or in where they store, do not share code.
TEST(CompiledSizes, ScansOfOtherKindsHaveOtherCode) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::rand({6, 50}, at::kDouble) + 0.5;
  const std::vector<std::function<at::Tensor(const at::Tensor&)>> programs = {
      [](const at::Tensor& t) { return torch::cumsum(t * 2, 0); },
      [](const at::Tensor& t) { return torch::cumprod(t * 2, 0); },
      [](const at::Tensor& t) { return std::get<0>(torch::cummax(t * 2, 0)); },
      [](const at::Tensor& t) { return std::get<0>(torch::cummin(t * 2, 0)); }};
  std::vector<Compiled> compiled;  // all alive, so that none of their code goes
  for (const auto& program : programs) compiled.push_back(compile(program));
  for (int call = 0; call < 2; ++call)
    for (std::size_t i = 0; i < programs.size(); ++i)
      EXPECT_TRUE(torch::equal(compiled[i](x).toTensor(), programs[i](x))) << i;
}

}  // namespace
}  // namespace fx
