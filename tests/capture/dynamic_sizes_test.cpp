// make_fx with sizes that calls may change: numbers that the program computed from them become
// expressions, and what cannot says why.
#include <torch/torch.h>

#include "fx/capture/make_fx.h"
#include "fx/capture/size_expr.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;
using Program = std::function<Tensor(Tensor)>;

std::string assumptions_of(const GraphModule& module, Assumption::Kind kind) {
  std::string out;
  for (const Assumption& each : *module.meta().get<Assumptions>("assumptions"))
    if (each.kind == kind) out += each.text + "\n";
  return out;
}

// The graph of a program with symbolic sizes does what the program does, on all of `shapes`.
std::shared_ptr<GraphModule> expect_dynamic(const Program& program, const Tensor& example,
                                            const DynamicSizes& dynamic,
                                            const std::vector<std::vector<std::int64_t>>& shapes) {
  auto gm = make_fx(program, {example}, {.strict = true, .dynamic = dynamic});
  gm->graph().lint({.strict = true});
  for (const auto& shape : shapes) {
    const Tensor x = torch::randn(shape);
    const Tensor expected = program(x.clone());
    EXPECT_TRUE(torch::equal((*gm)(x.clone()).toTensor(), expected)) << shape << gm->graph();
    EXPECT_TRUE(torch::equal(Interpreter(*gm).run({x.clone()}).toTensor(), expected)) << shape;
  }
  return gm;
}

TEST(DynamicSizes, views_of_sizes_that_the_program_computed) {
  auto gm = expect_dynamic(
      [](Tensor x) { return x.view({x.size(0) * x.size(1), x.size(2) / 2, 2}).sum(2); },
      torch::randn({2, 3, 8}), {{"x", {{0, "batch"}, {1, "time"}}}},
      {{1, 1, 8}, {5, 3, 8}, {2, 9, 8}, {17, 4, 8}});
  EXPECT_EQ(gm->input_guards()[0].str(), "f32[batch, time, 8]");
  EXPECT_EQ(gm->graph().str(), R"(graph():
    %x : [num_users=3] = placeholder[target=x]
    %batch : [num_users=1] = call_function[target=aten::sym_size.int](args = (%x, 0), kwargs = {})
    %time : [num_users=1] = call_function[target=aten::sym_size.int](args = (%x, 1), kwargs = {})
    %mul : [num_users=1] = call_function[target=operator.mul](args = (%batch, %time), kwargs = {})
    %view : [num_users=1] = call_function[target=aten::view](args = (%x, [%mul, 4, 2]), kwargs = {})
    %sum_dim_int_list : [num_users=1] = call_function[target=aten::sum.dim_IntList](args = (%view, [2]), kwargs = {})
    return sum_dim_int_list)");
  EXPECT_FX_ERROR((*gm)(torch::randn({2, 3, 7})), RunError, kShapeMismatch, "must be 8");
}

TEST(DynamicSizes, affine_products_squares_and_floors) {
  const DynamicSizes n{{"x", {{0, "n"}}}};
  expect_dynamic([](Tensor x) { return torch::zeros({2 * x.size(0) + 3}); }, torch::randn({4}), n,
                 {{1}, {2}, {9}, {100}});
  expect_dynamic([](Tensor x) { return x.slice(0, 0, x.size(0) / 2) * 2; }, torch::randn({6}), n,
                 {{1}, {2}, {9}, {33}});
  expect_dynamic([](Tensor x) { return torch::ones({(x.size(0) + 3) / 4}); }, torch::randn({6}), n,
                 {{1}, {2}, {9}, {33}, {36}});
  expect_dynamic([](Tensor x) { return torch::ones({x.size(0) * (x.size(0) - 1) / 2}); },
                 torch::randn({4}), n, {{2}, {3}, {10}});
  expect_dynamic([](Tensor x) { return x.sum() / x.size(0) + x * (1.0 / x.size(0)); },
                 torch::randn({4}), n, {{1}, {3}, {10}});
  expect_dynamic([](Tensor x) { return x.mul(x.size(0) - 10); }, torch::randn({4}), n,
                 {{1}, {10}, {12}});
}

TEST(DynamicSizes, sizes_of_values_inside) {
  auto gm = expect_dynamic(
      [](Tensor x) {
        const Tensor y = torch::max_pool2d(x, 3, 2, 1);
        return y.view({y.size(0), y.size(1) * y.size(2) * y.size(3)}) +
               torch::arange(y.size(1) * y.size(2) * y.size(3));
      },
      torch::randn({2, 3, 9, 12}), {{"x", {{0, "b"}, {2, "h"}, {3, "w"}}}},
      {{1, 3, 9, 12}, {3, 3, 20, 7}, {2, 3, 16, 33}});
  EXPECT_THAT(gm->graph().str(), testing::HasSubstr("sym_size.int](args = (%max_pool2d, 2)"));
}

