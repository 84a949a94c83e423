#include "fx/run/executable.h"

#include <torch/torch.h>

#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using ::testing::HasSubstr;

at::Tensor row(std::vector<float> values) { return torch::tensor(values); }

bool same(const Value& a, const at::Tensor& b) {
  return a.isTensor() && a.toTensor().scalar_type() == b.scalar_type() &&
         at::equal(a.toTensor(), b);
}

TEST(GraphModule, S1_26_runs_the_program_of_the_last_recompile) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 1});
  Node& mul = graph->call_function("operator.mul", {add, 2});
  graph->output(mul);
  GraphModule gm(graph);
  EXPECT_FALSE(gm.needs_recompile());
  mul.update_arg(1, 10);
  EXPECT_TRUE(gm.needs_recompile());
  EXPECT_EQ(gm(3).toInt(), 8);
  EXPECT_EQ(Interpreter(gm).run({3}).toInt(), 40);
  gm.recompile();
  EXPECT_FALSE(gm.needs_recompile());
  EXPECT_EQ(gm(3).toInt(), 40);
}

TEST(GraphModule, M_006_recompiles_nested_modules_at_any_depth) {
  auto inner = std::make_shared<Graph>();
  Node& a = inner->placeholder("a");
  Node& neg = inner->call_function("operator.neg", {a});
  inner->output(neg);
  auto nested = std::make_shared<GraphModule>(inner);
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  GraphModule gm(graph);
  gm.set_submodule("outer.block", nested);
  graph->output(graph->call_module("outer.block", {x}));
  gm.recompile();
  EXPECT_EQ(gm(3).toInt(), -3);
  neg.set_target("operator.pos");
  EXPECT_TRUE(nested->needs_recompile());
  gm.recompile();
  EXPECT_FALSE(nested->needs_recompile());
  EXPECT_EQ(gm(3).toInt(), 3);
}

TEST(GraphModule, attributes_and_submodules_are_read_live) {
  struct Model : torch::nn::Module {
    Model() {
      linear = register_module("linear", torch::nn::Linear(2, 2));
      buffer = register_buffer("buffer", torch::ones({2}));
    }
    torch::nn::Linear linear{nullptr};
    at::Tensor buffer;
  } model;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& linear = graph->call_module("linear", {x});
  Node& buffer = graph->get_attr("buffer");
  Node& add = graph->call_function("operator.add", {linear, buffer});
  GraphModule gm(model, graph);
  gm.set_constant("constant", torch::full({2}, 10.0f));
  Node& constant = graph->get_attr("constant");
  graph->output(graph->call_function("operator.add", {add, constant}));
  gm.recompile();
  torch::NoGradGuard no_grad;
  const at::Tensor in = torch::randn({3, 2});
  EXPECT_TRUE(same(gm(in), model.linear->forward(in) + 1 + 10));
  model.buffer.fill_(5);
  EXPECT_TRUE(same(gm(in), model.linear->forward(in) + 5 + 10));
  gm.set_buffer("buffer", torch::full({2}, 7.0f));
  gm.set_constant("constant", torch::zeros({2}));
  EXPECT_TRUE(same(gm(in), model.linear->forward(in) + 7 + 0));
  torch::nn::Linear other(2, 2);
  gm.set_submodule("linear", other.ptr());
  EXPECT_TRUE(same(gm(in), other->forward(in) + 7 + 0));
  EXPECT_TRUE(same(Interpreter(gm).run({in}), other->forward(in) + 7 + 0));
}

TEST(GraphModule, constant_aggregates_are_not_shared_between_runs) {
  register_wrapped_function("executable_test_append", [](Values args, KwValues) -> Value {
    auto list = args[0].toIntList();
    list.push_back(99);
    return static_cast<std::int64_t>(list.size());
  });
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& size = graph->call_function("executable_test_append", {Argument::list({1, 2})});
  graph->output(Argument::tuple({size, Argument::list({7}), x}));
  GraphModule gm(graph);
  for (int i = 0; i < 3; ++i) {
    const Value result = gm(i);
    EXPECT_EQ(to_string(result), "(3, [7], " + std::to_string(i) + ")");
    elements(result)[1].toIntList().push_back(1);  // changes what the caller owns, no more
  }
}

TEST(GraphModule, F1_values_die_at_their_last_use) {
  // Counts the tensors of the run that are alive while it runs.
  static std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> made;
  static std::size_t peak;
  made.clear();
  peak = 0;
  register_wrapped_function("executable_test_count", [](Values args, KwValues) -> Value {
    at::Tensor result = args[0].toTensor() + 1;
    made.emplace_back(result.getIntrusivePtr());
    std::size_t alive = 0;
    for (const auto& weak : made) alive += !weak.expired();
    peak = std::max(peak, alive);
    return result;
  });
  auto graph = std::make_shared<Graph>();
  Node* last = &graph->placeholder("x");
  for (int i = 0; i < 50; ++i) last = &graph->call_function("executable_test_count", {*last});
  graph->output(*last);
  GraphModule gm(graph);
  const Value result = gm(torch::zeros({4}));
  EXPECT_TRUE(same(result, torch::full({4}, 50.0f)));
  EXPECT_EQ(peak, 2u);
  // Nothing is held after the run but the result.
  std::size_t alive = 0;
  for (const auto& weak : made) alive += !weak.expired();
  EXPECT_EQ(alive, 1u);
}

