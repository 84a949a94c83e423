#include <gtest/gtest.h>
#include <torch/torch.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fx/compile/jit.h"
#include "fx/compile/kernel.h"

namespace fx::loops {
namespace {

// FXCPP_VECTOR_BITS=256 in the environment runs all of this with AVX2's vectors.

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Function {
  Op op;
  double (*exact)(double);
  at::Tensor (*eager)(const at::Tensor&);
  /// What was measured on these inputs with either width, rounded up.
  double max_ulp;
};

#define FX_FUNCTION(op, name, max_ulp)                                                         \
  {op, [](double x) { return std::name(x); }, [](const at::Tensor& x) { return at::name(x); }, \
   max_ulp}

const Function kFunctions[] = {
    FX_FUNCTION(Op::kExp, exp, 0.83),     FX_FUNCTION(Op::kExp2, exp2, 0.78),
    FX_FUNCTION(Op::kExpm1, expm1, 1.17), FX_FUNCTION(Op::kLog, log, 0.84),
    FX_FUNCTION(Op::kLog2, log2, 1.06),   FX_FUNCTION(Op::kLog10, log10, 1.08),
    FX_FUNCTION(Op::kLog1p, log1p, 0.86), FX_FUNCTION(Op::kSin, sin, 1.09),
    FX_FUNCTION(Op::kCos, cos, 1.11),     FX_FUNCTION(Op::kTan, tan, 1.39),
    FX_FUNCTION(Op::kAsin, asin, 1.58),   FX_FUNCTION(Op::kAcos, acos, 1.06),
    FX_FUNCTION(Op::kAtan, atan, 1.03),   FX_FUNCTION(Op::kSinh, sinh, 1.07),
    FX_FUNCTION(Op::kCosh, cosh, 1.05),   FX_FUNCTION(Op::kTanh, tanh, 0.67),
    FX_FUNCTION(Op::kAsinh, asinh, 1.25), FX_FUNCTION(Op::kAcosh, acosh, 1.29),
    FX_FUNCTION(Op::kAtanh, atanh, 1.62), FX_FUNCTION(Op::kErf, erf, 0.76),
    FX_FUNCTION(Op::kErfc, erfc, 1.42),
};

/// Functions of two numbers.
struct Function2 {
  Op op;
  double (*exact)(double, double);
  at::Tensor (*eager)(const at::Tensor&, const at::Tensor&);
  double max_ulp;
};

const Function2 kFunctions2[] = {
    {Op::kPow, [](double x, double y) { return std::pow(x, y); },
     [](const at::Tensor& x, const at::Tensor& y) { return at::pow(x, y); }, 0.9},
    {Op::kAtan2, [](double y, double x) { return std::atan2(y, x); },
     [](const at::Tensor& y, const at::Tensor& x) { return at::atan2(y, x); }, 1.51},
};

// Every 997th float, and 64 floats on either side of each place where some function changes its
// ways: zeros, the first normal number, where results overflow, underflow or round to a constant,
// multiples of pi/2, bounds of argument reductions.
std::vector<float> inputs() {
  std::vector<float> all;
  for (std::uint64_t word = 0; word < (std::uint64_t{1} << 32); word += 997)
    all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(word)));
  const double places[] = {
      0x1p-149,  0x1p-126,   0x1p-64,   0x1p-25,  0x1p-24,   0x1p-12,     0.046875,  0.0625,
      0.125,     0.25,       0.2877,    0.34657,  0.4055,    0.5,         0.5859,    0.70710678,
      0.75,      0.78539816, 1.0,       1.41421,  1.5,       1.5707963,   1.7320508, 2.0,
      2.4142136, 3.0,        3.1415927, 3.92,     3.99,      4.0,         4.712389,  6.2831853,
      8.0,       9.02,       10.05466,  12.0,     17.32868,  17.5,        87.33655,  88.02969,
      88.37626,  88.72284,   89.0,      89.41599, 103.27893, 103.97208,   104.5,     126.0,
      127.0,     128.0,      128.5,     149.0,    149.5,     150.5,       0x1p20,    0x1p23,
      0x1p24,    0x1p60,     0x1p64,    0x1p126,  0x1.8p127, 3.4028235e38};
  const auto around = [&](float x) {
    const auto word = std::bit_cast<std::uint32_t>(x);
    for (std::uint32_t k = 0; k <= 128; ++k) all.push_back(std::bit_cast<float>(word + k - 64));
  };
  for (double place : places)
    for (double sign : {1.0, -1.0}) around(static_cast<float>(sign * place));
  for (float x : {0.0F, -0.0F, kInfinity, -kInfinity, std::nanf("")}) all.push_back(x);
  for (int k = 1; k <= 2000; ++k) all.push_back(static_cast<float>(k * M_PI_2));
  return all;
}