TEST(DynamicSizes, several_inputs_share_a_size) {
  auto gm = make_fx([](Tensor x, Tensor y) { return x.expand({x.size(0), 4}) + y; },
                    {torch::randn({3, 1}), torch::randn({3, 4})},
                    {.dynamic = {{"x", {{0, "n"}}}, {"y", {{0, {"n", 2, 50}}}}}});
  const Tensor x = torch::randn({7, 1}), y = torch::randn({7, 4});
  EXPECT_TRUE(torch::equal((*gm)(x, y).toTensor(), x + y));
  EXPECT_FX_ERROR((*gm)(x, torch::randn({6, 4})), RunError, kShapeMismatch, "must be 7, as");
  EXPECT_FX_ERROR((*gm)(torch::randn({1, 1}), torch::randn({1, 4})), RunError, kShapeMismatch,
                  "must be 2 to 50");
  EXPECT_THAT(assumptions_of(*gm, Assumption::Kind::kSize),
              testing::HasSubstr("n may be from 2 to 50, as found with 3 4 5"));
}

TEST(DynamicSizes, a_size_that_decides_the_program_stays_and_says_why) {
  auto loop = [](Tensor x) {
    Tensor sum = x[0];
    for (std::int64_t i = 1; i < x.size(0); ++i) sum = torch::tanh(sum + x[i]);
    return sum * torch::ones({x.size(1)});
  };
  auto gm =
      make_fx(loop, {torch::randn({3, 4})}, {.dynamic = {{"x", {{0, "time"}, {1, "features"}}}}});
  const std::string sizes = assumptions_of(*gm, Assumption::Kind::kSize);
  EXPECT_THAT(sizes, testing::HasSubstr("time stayed 3: with time = 4, features = 4, "));
  EXPECT_THAT(sizes, testing::HasSubstr("is not what runs"));
  EXPECT_THAT(sizes, testing::HasSubstr("dynamic_sizes_test.cpp:")) << "the line of the program";
  EXPECT_THAT(sizes, testing::HasSubstr("features may be from 1 to any size"));
  const Tensor x = torch::randn({3, 9});
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), loop(x)));
  EXPECT_FX_ERROR((*gm)(torch::randn({4, 4})), RunError, kShapeMismatch, "must be 3");
  EXPECT_FX_ERROR(
      make_fx(loop, {torch::randn({3, 4})}, {.strict = true, .dynamic = {{"x", {{0, "time"}}}}}),
      TraceError, kConcreteValue, "time stayed 3");
}

TEST(DynamicSizes, size_1_is_taken_only_if_it_goes_the_same_way) {
  auto program = [](Tensor x) { return x.size(0) == 1 ? x * 2 : x.view({-1}) + 1; };
  auto gm = make_fx(program, {torch::randn({3, 2})}, {.dynamic = {{"x", {{0, "n"}}}}});
  EXPECT_EQ(gm->input_guards()[0].dims[0].min, 2);
  EXPECT_FX_ERROR((*gm)(torch::randn({1, 2})), RunError, kShapeMismatch, "must be 2 to any size");
  auto empty = make_fx([](Tensor x) { return x.view({x.size(0) * 2}); }, {torch::randn({3, 2})},
                       {.dynamic = {{"x", {{0, {"n", 0}}}}}});
  EXPECT_EQ((*empty)(torch::randn({0, 2})).toTensor().numel(), 0);
}

TEST(DynamicSizes, what_no_expression_gives_stays) {
  auto power = [](Tensor x) { return torch::ones({std::int64_t{1} << x.size(0)}); };
  auto gm = make_fx(power, {torch::randn({3})}, {.dynamic = {{"x", {{0, "n"}}}}});
  EXPECT_THAT(assumptions_of(*gm, Assumption::Kind::kSize),
              testing::HasSubstr("takes 16, in the example 8, and no expression"));
  // Contents that depend on the size, filled through a pointer.
  auto filled = [](Tensor x) {
    Tensor count = torch::empty({1});
    count.data_ptr<float>()[0] = static_cast<float>(x.size(0));
    return x.sum() / count;
  };
  gm = make_fx(filled, {torch::randn({3})}, {.dynamic = {{"x", {{0, "n"}}}}});
  EXPECT_THAT(assumptions_of(*gm, Assumption::Kind::kSize),
              testing::HasSubstr("filled outside of the dispatcher"));
  // A program that takes no other size.
  gm = make_fx([](Tensor x) { return x + torch::ones({3}); }, {torch::randn({3})},
               {.dynamic = {{"x", {{0, "n"}}}}});
  EXPECT_THAT(assumptions_of(*gm, Assumption::Kind::kSize),
              testing::HasSubstr("with n = 4 the program fails: The size of tensor"));
  // What differs only far from the sizes that are compared, a further run finds.
  gm = make_fx([](Tensor x) { return torch::ones({x.size(0) == 8 ? 3 : x.size(0)}); },
               {torch::randn({3})}, {.dynamic = {{"x", {{0, {"n", 2, 100}}}}}});
  EXPECT_THAT(assumptions_of(*gm, Assumption::Kind::kSize), testing::HasSubstr("n stayed 3"));
}

