#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <vector>

#include "fx/compile/compile.h"
#include "tests/compile/eager_check.h"

// Kernels that read their inputs at other indices: slices, concatenations, paddings, gathers.
// Single operators are in kernel_test.cpp; here several in one kernel, and other sizes behind the
// first.
namespace fx {
namespace {

using ::testing::HasSubstr;

using Tensors = std::vector<at::Tensor>;
using Program = std::function<at::Tensor(const Tensors&)>;

std::shared_ptr<GraphModule> capture(const Program& program, const Tensors& example) {
  using at::Tensor;
  switch (example.size()) {
    case 1:
      return make_fx([&](const Tensor& a) { return program({a}); }, example);
    case 2:
      return make_fx([&](const Tensor& a, const Tensor& b) { return program({a, b}); }, example);
    default:
      return make_fx(
          [&](const Tensor& a, const Tensor& b, const Tensor& c) { return program({a, b, c}); },
          example);
  }
}

// Compiles a program of the tensors of `calls[0]` as a graph of operators and compares all calls
// with eager; returns what was compiled.
Compiled check(const Program& program, const std::vector<Tensors>& calls,
               const CompileOptions& options = {}) {
  torch::NoGradGuard no_grad;
  const auto module = capture(program, calls[0]);
  module->set_input_guards({});  // other sizes are the point
  const Compiled fast = compile(module, options);
  for (const Tensors& call : calls) {
    const at::Tensor wanted = program(call);
    for (int run = 0; run < 2; ++run) {
      const Values inputs(call.begin(), call.end());
      const at::Tensor actual = fast(inputs).toTensor();
      EXPECT_EQ(loops::difference(actual, wanted, false), "") << fast.explain();
      EXPECT_EQ(actual.strides(), wanted.strides());
    }
  }
  return fast;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// How many kernels there are, and how many of their calls ran as operators.
std::size_t kernels(const Compiled& fast) {
  return count(fast.explain(), " calls of machine code");
}
std::size_t kernels_without_fallback(const Compiled& fast) {
  return count(fast.explain(), " of machine code, 0 of operators");
}

at::Tensor rope(const Tensors& x) {
  const Tensors halves = x[0].chunk(2, -1);
  return torch::cat({halves[0] * x[1] - halves[1] * x[2], halves[1] * x[1] + halves[0] * x[2]}, -1);
}

Tensors rope_inputs(std::int64_t rows, std::int64_t size) {
  return {torch::randn({2, rows, size}), torch::randn({rows, size / 2}),
          torch::randn({rows, size / 2})};
}

TEST(Index, RotaryEmbeddingIsOneKernelForAllSizes) {
  const Compiled fast = check(
      rope, {rope_inputs(5, 16), rope_inputs(7, 64), rope_inputs(33, 6), rope_inputs(2, 500)});
  EXPECT_EQ(kernels(fast), 1u) << fast.explain();
  EXPECT_EQ(kernels_without_fallback(fast), 1u) << fast.explain();
  EXPECT_EQ(fast.num_kernel_codes(), 1u);
  EXPECT_THAT(fast.stage("loops"), HasSubstr(" if %"));
}

TEST(Index, HalvesRotatedInTheMiddle) {
  const Program rotate = [](const Tensors& x) {
    const Tensors halves = x[0].chunk(2, -1);
    return x[0] * x[1] + torch::cat({-halves[1], halves[0]}, -1) * x[2];
  };
  const auto inputs = [](std::int64_t rows, std::int64_t size) {
    return Tensors{torch::randn({rows, size}), torch::randn({rows, size}),
                   torch::randn({rows, size})};
  };
  const Compiled fast = check(rotate, {inputs(4, 8), inputs(3, 70), inputs(100, 34)});
  EXPECT_EQ(kernels(fast), 1u) << fast.explain();
  EXPECT_EQ(kernels_without_fallback(fast), 1u) << fast.explain();
  EXPECT_EQ(fast.num_kernel_codes(), 1u);
}

TEST(Index, GatedUnitsOfSlices) {
  const Program gated = [](const Tensors& x) {
    const std::int64_t half = x[0].size(1) / 2;
    return torch::silu(x[0].narrow(1, 0, half)) * x[0].narrow(1, half, half).flip(1) + 1;
  };
  check(gated, {{torch::randn({3, 10})}, {torch::randn({40, 10})}});
  const Program chunks = [](const Tensors& x) {
    const Tensors parts = x[0].chunk(3, 1);
    return (torch::tanh(parts[0]) * parts[1] + parts[2].exp()).relu();
  };
  const Compiled fast =
      check(chunks, {{torch::randn({3, 12})}, {torch::randn({4, 27})}, {torch::randn({2, 99, 3})}});
  EXPECT_EQ(kernels(fast), 1u);
}

TEST(Index, SlicesAreClampedAsSizesShrink) {
  const Program slices = [](const Tensors& x) {
    using torch::indexing::Slice;
    return torch::exp(x[0].index({Slice(1, 6, 2)})) + 1;
  };
  check(slices, {{torch::randn({9})},
                 {torch::randn({5})},
                 {torch::randn({4})},
                 {torch::randn({3})},
                 {torch::randn({70})}});
  const Program from_the_end = [](const Tensors& x) {
    using torch::indexing::Slice;
    return torch::exp(x[0].index({Slice(-3, torch::indexing::None)})) * 2;
  };
  check(from_the_end, {{torch::randn({9})},
                       {torch::randn({3})},
                       {torch::randn({2})},
                       {torch::randn({1})},
                       {torch::randn({90})}});
}

TEST(Index, ConcatenationOfDifferentSizes) {
  const Program joined = [](const Tensors& x) {
    return torch::relu(torch::cat({x[0].sigmoid(), x[1], x[2] * 2}, 1)) + 1;
  };
  const auto inputs = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return Tensors{torch::randn({3, a}), torch::randn({3, b}), torch::randn({3, c})};
  };
  const Compiled fast =
      check(joined, {inputs(2, 3, 4), inputs(40, 3, 17), inputs(5, 64, 2), inputs(100, 100, 100)});
  EXPECT_EQ(kernels(fast), 1u) << fast.explain();
  EXPECT_EQ(fast.num_kernel_codes(), 1u);
}

TEST(Index, ConcatenationAlongOuterDimensionsAndStacks) {
  const Program outer = [](const Tensors& x) {
    return torch::cat({x[0] + 1, torch::stack({x[1], x[1].exp()}, 0)}, 0).tanh() * 2;
  };
  check(outer,
        {{torch::randn({3, 20}), torch::randn({20})}, {torch::randn({6, 33}), torch::randn({33})}});
}

TEST(Index, PaddingThenNorm) {
  const Program padded = [](const Tensors& x) {
    const at::Tensor wide = torch::constant_pad_nd(x[0], {2, 3}, 1.5);
    return torch::softmax(wide * 2, -1) + torch::constant_pad_nd(x[0].exp(), {2, 3}, 0.5);
  };
  check(padded, {{torch::randn({4, 9})}, {torch::randn({7, 40})}});
}

TEST(Index, EmbeddingBehindWhichOthersFollow) {
  const Program embed = [](const Tensors& x) {
    const at::Tensor rows = torch::embedding(x[0], x[1]) + x[2];
    return torch::layer_norm(rows, {rows.size(-1)}) * 2;
  };
  const auto inputs = [](std::int64_t words, std::int64_t length) {
    return Tensors{torch::randn({words, 24}), torch::randint(words, {3, length}),
                   torch::randn({length, 24})};
  };
  const Compiled fast = check(embed, {inputs(10, 5), inputs(50, 9), inputs(7, 40)});
  EXPECT_EQ(kernels(fast), 1u) << fast.explain();
  EXPECT_EQ(kernels_without_fallback(fast), 1u) << fast.explain();
}

TEST(Index, SumsOfGatheredRows) {
  const Program bags = [](const Tensors& x) {
    return torch::embedding(x[0], x[1]).sum(1).relu() * 0.5;
  };
  const auto inputs = [](std::int64_t bags_of, std::int64_t length) {
    return Tensors{torch::randn({90, 40}), torch::randint(90, {bags_of, length})};
  };
  const Compiled fast = check(bags, {inputs(4, 6), inputs(9, 100)});
  EXPECT_EQ(kernels(fast), 1u) << fast.explain();
}

TEST(Index, IndicesOutOfRangeGiveEagersError) {
  const Program chosen = [](const Tensors& x) { return (x[0].index({x[1]}) * 2 + 1).exp(); };
  const at::Tensor values = torch::randn({6, 5});
  torch::NoGradGuard no_grad;
  const auto module = capture(chosen, {values, torch::tensor({0L, 5L, -6L, 2L})});
  const Compiled fast = compile(module);
  for (const std::int64_t index : {0L, 5L, -1L, -6L}) {
    const at::Tensor at = torch::tensor({1L, index, 2L, 3L});
    EXPECT_TRUE(torch::allclose(fast(values, at).toTensor(), chosen({values, at})));
  }
  for (const std::int64_t index : {6L, -7L, 1L << 40, std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()}) {
    const at::Tensor at = torch::tensor({1L, index, 2L, 3L});
    EXPECT_ANY_THROW(chosen({values, at}));
    EXPECT_ANY_THROW(fast(values, at)) << index;
  }
}

TEST(Index, TransposedHeadsAreReadWhereTheyLie) {
  const Program merged = [](const Tensors& x) {
    const std::int64_t b = x[0].size(0);
    const std::int64_t t = x[0].size(2);
    return x[0].transpose(1, 2).reshape({b, t, -1}).sigmoid() * x[1] + 1;
  };
  check(merged, {{torch::randn({2, 3, 5, 8}), torch::randn({2, 5, 24})}});
  const Program split = [](const Tensors& x) {
    const std::int64_t b = x[0].size(0);
    const std::int64_t t = x[0].size(1);
    return (x[0].view({b, t, 3, 8}).transpose(1, 2) * x[1]).tanh() + 1;
  };
  const Compiled fast = check(split, {{torch::randn({2, 5, 24}), torch::randn({2, 3, 5, 8})}});
  EXPECT_EQ(kernels_without_fallback(fast), 1u) << fast.explain();
}

TEST(Index, MasksOfTriangles) {
  const Program causal = [](const Tensors& x) {
    return torch::softmax(x[0].tril() + torch::ones_like(x[0]).triu(1) * -1e9, -1);
  };
  check(causal, {{torch::randn({2, 9, 9})}, {torch::randn({3, 40, 40})}});
}

TEST(Index, PlacesOfExtrema) {
  const Program best = [](const Tensors& x) {
    const auto [value, place] = torch::max(x[0] * 2 + 1, -1);
    return value + place;
  };
  check(best, {{torch::randn({5, 30})}, {torch::randn({40, 7})}, {torch::zeros({3, 100})}});
}

TEST(Index, StepsCanBeLeftOutAndAreTimed) {
  const CompileOptions options{.disable = {"fusion", "cse"}};
  const Compiled slow = check(rope, {rope_inputs(5, 16)}, options);
  EXPECT_EQ(kernels(slow), 0u);
  EXPECT_THAT(slow.explain(), ::testing::Not(HasSubstr("cse")));
  std::vector<std::string> names;
  for (const CompileStep& step : slow.steps()) {
    names.push_back(step.name);
    EXPECT_GE(step.milliseconds, 0);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("passes", "example run", "undo_inplace", "fusion",
                                            "kernels", "clean up"));
}

// Windows read an element several times: what gives it is not computed again for each, and what
// follows joins their loops.
TEST(Index, PoolingKeepsItsArgumentsLoops) {
  const Program program = [](const Tensors& x) {
    return torch::max_pool2d(torch::exp(x[0]) + 1, {3, 3}, {2, 2}, {1, 1}).relu() * 2;
  };
  const Compiled fast = check(program, {{torch::randn({2, 3, 20, 18})},
                                        {torch::randn({1, 2, 7, 33})},
                                        {torch::randn({2, 3, 3, 2})}});
  EXPECT_EQ(kernels(fast), 2u) << fast.explain();
  // Also where the sizes are the same and a third operator reads both.
  const Program same = [](const Tensors& x) {
    const at::Tensor y = torch::exp(x[0]) + 1;
    return torch::avg_pool2d(y, {3, 3}, {1, 1}, {1, 1}) - y;
  };
  EXPECT_EQ(kernels(check(same, {{torch::randn({2, 3, 20, 18})}, {torch::randn({1, 4, 9, 9})}})),
            2u);
  const Program mean = [](const Tensors& x) {
    return torch::avg_pool2d(x[0], {2, 2}) * 3 - torch::max_pool2d(x[0], {2, 2});
  };
  EXPECT_EQ(kernels(check(mean, {{torch::randn({2, 3, 20, 18})},
                                 {torch::randn({4, 9, 9})},
                                 {torch::randn({2, 3, 20, 18}).transpose(1, 3)}})),
            1u);
  // No window fits: eager's error.
  const Compiled last =
      compile([](const at::Tensor& x) { return torch::avg_pool2d(x, {3, 3}) * 2; });
  torch::NoGradGuard no_grad;
  last({torch::randn({2, 5, 6})});
  EXPECT_ANY_THROW(last({torch::randn({2, 5, 2})}));
}

// The windows of an adaptive pooling have the sizes of the example, or are the whole.
TEST(Index, AdaptivePooling) {
  const Program whole = [](const Tensors& x) {
    return torch::adaptive_avg_pool2d(torch::relu(x[0]), {1, 1}).sigmoid() * 2;
  };
  const Compiled fast =
      check(whole, {{torch::randn({2, 3, 20, 18})}, {torch::randn({5, 2, 7, 9})}});
  EXPECT_EQ(kernels(fast), 1u) << fast.explain();
  EXPECT_EQ(kernels_without_fallback(fast), 1u) << fast.explain();
  const Program parts = [](const Tensors& x) {
    return torch::adaptive_avg_pool2d(x[0], {4, 2}) +
           std::get<0>(torch::adaptive_max_pool2d(x[0], {4, 2}));
  };
  check(parts, {{torch::randn({2, 3, 16, 6})}, {torch::randn({1, 4, 16, 6})}});
  // Windows of different sizes.
  check(parts, {{torch::randn({2, 3, 15, 7})}});
  const Program places = [](const Tensors& x) {
    const auto [most, place] = torch::max_pool2d_with_indices(x[0], {3, 2}, {2, 2}, {1, 1}, {2, 1});
    return most * (place % 7);
  };
  EXPECT_EQ(kernels(check(places, {{torch::randn({2, 3, 20, 18})},
                                   {torch::full({1, 2, 9, 9}, -INFINITY)},
                                   {torch::randn({2, 20, 18, 3}).permute({0, 3, 1, 2})}})),
            1u);
}

// Values for places that a tensor holds: the last of equal places wins, or all are added in order.
TEST(Index, Scatters) {
  const auto inputs = [](std::int64_t rows, std::int64_t count, std::int64_t width) {
    return Tensors{torch::randn({rows, width}), torch::randint(0, rows, {count}, at::kLong),
                   torch::randn({count, width})};
  };
  const Program programs[] = {
      [](const Tensors& x) { return torch::index_add(x[0], 0, x[1], torch::gelu(x[2])); },
      [](const Tensors& x) { return torch::index_put(x[0] + 1, {x[1] - 2}, x[2].exp(), true); },
      [](const Tensors& x) {
        return torch::scatter_add(x[0], 0, x[1].unsqueeze(1).expand_as(x[2]), x[2].relu());
      },
      [](const Tensors& x) {
        const at::Tensor index = x[1].unsqueeze(1) * (x[2] > 0);
        return torch::scatter_reduce(x[0], 0, index, x[2].relu(), "amax");
      }};
  for (const Program& program : programs)
    check(program,
          {inputs(5, 30, 7), inputs(40, 300, 129), inputs(300, 9, 64), inputs(30, 900, 18)});
  // Which of equal places wins is eager's choice: every place once.
  const auto apart = [](std::int64_t rows, std::int64_t count, std::int64_t width) {
    return Tensors{torch::randn({rows, width}), torch::randperm(rows).slice(0, 0, count),
                   torch::randn({count, width})};
  };
  const Program last[] = {
      [](const Tensors& x) { return torch::index_copy(x[0], 0, x[1], x[2] * 2); },
      [](const Tensors& x) { return torch::index_put(x[0], {x[1]}, x[2]) * x[0]; },
      [](const Tensors& x) {
        return torch::scatter(x[0].sigmoid(), 0, x[1].unsqueeze(1).expand_as(x[2]), x[2] * 3);
      }};
  for (const Program& program : last)
    check(program, {apart(50, 30, 7), apart(400, 300, 129), apart(9, 9, 64)});
  const Compiled fast = check(programs[0], {inputs(5, 30, 7), inputs(40, 300, 1000)});
  EXPECT_EQ(kernels(fast), 1u) << fast.explain();
  EXPECT_EQ(kernels_without_fallback(fast), 1u) << fast.explain();
  EXPECT_THAT(fast.stage("loops"), HasSubstr("nest kernel_0_scatter("));
  // Out of range: eager's error, and nothing is written outside.
  torch::NoGradGuard no_grad;
  Tensors wrong = inputs(5, 30, 7);
  wrong[1][29] = 5;
  EXPECT_ANY_THROW(fast(Values(wrong.begin(), wrong.end())));
  wrong[1][29] = -1;
  EXPECT_ANY_THROW(fast(Values(wrong.begin(), wrong.end())));
}

TEST(Index, ScattersAreOfOneMindOnAnyNumberOfThreads) {
  torch::NoGradGuard no_grad;
  const int threads = at::get_num_threads();
  const Program program = [](const Tensors& x) {
    return torch::index_add(x[0], 0, x[1], x[2] * 2);
  };
  for (const auto type : {at::kFloat, at::kDouble, at::kInt}) {
    const Tensors in = {(torch::randn({50, 700}) * 100).to(type),
                        torch::randint(0, 50, {3000}, at::kLong),
                        (torch::randn({3000, 700}) * 100).to(type)};
    at::Tensor first;
    for (const int count : {1, 2, 7}) {
      at::set_num_threads(count);
      const Compiled fast = compile(capture(program, in));
      const Values inputs(in.begin(), in.end());
      fast(inputs);
      const at::Tensor out = fast(inputs).toTensor();
      if (count == 1) first = out;
      EXPECT_TRUE(out.equal(first)) << count;
    }
    at::set_num_threads(threads);
    // Rows are added one after the other, each rounded: as eager does.
    EXPECT_TRUE(first.equal(program(in)));
  }
}

// Interpolation by powers of two is a choice of elements, for all sizes; eager computes the places
// in floats, and in whatever type it likes for halves.
TEST(Index, NearestNeighboursAreRepeated) {
  using Scales = std::vector<double>;
  const auto twice = [](const at::Tensor& x) {
    return at::upsample_nearest2d(x, std::nullopt, Scales{2, 2});
  };
  const auto image = [](std::int64_t c, std::int64_t h, std::int64_t w, at::ScalarType type) {
    return torch::randn({2, c, h, w}).to(type);
  };
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const Program up = [&](const Tensors& x) { return twice(x[0]) * 2; };
    const Compiled fast = check(up, {{image(3, 5, 7, type)},
                                     {image(2, 33, 700, type)},
                                     {image(4, 2, 3001, type)},
                                     {image(3, 40, 2, type)}});
    EXPECT_EQ(kernels_without_fallback(fast), 1u) << fast.explain();
    EXPECT_EQ(fast.num_kernel_codes(), 1u);
    check(up, {{image(6, 5, 7, type).contiguous(at::MemoryFormat::ChannelsLast)},
               {image(6, 9, 4, type).transpose(2, 3)},
               {image(6, 9, 4, type).slice(3, 0, 4, 2)}});
    const Compiled alone = check([&](const Tensors& x) { return twice(x[0]); },
                                 {{image(3, 5, 7, type)}, {image(3, 8, 9, type)}});
    EXPECT_EQ(kernels(alone), at::elementSize(type) == 2 ? 0u : 1u) << alone.explain();
    // Neither the sizes that are given nor the scales are those of all sizes.
    check([](const Tensors& x) { return at::upsample_nearest2d(x[0], {10, 28}, 2.0, 4.0); },
          {{image(3, 5, 7, type)}, {image(3, 5, 7, type)}});
    check(
        [](const Tensors& x) {
          return at::relu(at::_upsample_nearest_exact2d(x[0], std::nullopt, Scales{8, 1})) + x[1];
        },
        {{image(1, 3, 5, type), torch::randn({24, 5}).to(type)},
         {image(1, 3, 5, type), torch::randn({24, 1}).to(type)}});
    check(
        [](const Tensors& x) {
          return at::_upsample_nearest_exact1d(x[0] * 2, std::nullopt, Scales{4}) * 3;
        },
        {{torch::randn({2, 3, 17}).to(type)}, {torch::randn({2, 3, 20000}).to(type)}});
    check([](const Tensors& x) { return at::upsample_nearest1d(x[0], {34}) * 3 + 1; },
          {{torch::randn({2, 3, 17}).to(type)}, {torch::randn({4, 1, 17}).to(type)}});
  }
  // Longer than what floats count exactly: the operator, whatever it gives.
  const at::Tensor x = torch::randn({1, 1, 5});
  const Compiled fast = check(
      [](const Tensors& t) {
        return at::upsample_nearest1d(t[0], std::nullopt, Scales{2}) * 2 + 1;
      },
      {{x}, {torch::randn({1, 1, 140000})}});
  EXPECT_THAT(fast.explain(), HasSubstr(" of machine code, 2 of operators")) << fast.explain();
}

TEST(Index, WhatInterpolationRepeatsIsComputedOnce) {
  const Program program = [](const Tensors& x) {
    return at::upsample_nearest2d(torch::exp(x[0]) * 2, std::nullopt, std::vector<double>{2, 2}) +
           x[1];
  };
  const Compiled fast =
      check(program, {{torch::randn({2, 3, 8, 9}), torch::randn({2, 3, 16, 18})}});
  EXPECT_EQ(kernels_without_fallback(fast), 2u) << fast.explain();
}

TEST(Index, OtherInterpolationIsLeftToItsOperators) {
  const at::Tensor x = torch::randn({2, 3, 6, 8});
  const std::vector<double> half{1.5, 1.5}, uneven{2, 3};
  for (const Program& program :
       {Program([&](const Tensors& t) { return at::upsample_nearest2d(t[0], std::nullopt, half); }),
        Program(
            [&](const Tensors& t) { return at::upsample_nearest2d(t[0], std::nullopt, uneven); }),
        Program([](const Tensors& t) { return at::upsample_nearest2d(t[0], {3, 4}); }),
        Program([](const Tensors& t) { return at::upsample_nearest2d(t[0], {12, 16}, 2.0, 2.5); }),
        Program([](const Tensors& t) { return at::upsample_bilinear2d(t[0], {12, 16}, false); })}) {
    const Compiled fast = check(program, {{x}});
    EXPECT_EQ(fast.num_kernel_codes(), 0u) << fast.explain();
  }
}

}  // namespace
}  // namespace fx
