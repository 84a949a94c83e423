#include <gtest/gtest.h>
#include <torch/torch.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
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
    FX_FUNCTION(Op::kLog2, log2, 1.06),   FX_FUNCTION(Op::kLog10, log10, 1.63),
    FX_FUNCTION(Op::kLog1p, log1p, 0.86), FX_FUNCTION(Op::kTanh, tanh, 0.67),
    FX_FUNCTION(Op::kErf, erf, 0.76),     FX_FUNCTION(Op::kSin, sin, 1.09),
    FX_FUNCTION(Op::kCos, cos, 1.11),
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

/// One function alone in its kernel, which takes any number of elements above one.
class FunctionKernel {
 public:
  explicit FunctionKernel(Op op, std::int64_t size = 2) : op_(op) {
    TensorProgram program;
    const std::vector<std::int64_t> sizes{size};
    const std::vector<Tensor> outputs{program.apply(op, {program.input(at::kFloat, sizes)})};
    kernel_ = std::make_unique<Kernel>("vector_math", program, outputs, std::vector<DimOrder>{{0}});
  }

  at::Tensor operator()(const at::Tensor& x) const {
    const std::vector<at::Tensor> in{x};
    std::vector<at::Tensor> out;
    if (!kernel_->run(in, out)) {
      ADD_FAILURE() << to_string(op_) << " does not take " << x.sizes();
      return at::full_like(x, -7);
    }
    return out.at(0);
  }

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
  float at = 0;
  std::int64_t other_kind = 0;
  float other_kind_at = 0;
};

Worst compare(const Function& function, const at::Tensor& results) {
  Worst worst;
  const at::Tensor& x = input_tensor();
  const float* in = x.const_data_ptr<float>();
  const float* out = results.const_data_ptr<float>();
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const double exact = function.exact(in[i]);
    if (!same_kind(out[i], exact)) {
      if (worst.other_kind++ == 0) worst.other_kind_at = in[i];
      continue;
    }
    const double distance = ulps(out[i], exact);
    if (distance > worst.ulp) {
      worst.ulp = distance;
      worst.at = in[i];
    }
  }
  return worst;
}

std::string digits(double x, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

class VectorMath : public testing::Test {
 protected:
  void SetUp() override {
    if (!jit_problem().empty()) GTEST_SKIP() << jit_problem();
  }
};

TEST_F(VectorMath, ErrorsAreAsSmallAsMeasured) {
  std::string rows;
  for (const Function& function : kFunctions) {
    const Worst worst = compare(function, FunctionKernel(function.op)(input_tensor()));
    EXPECT_EQ(worst.other_kind, 0) << to_string(function.op) << ": another kind of number at "
                                   << digits(worst.other_kind_at, "%.9g (%a)");
    EXPECT_LE(worst.ulp, function.max_ulp)
        << to_string(function.op) << " at " << digits(worst.at, "%.9g");
    EXPECT_GT(worst.ulp, function.max_ulp - 0.25)
        << to_string(function.op) << ": the bound is looser than what was measured";
    if (std::getenv("FXCPP_UPDATE_DOCS")) {
      const Worst eager = compare(function, function.eager(input_tensor()));
      rows += "| " + std::string(to_string(function.op)) + " | " + digits(worst.ulp, "%.3f") +
              " | " + digits(worst.at, "%.9g") + " | " + digits(eager.ulp, "%.3f") + " | " +
              digits(eager.at, "%.9g") + " | " + std::to_string(eager.other_kind) + " |\n";
    }
  }
  if (!rows.empty()) {
    std::ofstream page(FXCPP_SOURCE_DIR "/docs/vector-math.md");
    page
        << "# Accuracy of the functions in kernels\n\n"
           "What fused kernels compute in float32 on vectors of 16 (AVX-512) and 8 (AVX2)\n"
           "elements, compared with the C library's functions of float64 on every 997th float and\n"
           "around all thresholds, "
        << input_tensor().size(0)
        << " inputs. An ulp is the distance of floats as large as the\n"
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

// Vectors that are not full, and those that are gathered, give the same bits.
TEST_F(VectorMath, TailsAndStridesChangeNothing) {
  const at::Tensor special = torch::tensor(
      {-kInfinity, -100.0F, -88.0F, -3.5F, -1.0F, -0.7F, -1e-3F, -1e-40F, -0.0F,  0.0F,
       1e-45F,     1e-38F,  1e-9F,  0.1F,  0.3F,  0.5F,  0.9F,   1.0F,    1.25F,  2.0F,
       3.0F,       5.0F,    9.5F,   20.0F, 80.0F, 88.0F, 89.5F,  500.0F,  4e6F,   1e30F,
       kInfinity,  -2e6F,   0.62F,  1.57F, -9.0F, -4.0F, 1.1F,   0.01F,   -0.25F, std::nanf("")});
  ASSERT_EQ(special.size(0), 40);
  const auto words = [](const at::Tensor& t) { return t.contiguous().view(at::kInt); };
  for (const Function& function : kFunctions) {
    const FunctionKernel any(function.op);
    const FunctionKernel one(function.op, 1);
    // The first elements of a whole number of vectors.
    const at::Tensor whole = any(torch::cat({special, special, special, special}));
    for (std::int64_t n = 1; n <= 40; ++n) {
      const FunctionKernel& kernel = n == 1 ? one : any;
      const at::Tensor wanted = words(whole.narrow(0, 0, n));
      EXPECT_TRUE(at::equal(words(kernel(special.narrow(0, 0, n).clone())), wanted))
          << to_string(function.op) << " of " << n;
      const at::Tensor spread = torch::zeros({n, 3}).select(1, 1);
      spread.copy_(special.narrow(0, 0, n));
      ASSERT_TRUE(n == 1 || !spread.is_contiguous());
      EXPECT_TRUE(at::equal(words(kernel(spread)), wanted))
          << to_string(function.op) << " of " << n << " with a stride";
    }
  }
}

}  // namespace
}  // namespace fx::loops