TEST(GraphModule, inputs_and_values_are_let_go_also_on_errors) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& kept = graph->call_function("aten::neg", {x});
  Node& fails = graph->call_function("aten::add.Tensor", {x, y});
  graph->output(Argument::tuple({kept, fails, x}));
  GraphModule gm(graph);
  const at::Tensor a = torch::ones({2}), b = torch::ones({3});
  EXPECT_THROW(gm.forward({a, b}), RunError);
  EXPECT_EQ(a.use_count(), 1);
  EXPECT_EQ(b.use_count(), 1);
  EXPECT_EQ(to_string(gm.forward({a, a})),
            "(tensor([-1., -1.]), tensor([2., 2.]), tensor([1., 1.]))");
  EXPECT_EQ(a.use_count(), 1);
}

TEST(GraphModule, in_place_operators_write_to_the_inputs) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& relu = graph->call_function("aten::relu_", {x});
  graph->call_method("add_", {relu, 1});
  graph->output(x);
  GraphModule gm(graph);
  const at::Tensor in = row({-1, 2});
  const Value result = gm(in);
  EXPECT_TRUE(result.toTensor().is_same(in));
  EXPECT_TRUE(same(in, row({1, 3})));
}

TEST(GraphModule, operators_without_results_and_with_several) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& max = graph->call_function("aten::max.dim", {x, 1});
  Node& values = graph->call_function("operator.getitem", {max, 0});
  Node& last = graph->call_function("operator.getitem", {max, -1});
  Node& check =
      graph->call_function("aten::_assert_async", {graph->call_function("aten::any", {x})});
  graph->output(Argument::list({values, last, check}));
  GraphModule gm(graph);
  const at::Tensor in = torch::tensor({{1.0f, 3.0f}, {5.0f, 2.0f}});
  const Values result = elements(gm(in));
  EXPECT_TRUE(same(result[0], row({3, 5})));
  EXPECT_TRUE(same(result[1], torch::tensor({1, 0}).to(at::kLong)));
  EXPECT_TRUE(result[2].isNone());
  auto bad = std::make_shared<Graph>();
  Node& t = bad->placeholder("t");
  bad->output(
      bad->call_function("operator.getitem", {bad->call_function("aten::max.dim", {t, 1}), 2}));
  GraphModule out_of_range(bad);
  EXPECT_FX_ERROR(out_of_range(in), RunError, kNodeFailed, "While executing %getitem");
}

TEST(GraphModule, a_value_may_change_its_kind_between_runs) {
  // The fast path is for tensors; the same program takes numbers, tuples and None as well.
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  graph->output(graph->call_function("operator.add", {x, y}));
  GraphModule gm(graph);
  EXPECT_TRUE(same(gm(row({1}), row({2})), row({3})));
  EXPECT_EQ(gm(1, 2).toInt(), 3);
  EXPECT_TRUE(same(gm(row({1}), 2), row({3})));
  EXPECT_TRUE(same(gm(2, row({1})), row({3})));
  const Value pair = c10::ivalue::Tuple::create(Values{1});
  EXPECT_EQ(to_string(gm(pair, pair)), "(1, 1)");
  EXPECT_TRUE(same(gm(row({1}), row({2})), row({3})));
}

TEST(GraphModule, single_overloads_take_numbers_for_tensors) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_function("aten::add.Tensor", {x, 2}));
  GraphModule gm(graph);
  EXPECT_TRUE(same(gm(row({1})), row({3})));
  // As a wrapped number: an int does not change the dtype, and ints stay ints.
  EXPECT_TRUE(same(gm(torch::tensor({1}, at::kInt)), torch::tensor({3}, at::kInt)));
  EXPECT_TRUE(
      same(Interpreter(gm).run({torch::tensor({1}, at::kInt)}), torch::tensor({3}, at::kInt)));
}

TEST(GraphModule, keeps_running_while_it_recompiles_the_graph_of_its_caller) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_function("aten::neg", {x}));
  GraphModule gm(graph);
  gm.set_graph(graph->clone());
  EXPECT_TRUE(same(gm(row({1})), row({-1})));
  EXPECT_EQ(graph->owner(), nullptr);
  EXPECT_EQ(gm.graph().owner(), &gm);
}

TEST(GraphModule, autograd_flows_through) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& square = graph->call_function("operator.mul", {x, x});
  graph->output(graph->call_method("sum", {square}));
  GraphModule gm(graph);
  at::Tensor in = row({1, 2, 3}).requires_grad_();
  gm(in).toTensor().backward();
  EXPECT_TRUE(same(in.grad(), row({2, 4, 6})));
}

}  // namespace
}  // namespace fx
