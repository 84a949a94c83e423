#include "fx/graph/input_guard.h"

#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// x: f32[s0 in 1..8, 3], y: f32[s0] -> x + y, guarded
GraphModule guarded() {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  graph->output(graph->call_function("torch.mv", {x, y}));
  return GraphModule(graph);
}

std::vector<InputGuard> guards() {
  InputGuard x{"x", at::kFloat, {{{}, "s0", 1, 8}, {3, {}, {}, {}}}};
  InputGuard y{"y", at::kFloat, {{3, {}, {}, {}}}};
  return {x, y};
}

TEST(InputGuard, calls_are_checked_by_both_ways_of_running) {
  GraphModule gm = guarded();
  gm.set_input_guards(guards());
  const at::Tensor y = torch::ones({3});
  for (bool interpret : {false, true}) {
    auto run = [&](const at::Tensor& x, const at::Tensor& v) {
      return interpret ? Interpreter(gm).run({x, v}) : gm.forward({x, v});
    };
    EXPECT_EQ(run(torch::ones({8, 3}), y).toTensor().size(0), 8);
    EXPECT_FX_ERROR(run(torch::ones({8, 3}, at::kDouble), y), RunError, kWrongType,
                    "input 'x': the dtype differs; found Tensor f64[8, 3], wanted f32[s0, 3]");
    EXPECT_FX_ERROR(run(torch::ones({3}), y), RunError, kShapeMismatch,
                    "the number of dimensions differs");
    EXPECT_FX_ERROR(run(torch::ones({8, 4}), y), RunError, kShapeMismatch, "dimension 1 must be 3");
    EXPECT_FX_ERROR(run(torch::ones({9, 3}), y), RunError, kShapeMismatch,
                    "dimension 0 (s0) must be 1 to 8");
    EXPECT_FX_ERROR(run(torch::ones({0, 3}), y), RunError, kShapeMismatch, "must be 1 to 8");
  }
  EXPECT_FX_ERROR(gm.forward({1.0, y}), RunError, kWrongType, "was captured with a tensor here");
  EXPECT_FX_ERROR(gm.forward({torch::ones({8, 3})}, {{Symbol("y"), torch::ones({4})}}), RunError,
                  kShapeMismatch, "input 'y': dimension 0 must be 3");
  gm.set_input_guards({});
  EXPECT_EQ(gm.forward({torch::ones({9, 3}), y}).toTensor().size(0), 9) << "an edit may lift them";
}

TEST(InputGuard, equal_symbols_have_equal_extents) {
  const InputGuard x{"x", at::kFloat, {{{}, "s0", {}, {}}}};
  const InputGuard y{"y", at::kFloat, {{{}, "s0", {}, {}}}};
  EXPECT_NO_THROW(check_inputs({x, y}, {"x", "y"}, {torch::ones(2), torch::ones(2)}, {}));
  EXPECT_FX_ERROR(check_inputs({x, y}, {"x", "y"}, {torch::ones(2), torch::ones(3)}, {}), RunError,
                  kShapeMismatch, "dimension 0 (s0) must be 2, as dimension 0 of 'x'");
}

TEST(InputGuard, copies_keep_them_and_exact_guards_print) {
  GraphModule gm = guarded();
  gm.set_input_guards(guards());
  EXPECT_EQ(gm.deep_copy()->input_guards(), guards());
  EXPECT_EQ(exact_guard("x", torch::ones({2, 3}, at::kLong)).str(), "i64[2, 3]");
}

}  // namespace
}  // namespace fx
