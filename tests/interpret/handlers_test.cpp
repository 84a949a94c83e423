#include "tests/interpret/call_log.h"

/// One handler for each opcode, and calls of submodules.
namespace fx {
namespace {

using ::testing::ElementsAre;

TEST(Interpreter, I_011_S4_05_has_one_handler_for_each_opcode) {
  ParamModel model;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& param = graph->get_attr("param");
  Node& add = graph->call_function("operator.add", {x, param});
  Node& relu = graph->call_method("relu", {add});
  Node& linear = graph->call_module("linear", {relu});
  graph->output(linear);
  GraphModule gm(*model, graph);
  CallLog interpreter(gm);
  const Value result = interpreter.run({torch::ones({10, 20})}, {});
  // S4_06: only call_module nodes reach call_module.
  EXPECT_THAT(handlers_of(interpreter.log),
              ElementsAre("placeholder(x)", "get_attr(param)", "call_function(operator.add)",
                          "call_method(relu)", "call_module(linear)", "output(output)"));
  EXPECT_TRUE(same(result, model->linear->forward(torch::relu(1 + model->param))));
}

TEST(Interpreter, S4_06_only_module_calls_reach_call_module) {
  ParamModel model;
  auto gm = param_module(model);
  CallLog interpreter(*gm);
  interpreter.run({torch::ones({10, 20}), torch::ones({10, 1})}, {});
  int calls = 0;
  for (const std::string& line : interpreter.log) calls += line.starts_with("call_module");
  EXPECT_EQ(calls, 1);
}

TEST(Interpreter, S4_07_call_module_runs_the_submodule) {
  ParamModel model;
  auto gm = param_module(model);
  const at::Tensor x = torch::randn({3, 20});
  Interpreter interpreter(*gm);
  EXPECT_TRUE(same(interpreter.call_module("linear", {x}, {}), model->linear->forward(x)));
}

TEST(Interpreter, S4_09_dotted_targets_and_keywords_reach_the_module) {
  MyModel model;
  auto gm = my_model_module(model, /*leaf=*/false);
  const at::Tensor x = torch::randn({3, 10});
  Interpreter interpreter(*gm);
  const at::Tensor wanted = model->sub_module_a->linear->forward(x);
  EXPECT_TRUE(same(interpreter.call_module("sub_module_a.linear", {x}, {}), wanted));
  EXPECT_TRUE(
      same(interpreter.call_module("sub_module_a.linear", {}, {{Symbol("input"), x}}), wanted));
}

TEST(Interpreter, S4_10_call_module_returns_any_value) {
  struct Model : torch::nn::Module {
    Model() { lstm = register_module("lstm", torch::nn::LSTM(3, 4)); }
    torch::nn::LSTM lstm{nullptr};
  } model;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& lstm = graph->call_module("lstm", {x});
  Node& state = graph->call_function("operator.getitem", {lstm, 1});
  graph->output(Argument::tuple({graph->call_function("operator.getitem", {lstm, 0}),
                                 graph->call_function("operator.getitem", {state, 1})}));
  GraphModule gm(model, graph);
  const at::Tensor x_value = torch::randn({5, 1, 3});
  const auto [output, hidden] = model.lstm->forward(x_value);
  for (const Value& result : {Interpreter(gm).run({x_value}), gm(x_value)}) {
    ASSERT_TRUE(result.isTuple());
    EXPECT_TRUE(same(elements(result)[0], output));
    EXPECT_TRUE(same(elements(result)[1], std::get<1>(hidden)));
  }
}

TEST(Interpreter, S4_12_call_log_of_a_leaf_module) {
  struct Model : torch::nn::Module {
    Model() { linear = register_module("linear", torch::nn::Linear(10, 5)); }
    torch::nn::Linear linear{nullptr};
  };
  torch::manual_seed(0);
  Model model;
  auto graph = std::make_shared<Graph>();
  graph->output(graph->call_module("linear", {graph->placeholder("x")}));
  GraphModule gm(model, graph);
  CallLog interpreter(gm);
  const at::Tensor result = interpreter.run({torch::randn({1, 10})}, {}).toTensor();
  EXPECT_THAT(handlers_of(interpreter.log),
              ElementsAre("placeholder(x)", "call_module(linear)", "output(output)"));
  EXPECT_TRUE(torch::allclose(
      result, row({-0.434884f, 0.517306f, 0.265815f, -1.530562f, 0.747835f}).unsqueeze(0), 0,
      1e-5));
}

TEST(Interpreter, S4_50_forward_of_own_modules_runs_under_the_leaf_policy_only) {
  MyModel model;
  const at::Tensor x = torch::randn({1, 10});
  for (bool leaf : {true, false}) {
    auto gm = my_model_module(model, leaf);
    MySubModuleImpl::forward_calls = 0;
    Interpreter(*gm).run({x});
    EXPECT_EQ(MySubModuleImpl::forward_calls, leaf ? 2 : 0);
  }
}

}  // namespace
}  // namespace fx