const at::Tensor& input_tensor() {
  static const at::Tensor tensor = torch::tensor(inputs(), at::kFloat);
  return tensor;
}

/// Pairs: all of special numbers, then random ones: any floats, moderate powers, numbers near 1
/// with large powers, integral powers.
std::vector<at::Tensor> input_pairs() {
  const float special[] = {
      0.0F,          -0.0F,   1.0F,       -1.0F,      2.0F,        -2.0F,      3.0F,
      -3.0F,         0.5F,    -0.5F,      1.5F,       -1.5F,       kInfinity,  -kInfinity,
      std::nanf(""), 1e-45F,  -1e-45F,    1e-38F,     3.4e38F,     -3.4e38F,   16777216.0F,
      -16777215.0F,  0.1F,    8388607.5F, 1.0000001F, 0.99999994F, 1e10F,      -1e10F,
      128.0F,        -149.0F, -150.0F,    127.0F,     10.0F,       -0.3333333F};
  std::vector<float> first;
  std::vector<float> second;
  for (float x : special)
    for (float y : special) {
      first.push_back(x);
      second.push_back(y);
    }
  std::mt19937 random(1);
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  const auto between = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * word() / 4294967296.0);
  };
  for (int i = 0; i < 500000; ++i) {
    first.insert(first.end(), {std::bit_cast<float>(word()), std::exp(between(-4, 4)),
                               between(0.995, 1.005), between(-10, 10)});
    second.insert(second.end(), {std::bit_cast<float>(word()), between(-30, 30),
                                 between(-15000, 15000), std::round(between(-20, 20))});
  }
  return {torch::tensor(first, at::kFloat), torch::tensor(second, at::kFloat)};
}

/// One function alone in its kernel, which takes any number of elements above one.
class FunctionKernel {
 public:
  explicit FunctionKernel(Op op, std::int64_t size = 2, std::size_t arity = 1) : op_(op) {
    TensorProgram program;
    const std::vector<std::int64_t> sizes{size};
    std::vector<Tensor> args;
    for (std::size_t i = 0; i < arity; ++i) args.push_back(program.input(at::kFloat, sizes));
    const std::vector<Tensor> outputs{program.apply(op, args)};
    kernel_ = std::make_unique<Kernel>("vector_math", program, outputs, std::vector<DimOrder>{{0}});
  }

  at::Tensor operator()(const std::vector<at::Tensor>& args) const {
    c10::SmallVector<at::Tensor, 4> out;
    if (!kernel_->run(args, out)) {
      ADD_FAILURE() << to_string(op_) << " does not take " << args[0].sizes();
      return at::full_like(args[0], -7);
    }
    return out.at(0);
  }
  at::Tensor operator()(const at::Tensor& x) const { return (*this)(std::vector<at::Tensor>{x}); }

 private:
  Op op_;
  std::unique_ptr<Kernel> kernel_;
};

/// NaN, infinities and the sign of zero are as they should be.
bool same_kind(float got, double exact) {
  const auto wanted = static_cast<float>(exact);
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
  if (std::isinf(wanted) || std::isinf(got)) return wanted == got;
  if (wanted == 0 || got == 0) return std::signbit(wanted) == std::signbit(got);
  return true;
}

