#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <string>

#include "fx/compile/compile.h"
#include "fx/interpret/interpreter.h"
#include "tests/compile/eager_check.h"

// Kernels with operands that are numbers which the graph computes: sizes, item(), arithmetic on
// such.
namespace fx {
namespace {

using Build = std::function<Node&(Graph&, Node& x, Node& y)>;

std::shared_ptr<GraphModule> module_of(const Build& build) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& result = build(*graph, x, y);
  graph->output(result);
  return std::make_shared<GraphModule>(graph);
}

// Compiles the graph for the first call and compares all calls with the Interpreter.
std::string check(const Build& build, const std::vector<Values>& calls) {
  const torch::NoGradGuard no_grad;
  const auto module = module_of(build);
  const Compiled fast = compile(module);
  const Compiled replayed = compile(module, {.mode = "reduce-overhead"});
  for (const Values& call : calls)
    for (int run = 0; run < 3; ++run) {
      const at::Tensor wanted = Interpreter(*module).run(call).toTensor();
      EXPECT_EQ(loops::difference(fast(call).toTensor(), wanted, false), "") << fast.explain();
      EXPECT_EQ(loops::difference(replayed(call).toTensor(), wanted, false), "") << run;
    }
  return fast.explain();
}

Node& scaled_exp(Graph& g, Node& x, const Argument& number) {
  Node& exp = g.call_function("aten::exp", {x});
  Node& product = g.call_function("aten::mul", {exp, number});
  return g.call_function("aten::add", {product, x});
}

void expect_one_kernel(const std::string& text) {
  EXPECT_NE(text.find(" of machine code, 0 of operators"), std::string::npos) << text;
  EXPECT_EQ(text.find("mul\n    an operator"), std::string::npos) << text;
}

TEST(KernelNumbers, sizes_are_operands) {
  const std::string text =
      check([](Graph& g, Node& x,
               Node&) -> Node& { return scaled_exp(g, x, g.call_method("size", {x, 0})); },
            {{torch::randn({5, 3}), torch::ones({})}, {torch::randn({9, 3}), torch::ones({})}});
  expect_one_kernel(text);
}

TEST(KernelNumbers, items_are_operands_also_special_ones) {
  std::vector<Values> calls;
  for (const double number : {0.25, -3.5, 1e300, std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN(), -0.0, 5e-324})
    calls.push_back({torch::randn({70}), torch::tensor(number, at::kDouble)});
  const std::string text =
      check([](Graph& g, Node& x,
               Node& y) -> Node& { return scaled_exp(g, x, g.call_method("item", {y})); },
            calls);
  expect_one_kernel(text);
}

// An int for a tensor of ints does not make floats of it; one for a tensor of floats does not make
// it wider; what does not fit wraps as in eager.
TEST(KernelNumbers, promote_as_eager_does) {
  const Build program = [](Graph& g, Node& x, Node& y) -> Node& {
    Node& number = g.call_method("item", {y});
    Node& product = g.call_function("aten::mul", {x, number});
    Node& sum = g.call_function("aten::add", {product, number});
    return g.call_function("aten::sub", {sum, x});
  };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble, at::kInt, at::kLong}) {
    const at::Tensor x = torch::randint(-9, 9, {33}).to(type);
    expect_one_kernel(check(
        program, {{x, torch::tensor(std::int64_t{3})}, {x, torch::tensor(std::int64_t{-7})}}));
    expect_one_kernel(check(program, {{x, torch::tensor(2.5, at::kDouble)}}));
  }
}

// Another kind of number than that of the example: another variant.
TEST(KernelNumbers, a_number_may_change_its_type) {
  check([](Graph& g, Node& x,
           Node& y) -> Node& { return scaled_exp(g, x, g.call_method("item", {y})); },
        {{torch::randn({6}), torch::tensor(std::int64_t{3})},
         {torch::randn({6}), torch::tensor(0.5)},
         {torch::randn({6}), torch::tensor(true)},
         {torch::randn({6}), torch::tensor(std::int64_t{4})}});
}

TEST(KernelNumbers, arithmetic_on_numbers_feeds_a_kernel) {
  check(
      [](Graph& g, Node& x, Node&) -> Node& {
        Node& rows = g.call_method("size", {x, 0});
        Node& root = g.call_function("operator.pow", {rows, 0.5});
        Node& half = g.call_function("operator.floordiv", {rows, 2});
        return scaled_exp(g, g.call_function("aten::div", {x, root}), half);
      },
      {{torch::randn({8, 4}), torch::ones({})}, {torch::randn({11, 4}), torch::ones({})}});
}

// Where a number is a size, a dimension, a flag or in a list, the call stays an operator.
TEST(KernelNumbers, are_operands_and_nothing_else) {
  check(
      [](Graph& g, Node& x, Node& y) -> Node& {
        Node& dim = g.call_method("item", {y});
        Node& sum = g.call_function("torch.sum", {x, Argument::list({dim})});
        Node& softmax = g.call_function("torch.softmax", {sum, dim});
        return scaled_exp(g, softmax, 2.0);
      },
      {{torch::randn({8, 4, 3}), torch::tensor(std::int64_t{1})},
       {torch::randn({8, 4, 3}), torch::tensor(std::int64_t{0})}});
}

}  // namespace
}  // namespace fx
