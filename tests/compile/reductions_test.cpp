#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fx/compile/compile.h"
#include "tests/compile/eager_check.h"

// Loops with reductions in all their forms: lanes along the reduced axis or along a kept one,
// several vectors of columns and what is left of them. Judged in double precision.
namespace fx {
namespace {

using Program = std::function<at::Tensor(at::Tensor)>;

class Reductions : public testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(7); }
  void TearDown() override { at::set_num_threads(threads_); }

  torch::NoGradGuard no_grad_;
  int threads_ = at::get_num_threads();
};

// Runs `program` compiled on `x`; the kernel must not have fallen back to operators.
at::Tensor compiled(const Program& program, const at::Tensor& x,
                    std::optional<bool> in_parts = std::nullopt) {
  const Compiled fast = compile(program);
  fast({x});
  const at::Tensor out = fast({x}).toTensor();
  EXPECT_NE(fast.explain().find(" of machine code, 0 of operators"), std::string::npos)
      << fast.explain();
  if (in_parts) EXPECT_EQ(fast.stage("llvm").find("phase") != std::string::npos, *in_parts);
  return out;
}

void expect_close(const at::Tensor& actual, const at::Tensor& wanted, double tolerance) {
  ASSERT_EQ(actual.sizes(), wanted.sizes());
  const double error = (actual.to(at::kDouble) - wanted).abs().max().item<double>();
  EXPECT_LE(error, tolerance * (1 + wanted.abs().max().item<double>()));
}

at::Tensor sum_of_columns(const at::Tensor& x) { return (x * 2 + 1).sum(0).relu(); }
at::Tensor softmax_of_columns(const at::Tensor& x) { return torch::softmax(x * 2, 0); }

TEST_F(Reductions, columns_of_all_widths) {
  for (const std::int64_t width : {2, 15, 17, 64, 65, 129, 300, 1025})
    for (const std::int64_t rows : {2, 257, 600}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << width);
      const at::Tensor x = torch::randn({rows, width});
      const at::Tensor wide = x.to(at::kDouble);
      expect_close(compiled(sum_of_columns, x), sum_of_columns(wide), 1e-6);
      expect_close(compiled(softmax_of_columns, x), softmax_of_columns(wide), 1e-6);
    }
}

TEST_F(Reductions, a_column_does_not_depend_on_where_it_stands) {
  const at::Tensor x = torch::randn({600, 1025});
  const at::Tensor whole = compiled(softmax_of_columns, x);
  for (const std::int64_t width : {128, 129, 300, 1000}) {
    const at::Tensor part = x.slice(1, 1025 - width).contiguous();
    EXPECT_TRUE(compiled(softmax_of_columns, part).equal(whole.slice(1, 1025 - width))) << width;
  }
}

TEST_F(Reductions, results_do_not_depend_on_the_number_of_threads) {
  const at::Tensor x = torch::randn({4097, 515});
  const std::vector<Program> programs = {
      sum_of_columns, softmax_of_columns,
      [](const at::Tensor& t) { return torch::softmax(t * 2, 1); },
      [](const at::Tensor& t) { return t.exp().sum(1) + 1; }};
  for (const Program& program : programs) {
    at::set_num_threads(1);
    const at::Tensor one = compiled(program, x);
    for (const int threads : {2, 3, 7}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(compiled(program, x).equal(one)) << threads;
    }
  }
}

TEST_F(Reductions, columns_of_integers_and_halves) {
  const at::Tensor x = torch::randint(-100, 100, {300, 150}, at::kInt);
  EXPECT_TRUE(compiled([](const at::Tensor& t) { return (t * 3).sum(0) + 1; }, x)
                  .equal((x * 3).sum(0) + 1));
  const at::Tensor half = torch::randn({300, 150}).to(at::kBFloat16);
  const at::Tensor wanted = torch::amax(half * 2, 0) - 1;
  EXPECT_EQ(loops::difference(
                compiled([](const at::Tensor& t) { return torch::amax(t * 2, 0) - 1; }, half),
                wanted, true),
            "");
}

// --- few long rows, each done in parts by all threads

struct Long {
  const char* name;
  Program program;
  std::vector<std::int64_t> sizes;
  double tolerance;
};