/// Distance in units of the last place of a float as large as the exact result.
double ulps(float got, double exact) {
  if (!std::isfinite(got) || got == exact) return 0;
  int exponent = -200;
  if (exact != 0) std::frexp(exact, &exponent);
  return std::abs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

struct Worst {
  double ulp = 0;
  std::string at;
  std::int64_t other_kind = 0;
  std::string other_kind_at;
};

std::string digits(double x, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

/// `exact` of the element's position.
Worst compare(const std::vector<at::Tensor>& args, const at::Tensor& results,
              const std::function<double(std::int64_t)>& exact) {
  Worst worst;
  std::int64_t worst_at = -1;
  std::int64_t other_at = -1;
  const float* out = results.const_data_ptr<float>();
  for (std::int64_t i = 0; i < results.size(0); ++i) {
    const double wanted = exact(i);
    if (!same_kind(out[i], wanted)) {
      if (worst.other_kind++ == 0) other_at = i;
      continue;
    }
    const double distance = ulps(out[i], wanted);
    if (distance > worst.ulp) {
      worst.ulp = distance;
      worst_at = i;
    }
  }
  const auto place = [&](std::int64_t i) {
    std::string text;
    for (const at::Tensor& arg : args)
      if (i >= 0) text += (text.empty() ? "" : ", ") + digits(arg[i].item<float>(), "%.9g");
    return text;
  };
  worst.at = place(worst_at);
  worst.other_kind_at = place(other_at);
  return worst;
}

/// The result against the bound, and its row of the page.
std::string check(Op op, double max_ulp, const Worst& ours, const std::function<Worst()>& eager) {
  EXPECT_EQ(ours.other_kind, 0) << to_string(op) << ": another kind of number at "
                                << ours.other_kind_at;
  EXPECT_LE(ours.ulp, max_ulp) << to_string(op) << " at " << ours.at;
  EXPECT_GT(ours.ulp, max_ulp - 0.05)
      << to_string(op) << ": the bound is looser than what was measured";
  if (!std::getenv("FXCPP_UPDATE_DOCS")) return "";
  const Worst theirs = eager();
  return "| " + std::string(to_string(op)) + " | " + digits(ours.ulp, "%.3f") + " | " + ours.at +
         " | " + digits(theirs.ulp, "%.3f") + " | " + theirs.at + " | " +
         std::to_string(theirs.other_kind) + " |\n";
}

class VectorMath : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(jit_problem(), ""); }
};

TEST_F(VectorMath, ErrorsAreAsSmallAsMeasured) {
  std::string rows;
  for (const Function& function : kFunctions) {
    const at::Tensor& x = input_tensor();
    const auto worst = [&](const at::Tensor& results) {
      const float* in = x.const_data_ptr<float>();
      return compare({x}, results, [&](std::int64_t i) { return function.exact(in[i]); });
    };
    rows += check(function.op, function.max_ulp, worst(FunctionKernel(function.op)(x)),
                  [&] { return worst(function.eager(x)); });
  }
  const std::vector<at::Tensor> pairs = input_pairs();
  for (const Function2& function : kFunctions2) {
    const auto worst = [&](const at::Tensor& results) {
      const float* first = pairs[0].const_data_ptr<float>();
      const float* second = pairs[1].const_data_ptr<float>();
      return compare(pairs, results,
                     [&](std::int64_t i) { return function.exact(first[i], second[i]); });
    };
    rows += check(function.op, function.max_ulp, worst(FunctionKernel(function.op, 2, 2)(pairs)),
                  [&] { return worst(function.eager(pairs[0], pairs[1])); });
  }
  if (!rows.empty()) {
    std::ofstream page(FXCPP_SOURCE_DIR "/docs/vector-math.md");
    page
        << "# Accuracy of the functions in kernels\n\n"
           "What fused kernels compute in float32 on vectors of 16 (AVX-512) and 8 (AVX2)\n"
           "elements, compared with the C library's functions of float64 on every 997th float and\n"
           "around all thresholds, "
        << input_tensor().size(0)
        << " inputs (of two\n"
           "arguments: "
        << pairs[0].size(0)
        << " pairs of special and random numbers). An ulp is the distance of floats as large as "
           "the\n"
           "exact result. NaN, infinities and signs of zeros are the same at all of them; the "
           "last\n"
           "column says at how many they are not in eager LibTorch. Not in the table are "
           "functions\n"
           "of float64 and those that kernels call from LibTorch's own library.\n\n"
           "This page is written by `FXCPP_UPDATE_DOCS=1 build/dev/bin/test_compile\n"
           "--gtest_filter='VectorMath.*'`.\n\n"
           "| function | largest error, ulp | at | eager: largest error, ulp | at | eager: other "
           "kind of number |\n| --- | --- | --- | --- | --- | --- |\n"
        << rows;
  }
}