TEST(DynamicSizes, runs_leave_no_trace) {
  auto net = std::make_shared<torch::nn::BatchNorm1dImpl>(4);
  torch::manual_seed(3);
  const Tensor next = torch::rand({2});
  torch::manual_seed(3);
  Tensor x = torch::randn({3, 4});
  const Tensor before = x.clone();
  torch::manual_seed(3);
  auto gm = make_fx([&](Tensor in) { return torch::dropout(net->forward(in.add_(1)), 0.5, true); },
                    {x}, {.dynamic = {{"x", {{0, "n"}}}}});
  EXPECT_TRUE(torch::equal(torch::rand({2}), next)) << "random numbers";
  EXPECT_TRUE(torch::equal(x, before)) << "the example";
  auto of_module = make_fx(net, {x}, {.dynamic = {{"x", {{0, "n"}}}}});
  EXPECT_EQ(net->num_batches_tracked.item<int>() > 0, true) << "of the program above: not its own";
  const auto batches = net->num_batches_tracked.item<int>();
  make_fx(net, {x}, {.dynamic = {{"x", {{0, "n"}}}}});
  EXPECT_EQ(net->num_batches_tracked.item<int>(), batches);
}

TEST(DynamicSizes, gradients_as_eager_on_other_sizes) {
  torch::nn::MultiheadAttention attention(8, 2);
  auto program = [&](Tensor x) { return std::get<0>(attention(x, x, x)); };
  auto gm = make_fx(program, {torch::randn({5, 2, 8}).requires_grad_().clone()},
                    {.dynamic = {{"x", {{0, "time"}, {1, "batch"}}}}});
  EXPECT_THAT(assumptions_of(*gm, Assumption::Kind::kSize),
              testing::Not(testing::HasSubstr("stay")));
  for (const auto& shape : {std::vector<std::int64_t>{7, 3, 8}, {2, 1, 8}, {4, 9, 8}}) {
    const Tensor x = torch::randn(shape).requires_grad_();
    const Tensor eager = torch::autograd::grad({program(x).square().sum()}, {x})[0];
    const Tensor found = torch::autograd::grad({(*gm)(x).toTensor().square().sum()}, {x})[0];
    EXPECT_TRUE(torch::equal(found, eager)) << shape;
  }
}

TEST(DynamicSizes, layout_of_the_example_is_kept) {
  auto program = [](Tensor x) { return x.contiguous().view({x.size(0) * 6}); };
  auto gm = make_fx(program, {torch::randn({6, 3}).t()},
                    {.strict = true, .dynamic = {{"x", {{0, "n"}}}}});
  EXPECT_EQ(gm->graph().find_calls("aten::contiguous").size(), 1u);
  const Tensor x = torch::randn({6, 8}).t();
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), program(x)));
}

TEST(DynamicSizes, marks_that_do_not_fit_are_refused) {
  auto program = [](Tensor x, Tensor y) { return x + y; };
  const std::vector<Tensor> inputs{torch::ones({2}), torch::ones({1})};
  auto capture = [&](DynamicSizes dynamic) {
    return make_fx(program, inputs, {.dynamic = std::move(dynamic)});
  };
  EXPECT_FX_ERROR(capture({{"q", {{0, "n"}}}}), TraceError, kBadArgument,
                  "there is no input 'q'; there are x, y");
  EXPECT_FX_ERROR(capture({{"x", {{1, "n"}}}}), TraceError, kBadArgument, "has no dimension 1");
  EXPECT_FX_ERROR(capture({{"x", {{0, "n"}}}, {"y", {{0, "n"}}}}), TraceError, kBadArgument,
                  "is 1 in the example, but elsewhere 2");
  EXPECT_FX_ERROR(capture({{"x", {{0, {"n", 3}}}}}), TraceError, kBadArgument,
                  "outside of its range");
  EXPECT_FX_ERROR(
      make_fx([](Tensor x) { return x; }, {torch::ones({0})}, {.dynamic = {{"x", {{0, "n"}}}}}),
      TraceError, kBadArgument, "cannot be repeated");
  EXPECT_THROW(make_fx([](Tensor) -> Tensor { throw std::runtime_error("no"); }, {torch::ones({2})},
                       {.dynamic = {{"x", {{0, "n"}}}}}),
               std::runtime_error);
}