std::vector<Long> long_programs() {
  const at::Tensor bias = torch::randn({1000}, at::kDouble);
  return {
      {"sum", [](const at::Tensor& x) { return (x * 2 + 1).sum(); }, {1'000'003}, 1e-6},
      {"mean of a loss",
       [](const at::Tensor& x) {
         const at::Tensor d = (x - 0.5).abs();
         return torch::where(d < 1.0, 0.5 * d * d, d - 0.5).mean();
       },
       {1000, 700},
       1e-6},
      {"softmax",
       [](const at::Tensor& x) { return torch::softmax(x * 2, -1); },
       {2, 300'001},
       1e-6},
      {"layer norm",
       [](const at::Tensor& x) { return torch::layer_norm(x.exp(), {500'000}); },
       {3, 500'000},
       1e-5},
      {"variance", [](const at::Tensor& x) { return x.exp().var(); }, {2'000'000}, 1e-5},
      {"largest and smallest",
       [](const at::Tensor& x) { return x.amax() - (x * 3).amin(); },
       {1'500'000},
       1e-6},
      {"two axes",
       [bias](const at::Tensor& x) { return (x + bias.to(x.scalar_type())).exp().sum(); },
       {2000, 1000},
       1e-5},
      {"columns",
       [](const at::Tensor& x) { return (x.exp() + 1).sum(0).log(); },
       {200'003, 7},
       1e-6},
      {"more columns",
       [](const at::Tensor& x) { return (x * x).mean(0).sqrt(); },
       {30'000, 130},
       1e-6},
  };
}

TEST_F(Reductions, long_rows_in_parts) {
  for (const Long& test : long_programs()) {
    SCOPED_TRACE(test.name);
    const at::Tensor x = torch::randn(test.sizes);
    const at::Tensor wanted = test.program(x.to(at::kDouble));
    at::set_num_threads(1);
    const at::Tensor one = compiled(test.program, x, true);
    expect_close(one, wanted, test.tolerance);
    for (const int threads : {2, 3}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(compiled(test.program, x, true).equal(one)) << threads;
    }
  }
}

TEST_F(Reductions, long_rows_of_special_values_and_integers) {
  at::Tensor x = torch::randn({2'000'000});
  const auto most = [](const at::Tensor& t) { return (t * 2).amax(); };
  x[1'234'567] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(compiled(most, x, true).isnan().item<bool>());
  x[1'234'567] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(compiled(most, x, true).isinf().item<bool>());
  const at::Tensor i = torch::randint(-1000, 1000, {2'000'000}, at::kInt);
  for (const Program& program : std::vector<Program>{
           [](const at::Tensor& t) { return (t * 3).sum(); },
           [](const at::Tensor& t) { return (t * 2).amax() + t.amin(); },
           [](const at::Tensor& t) { return (t > 998).any().logical_and((t > -2000).all()); },
           [](const at::Tensor& t) { return (t * 7).argmax() + 0; },
           [](const at::Tensor& t) { return (t.to(at::kLong) | 1).prod() + 0; }})
    EXPECT_TRUE(compiled(program, i, true).equal(program(i)));
}

// An operation without a result in one part: the operators run, and give eager's error.
TEST_F(Reductions, a_trap_in_a_part_is_one_of_the_call) {
  at::Tensor divisor = torch::ones({2'000'000}, at::kLong);
  const Compiled fast =
      compile([](const at::Tensor& t) { return (torch::floor_divide(t * 0 + 7, t) + t).sum(); });
  EXPECT_TRUE(fast({divisor}).toTensor().equal(fast({divisor}).toTensor()));
  divisor[1'999'999] = 0;
  EXPECT_ANY_THROW(fast({divisor}));
}

// Lanes run along the rows of the table, which are adjacent, not along the indices.
TEST_F(Reductions, sums_of_gathered_rows) {
  for (const std::int64_t width : {1, 7, 64, 256, 300}) {
    const at::Tensor table = torch::randn({50, width});
    const at::Tensor index = torch::randint(50, {9, 40});
    const auto program = [&](const at::Tensor& i) {
      return torch::embedding(table, i).sum(1).relu();
    };
    const at::Tensor wanted = torch::embedding(table.to(at::kDouble), index).sum(1).relu();
    expect_close(compiled(program, index), wanted, 1e-6);
    at::Tensor bad = index.clone();
    bad[8][39] = 50;
    const Compiled fast = compile(program);
    fast({index});
    EXPECT_ANY_THROW(fast({bad}));
  }
}

// Scans: lanes along their axis, with a prefix of vectors or in order, and along a kept one.
TEST_F(Reductions, scans_of_all_widths_and_dtypes) {
  const auto sums = [](const at::Tensor& x, std::int64_t dim) { return torch::cumsum(x * 2, dim); };
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt})
    for (const std::int64_t width : {2, 15, 17, 129, 1025})
      for (const std::int64_t dim : {0, 1}) {
        SCOPED_TRACE(testing::Message() << type << " " << width << " along " << dim);
        const at::Tensor x = (torch::randn({67, width}) * 9).to(type);
        for (const at::Tensor& in :
             {x, x.t().contiguous().t(), x.repeat({1, 2}).slice(1, 1, 2 * width, 2)}) {
          const Program program = [&](const at::Tensor& t) { return sums(t, dim); };
          if (dim == 1 && (type == at::kDouble || type == at::kBFloat16)) {
            const Compiled operators = compile(program);
            EXPECT_TRUE(operators({in}).toTensor().equal(program(in)));
            EXPECT_NE(operators.explain().find("a scan in order along the innermost dimension"),
                      std::string::npos);
            continue;
          }
          const at::Tensor actual = compiled(program, in);
          // Floats are added up in double by both, in another order: one rounding.
          if (type == at::kFloat)
            expect_close(actual, program(in.to(at::kDouble)), 1e-7);
          else
            EXPECT_EQ(loops::difference(actual, program(in), type != at::kHalf), "");
        }
      }
}

TEST_F(Reductions, scans_in_order_are_those_of_eager) {
  const double most = std::numeric_limits<double>::max();
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor doubles =
      torch::tensor({most, most, -most, 1.0, infinity, -infinity, nan, 2.0}, at::kDouble)
          .repeat({9});
  const at::Tensor halves = torch::tensor({65504.0, 65504.0, -65504.0, 3.0, -0.0}).to(at::kHalf);
  const at::Tensor floats = torch::tensor({3e38, 3e38, 0.0, 1e-38, -3e38}, at::kFloat).repeat({13});
  for (const at::Tensor& x : {doubles, doubles.to(at::kBFloat16), halves, floats})
    for (const Program& program :
         {Program([](const at::Tensor& t) { return (t * 1).cumsum(0) * 1; }),
          Program([](const at::Tensor& t) { return (t * 1).cumprod(0) * 1; }),
          Program([](const at::Tensor& t) { return std::get<0>((t * 1).cummax(0)) * 1; }),
          Program([](const at::Tensor& t) { return std::get<1>((t * 1).cummax(0)) * 1; }),
          Program([](const at::Tensor& t) { return std::get<1>((t * 1).cummin(0)) * 1; })})
      for (const at::Tensor& columns : {x.unsqueeze(1).repeat({1, 3}), x.repeat({2, 1}).t()})
        EXPECT_EQ(loops::difference(compiled(program, columns), program(columns), true), "") << x;
}

TEST_F(Reductions, sums_of_exponentials_so_far) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor special =
      torch::tensor({-infinity, -infinity, 0.0, -0.0, -1e30, 1e30, 88.0, -infinity, infinity, 5.0,
                     infinity, -infinity, nan, 1.0, infinity},
                    at::kDouble);
  // Of a sum that is large at first nothing of the small ones is lost: no maximum of the row is
  // taken.
  const at::Tensor rising = torch::arange(0, 1500, at::kDouble) - 1000;
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16})
    for (const std::int64_t width : {2, 15, 17, 129, 1025})
      for (const std::int64_t dim : {0, 1}) {
        SCOPED_TRACE(testing::Message() << type << " " << width << " along " << dim);
        const Program program = [&](const at::Tensor& t) { return torch::logcumsumexp(t, dim); };
        const at::Tensor x = (torch::randn({67, width}) * 9).to(type);
        for (const at::Tensor& in :
             {x, x.t().contiguous().t(), x.repeat({1, 2}).slice(1, 1, 2 * width, 2)}) {
          const at::Tensor actual = compiled(program, in);
          if (type == at::kFloat)
            expect_close(actual, program(in.to(at::kDouble)), 1e-7);
          else if (type == at::kDouble)
            EXPECT_TRUE(at::allclose(actual, program(in), 1e-14, 1e-14));
          else
            EXPECT_EQ(loops::difference(actual, program(in), false), "");
        }
      }
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const at::Tensor& x : {special.to(type), special.flip(0).to(type), rising.to(type)})
      for (const at::Tensor& in : {x.unsqueeze(0).repeat({3, 2}), x.repeat({3, 1}).t()})
        for (const std::int64_t dim : {0, 1}) {
          const Program program = [&](const at::Tensor& t) { return torch::logcumsumexp(t, dim); };
          EXPECT_EQ(loops::difference(compiled(program, in), program(in), false), "") << in << dim;
        }
}

TEST_F(Reductions, scans_in_the_middle_of_a_kernel) {
  const at::Tensor x = torch::randn({37, 200});
  // The softmax needs what the scan gave once more, behind its own loops.
  const Program twice = [](const at::Tensor& t) {
    const at::Tensor sums = torch::cumsum(t.exp(), 1);
    return torch::softmax(sums, 1) * sums + sums.sum(1, true);
  };
  EXPECT_EQ(loops::difference(compiled(twice, x), twice(x), false), "");
  const Compiled fast =
      compile(Program([](const at::Tensor& t) { return torch::cumsum(t * 2, 1); }));
  fast({torch::randn({5, 7})});
  EXPECT_NE(fast.stage("loops").find("nest kernel_0(k0 < s1 | r0 < s2)\n"
                                     "  %0: f32 = 2.0\n"
                                     "  loop\n"
                                     "    %1: f32 = in0[k0, r0]\n"
                                     "    %2: f32 = mul %1, %0\n"
                                     "    %3: f64 = cast %2\n"
                                     "    %4: f64 = scan sum %3\n"
                                     "    %5: f32 = cast %4\n"
                                     "    out0[k0, r0] = %5\n"),
            std::string::npos)
      << fast.stage("loops");
}

TEST_F(Reductions, scans_do_not_depend_on_the_number_of_threads) {
  const at::Tensor x = torch::randn({300, 1031});
  for (const std::int64_t dim : {0, 1}) {
    const Program program = [&](const at::Tensor& t) { return torch::cumsum(t.exp(), dim); };
    at::set_num_threads(1);
    const at::Tensor one = compiled(program, x);
    for (const int threads : {2, 3, 7}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(compiled(program, x).equal(one)) << threads;
    }
  }
}

}  // namespace
}  // namespace fx