at::Tensor forty_numbers() {
  return torch::tensor(
      {-kInfinity, -100.0F, -88.0F, -3.5F, -1.0F, -0.7F, -1e-3F, -1e-40F, -0.0F,  0.0F,
       1e-45F,     1e-38F,  1e-9F,  0.1F,  0.3F,  0.5F,  0.9F,   1.0F,    1.25F,  2.0F,
       3.0F,       5.0F,    9.5F,   20.0F, 80.0F, 88.0F, 89.5F,  500.0F,  4e6F,   1e30F,
       kInfinity,  -2e6F,   0.62F,  1.57F, -9.0F, -4.0F, 1.1F,   0.01F,   -0.25F, std::nanf("")});
}

/// The bits, those of all NaN the same.
at::Tensor words(const at::Tensor& t) {
  return at::where(t.isnan(), at::full({}, std::nan(""), at::kFloat), t).view(at::kInt);
}

std::vector<std::pair<Op, std::size_t>> functions_and_arities() {
  std::vector<std::pair<Op, std::size_t>> functions;
  for (const Function& function : kFunctions) functions.emplace_back(function.op, 1);
  for (const Function2& function : kFunctions2) functions.emplace_back(function.op, 2);
  return functions;
}

// Vectors that are not full, and those that are gathered, give the same bits.
TEST_F(VectorMath, TailsAndStridesChangeNothing) {
  const at::Tensor special = forty_numbers();
  ASSERT_EQ(special.size(0), 40);
  const at::Tensor other = special.flip(0);
  for (const auto& [op, arity] : functions_and_arities()) {
    const FunctionKernel any(op, 2, arity);
    const FunctionKernel one(op, 1, arity);
    const std::vector<at::Tensor> both{special, other};
    std::vector<at::Tensor> args(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(arity));
    const auto mapped = [&](const std::function<at::Tensor(const at::Tensor&)>& map) {
      std::vector<at::Tensor> out;
      for (const at::Tensor& arg : args) out.push_back(map(arg));
      return out;
    };
    // The first elements of a whole number of vectors.
    const at::Tensor whole =
        any(mapped([](const at::Tensor& t) { return torch::cat({t, t, t, t}); }));
    for (std::int64_t n = 1; n <= 40; ++n) {
      const FunctionKernel& kernel = n == 1 ? one : any;
      const at::Tensor wanted = words(whole.narrow(0, 0, n));
      const at::Tensor dense =
          kernel(mapped([&](const at::Tensor& t) { return t.narrow(0, 0, n).clone(); }));
      EXPECT_TRUE(at::equal(words(dense), wanted)) << to_string(op) << " of " << n;
      const at::Tensor strided = kernel(mapped([&](const at::Tensor& t) {
        const at::Tensor spread = torch::zeros({n, 3}).select(1, 1);
        EXPECT_TRUE(n == 1 || !spread.is_contiguous());
        return spread.copy_(t.narrow(0, 0, n));
      }));
      EXPECT_TRUE(at::equal(words(strided), wanted))
          << to_string(op) << " of " << n << " with a stride";
    }
  }
}

// Where functions of the library would overflow, and on either side.
TEST_F(VectorMath, DoublesNextToOverflow) {
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor half = torch::tensor({0.5, 1.5, 700.0, 708.9, 709.1, 709.9, 710.4, 710.5, 2e8,
                                         3e8, 1e100, 1e155, 1.797e308, infinity, std::nan("")},
                                        at::kDouble);
  const at::Tensor x = torch::cat({half, -half});
  const std::pair<Op, at::Tensor> rows[] = {{Op::kSinh, at::sinh(x)},
                                            {Op::kCosh, at::cosh(x)},
                                            {Op::kAsinh, at::asinh(x)},
                                            {Op::kAcosh, at::acosh(x)}};
  for (const auto& [op, wanted] : rows) {
    TensorProgram program;
    const std::vector<std::int64_t> sizes{30};
    const Tensor result = program.apply(op, {program.input(at::kDouble, sizes)});
    const Kernel kernel("double", program, {result}, {{0}});
    c10::SmallVector<at::Tensor, 4> out;
    ASSERT_TRUE(kernel.run(std::vector<at::Tensor>{x}, out)) << to_string(op);
    for (std::int64_t i = 0; i < x.size(0); ++i) {
      const double got = out[0][i].item<double>();
      const double exact = wanted[i].item<double>();
      EXPECT_TRUE(got == exact || (std::isnan(got) && std::isnan(exact)) ||
                  std::abs(got - exact) <= 1e-15 * std::abs(exact))
          << to_string(op) << " of " << x[i].item<double>() << ": " << got << ", not " << exact;
    }
  }
}

