#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
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
at::Tensor compiled(const Program& program, const at::Tensor& x) {
  const Compiled fast = compile(program);
  fast({x});
  const at::Tensor out = fast({x}).toTensor();
  EXPECT_NE(fast.explain().find(" of machine code, 0 of operators"), std::string::npos)
      << fast.explain();
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
  for (const std::int64_t width : {16, 63, 64, 129, 1000}) {
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

}  // namespace
}  // namespace fx