// A program that takes another path for small or large sizes: the graph takes the others.
TEST(DynamicSizes, the_range_ends_where_runs_show_something_else) {
  const auto range_of = [](const std::function<Tensor(Tensor)>& program, Dim dim,
                           std::int64_t example) {
    auto gm = make_fx(program, {torch::randn({example, 3})}, {.dynamic = {{"x", {{0, dim}}}}});
    const InputGuard::Dim found = gm->input_guards()[0].dims[0];
    for (const std::int64_t size : {1, 2, 3, 4, 5, 6, 7, 12, 20, 30, 63, 64}) {
      if (size < found.min.value_or(0) || size > found.max.value_or(size)) continue;
      const Tensor x = torch::randn({size, 3});
      EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), program(x))) << size << gm->graph();
    }
    return std::pair(found.min.value_or(0), found.max.value_or(-1));
  };
  using Range = std::pair<std::int64_t, std::int64_t>;
  const auto at_least_4 = [](Tensor x) {
    return x * static_cast<double>(std::max<std::int64_t>(x.size(0), 4));
  };
  EXPECT_EQ(range_of(at_least_4, "n", 4), Range(4, -1));
  EXPECT_EQ(range_of(at_least_4, "n", 9), Range(4, -1));
  EXPECT_EQ(range_of([](Tensor x) { return x.numel() > 10 ? x * 2 : x * 3; }, "n", 5),
            Range(4, -1));
  EXPECT_EQ(range_of([](Tensor x) { return x.size(0) > 40 ? x * 2 : x * 3; }, "n", 5).first, 1);
  EXPECT_LT(range_of([](Tensor x) { return x.size(0) > 40 ? x * 2 : x * 3; }, "n", 5).second, 41);
  EXPECT_LT(
      range_of([](Tensor x) { return x.size(0) > 40 ? x * 2 : x * 3; }, {"n", 2, 1000}, 5).second,
      41);
  EXPECT_EQ(range_of([](Tensor x) { return x * 2; }, {"n", 2, 1000}, 5), Range(2, 1000));
  // A table of 50 rows: the program has no answer for more.
  const Tensor table = torch::randn({50, 3});
  EXPECT_LT(range_of([&](Tensor x) { return x + table.index_select(0, torch::arange(x.size(0))); },
                     "n", 5)
                .second,
            51);
}

TEST(SizeSolver, finds_the_simplest_expression_that_holds_in_all_runs) {
  const Samples a{4, 5, 6, 4, 4, 7, 10, 13}, b{3, 3, 3, 4, 5, 7, 9, 8};
  const std::vector<std::string> names{"a", "b"};
  auto solve = [&](const std::function<std::int64_t(std::int64_t, std::int64_t)>& of) {
    Samples values;
    for (std::size_t i = 0; i < a.size(); ++i) values.push_back(of(a[i], b[i]));
    const auto found = SizeSolver({a, b}).solve(values);
    return found ? found->str(names) : "none";
  };
  EXPECT_EQ(solve([](auto x, auto) { return x; }), "a");
  EXPECT_EQ(solve([](auto, auto y) { return 2 * y - 7; }), "2*b - 7");
  EXPECT_EQ(solve([](auto x, auto y) { return x - 3 * y; }), "a - 3*b");
  EXPECT_EQ(solve([](auto x, auto y) { return 4 * x * y; }), "4*a*b");
  EXPECT_EQ(solve([](auto x, auto y) { return (x + 1) * (y - 2); }), "a*b - 2*a + b - 2");
  EXPECT_EQ(solve([](auto x, auto) { return x * (x - 1) / 2; }), "(a*a - a)//2");
  EXPECT_EQ(solve([](auto x, auto) { return x / 2; }), "a//2");
  EXPECT_EQ(solve([](auto, auto y) { return (y + 2) / 3; }), "(b + 2)//3");
  EXPECT_EQ(solve([](auto x, auto y) { return x % 2 ? y : x; }), "none");
  EXPECT_EQ(SizeExpr({{{1, {0}}, {-7, {}}}, 2}).evaluate({4}), -2) << "floor, as Python's";
  SizeSolver with_inner({a, b});
  const Samples halves{2, 2, 3, 2, 2, 3, 5, 6};
  EXPECT_EQ(with_inner.add_size(Samples(8, 3)), std::nullopt) << "no size that varies";
  EXPECT_EQ(with_inner.add_size({8, 10, 12, 8, 8, 14, 20, 26}), std::nullopt) << "2*a";
  EXPECT_EQ(with_inner.add_size(halves), 2u);
  EXPECT_EQ(with_inner.add_size(halves), std::nullopt);
  Samples products;
  for (std::size_t i = 0; i < a.size(); ++i) products.push_back(halves[i] * b[i]);
  EXPECT_EQ(with_inner.solve(products)->terms[0].sizes, (std::vector<std::size_t>{2, 1}));
}

}  // namespace
}  // namespace fx