// A kernel that also computes in float64 has half as many lanes, which are eight floats and
// AVX2's instructions with AVX-512, four with AVX2.
TEST_F(VectorMath, BesideDoublesTheSameBits) {
  const at::Tensor special = forty_numbers();
  const std::vector<std::int64_t> sizes{40};
  for (const auto& [op, arity] : functions_and_arities()) {
    TensorProgram program;
    std::vector<Tensor> args;
    std::vector<at::Tensor> in{special, special.flip(0)};
    in.resize(arity);
    for (std::size_t i = 0; i < arity; ++i) args.push_back(program.input(at::kFloat, sizes));
    const Tensor result = program.apply(op, args);
    const Tensor wide = program.cast(args[0], at::kDouble);
    const std::vector<Tensor> outputs{result, program.apply(Op::kMul, {wide, wide})};
    const Kernel kernel("mixed", program, outputs, {{0}, {0}});
    c10::SmallVector<at::Tensor, 4> out;
    ASSERT_TRUE(kernel.run(in, out)) << to_string(op);
    const at::Tensor double_input = special.to(at::kDouble);
    EXPECT_TRUE(at::allclose(out[1], double_input * double_input, 0, 0, /*equal_nan=*/true));
    EXPECT_TRUE(at::equal(words(out[0]), words(FunctionKernel(op, 2, arity)(in)))) << to_string(op);
  }
}

// Arguments that go to the library make new blocks of code, also in the middle of unrolled loops,
// of reductions, and of what is computed once a row.
TEST_F(VectorMath, RareArgumentsInAnyLoop) {
  torch::manual_seed(1);
  const std::vector<std::int64_t> sizes{37, 101};
  const std::vector<std::int64_t> column{37, 1};
  at::Tensor x = at::randn(sizes) * 10;
  at::Tensor y = at::randn(column) * 10;
  x.view({-1}).slice(0, 5, c10::nullopt, 29).mul_(1e7F);
  y.view({-1}).slice(0, 3, c10::nullopt, 7).mul_(1e7F);
  const at::Tensor sin_x = FunctionKernel(Op::kSin)(x.view({-1})).view(sizes);
  const at::Tensor cos_y = FunctionKernel(Op::kCos)(y.view({-1})).view(column);
  ASSERT_TRUE(at::allclose(sin_x, at::sin(x), 0, 1e-6));
  ASSERT_TRUE(at::allclose(cos_y, at::cos(y), 0, 1e-6));
  {
    TensorProgram program;
    const Tensor a = program.apply(Op::kSin, {program.input(at::kFloat, sizes)});
    const Tensor b = program.apply(Op::kCos, {program.input(at::kFloat, column)});
    const Tensor sum = program.apply(Op::kAdd, {a, program.expand(b, a.dims)});
    const Kernel kernel("row", program, {sum}, {{0, 1}});
    c10::SmallVector<at::Tensor, 4> out;
    ASSERT_TRUE(kernel.run(std::vector<at::Tensor>{x, y}, out));
    EXPECT_TRUE(at::equal(out[0], sin_x + cos_y));
  }
  for (std::int64_t dim : {0, 1}) {
    TensorProgram program;
    const Tensor a = program.apply(Op::kSin, {program.input(at::kFloat, sizes)});
    const std::vector<std::int64_t> dims{dim};
    const Tensor sum = program.reduce(Reduce::kSum, a, dims, false);
    const Kernel kernel("sum", program, {sum}, {{0}});
    c10::SmallVector<at::Tensor, 4> out;
    ASSERT_TRUE(kernel.run(std::vector<at::Tensor>{x}, out));
    EXPECT_TRUE(at::allclose(out[0], sin_x.to(at::kDouble).sum(dim).to(at::kFloat), 0, 1e-5))
        << "over " << dim;
  }
}

}  // namespace
}  // namespace fx::loops
