#include <exception>

#include "fx/graph/node_error.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "fx/ops/device_check.h"
#include "tests/interpret/models.h"

namespace fx {
namespace {

using ::testing::HasSubstr;

// The error of a run, as Interpreter and as GraphModule; both must say the same.
RunError error_of(GraphModule& gm, const Values& inputs) {
  std::optional<RunError> interpreted, compiled;
  try {
    Interpreter(gm).run(inputs);
  } catch (const RunError& error) {
    interpreted = error;
    // The original is nested.
    EXPECT_NE(dynamic_cast<const std::nested_exception*>(&error), nullptr);
  }
  try {
    gm.forward(inputs);
  } catch (const RunError& error) {
    compiled = error;
    EXPECT_NE(dynamic_cast<const std::nested_exception*>(&error), nullptr);
  }
  if (!interpreted || !compiled) throw std::runtime_error("a run that should fail did not");
  EXPECT_EQ(interpreted->code(), compiled->code());
  EXPECT_EQ(interpreted->text(), compiled->text());
  return *interpreted;
}

TEST(NodeError, I_015_M_019_F_161_F6_shows_node_shapes_and_origin) {
  ParamModel model;
  auto gm = param_module(model);
  node_of(*gm, "add").set_stack_trace("model.cpp:12: x + param\n");
  const RunError error = error_of(*gm, {torch::ones({5, 20}), torch::ones({5, 1})});
  EXPECT_EQ(error.code(), ErrorCode::kNodeFailed);
  EXPECT_EQ(error.text(),
            "The size of tensor a (5) must match the size of tensor b (10) at non-singleton "
            "dimension 0\n\n"
            "While executing %add : [num_users=1] = call_function[target=operator.add](args = "
            "(%x, %param), kwargs = {})\n"
            "  x: Tensor f32[5, 20]\n"
            "  param: Tensor f32[10, 20]\n"
            "Original traceback:\n"
            "model.cpp:12: x + param");
  EXPECT_THAT(error.what(), HasSubstr("[FX308]"));
}

TEST(NodeError, F49_the_module_a_node_comes_from_is_named) {
  auto gm = affine_module();
  node_of(*gm, "add")
      .meta()
      .set("nn_module_stack", std::vector<std::pair<std::string, std::string>>{
                                  {"encoder", "Encoder"}, {"encoder.layer", "Layer"}});
  EXPECT_THAT(error_of(*gm, {"text"}).text(), HasSubstr("\nModule: encoder.layer (Layer)"));
}

TEST(NodeError, optional_tensors_are_shown_as_well) {
  auto graph = std::make_shared<Graph>();
  Args args;
  for (const char* name : {"x", "mean", "var"}) args.emplace_back(graph->placeholder(name));
  Node& norm = graph->call_function(
      "aten::batch_norm", {args[0], nullptr, nullptr, args[1], args[2], true, 0.1, 1e-5, false});
  graph->output(norm);
  GraphModule gm(graph);
  const RunError error = error_of(gm, {torch::ones({2, 3}), torch::ones({6}), torch::ones({6})});
  EXPECT_THAT(error.text(), HasSubstr("running_mean should contain 3 elements not 6"));
  EXPECT_THAT(error.text(), HasSubstr("\n  x: Tensor f32[2, 3]\n  mean: Tensor f32[6]\n  var: "
                                      "Tensor f32[6]"));
}

TEST(NodeError, S0_09_every_kind_of_exception_carries_the_node) {
  register_wrapped_function("error_test_throw", [](Values args, KwValues) -> Value {
    switch (args[0].toInt()) {
      case 0:
        throw std::out_of_range("no such key");
      case 1:
        TORCH_CHECK(false, "from LibTorch");
      case 2:
        throw 42;
      default:
        throw GraphError(ErrorCode::kBadName, "from fx");
    }
  });
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_function("error_test_throw", {x}));
  GraphModule gm(graph);
  const std::array texts{"no such key", "from LibTorch", "unknown exception", "from fx"};
  for (int kind = 0; kind < 4; ++kind) {
    const RunError error = error_of(gm, {kind});
    EXPECT_EQ(error.code(), ErrorCode::kNodeFailed);
    EXPECT_TRUE(error.text().starts_with(std::string(texts[static_cast<std::size_t>(kind)]) +
                                         "\n\nWhile executing %error_test_throw : "))
        << error.text();
  }
}

TEST(NodeError, M_020_the_original_exception_is_nested) {
  register_wrapped_function("error_test_out_of_range",
                            [](Values, KwValues) -> Value { throw std::out_of_range("original"); });
  auto graph = std::make_shared<Graph>();
  graph->output(graph->call_function("error_test_out_of_range"));
  GraphModule gm(graph);
  for (bool compiled : {false, true}) {
    try {
      compiled ? gm.forward({}) : Interpreter(gm).run();
      ADD_FAILURE();
    } catch (const RunError& error) {
      EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
    }
  }
}

TEST(NodeError, I_014_S0_10_missing_value_names_both_nodes) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  EXPECT_FX_ERROR(interpreter.fetch_args_kwargs_from_env(node_of(*gm, "add")), RunError,
                  kMissingValue,
                  "Node add referenced nonexistent value x! Run Graph.lint() to diagnose such "
                  "issues");
}

TEST(NodeError, G_006_S1_28_wrong_order_fails_where_the_value_is_missing) {
  auto gm = affine_module();
  Node& add = node_of(*gm, "add");
  Node& mul = node_of(*gm, "mul");
  add.set_args({mul, 1});
  mul.set_args({node_of(*gm, "x"), 2});
  gm->recompile();
  const RunError error = error_of(*gm, {1});
  EXPECT_EQ(error.code(), ErrorCode::kMissingValue);
  EXPECT_TRUE(error.text().starts_with(
      "Node add referenced nonexistent value mul! Run Graph.lint() to diagnose such issues\n\n"
      "While executing %add : "))
      << error.text();
  EXPECT_THROW(gm->graph().lint(), LintError);
}

TEST(NodeError, S0_11_an_erased_value_is_named_and_printing_does_not_throw) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& dead = graph->call_function("operator.neg", {x});
  graph->erase_node(dead);
  Node& user = graph->call_function("operator.add", {dead, 1});
  graph->output(user);
  GraphModule gm(graph);
  const RunError error = error_of(gm, {1});
  EXPECT_EQ(error.code(), ErrorCode::kMissingValue);
  EXPECT_THAT(error.what(), HasSubstr("Node add referenced nonexistent value neg!"));
  EXPECT_NO_THROW(graph->str());
}

TEST(NodeError, a_missing_output_value_is_reported_at_the_output) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& output = graph->output(x);
  Node& late = graph->call_function("operator.neg", {x});
  output.set_args({late});
  GraphModule gm(graph);
  const RunError error = error_of(gm, {1});
  EXPECT_EQ(error.code(), ErrorCode::kMissingValue);
  EXPECT_THAT(error.text(), HasSubstr("Node output referenced nonexistent value neg!"));
}

TEST(NodeError, S4_14_missing_module_and_attribute) {
  ParamModel model;
  auto gm = param_module(model);
  const Values inputs{torch::ones({10, 20}), torch::ones({10, 1})};
  ASSERT_TRUE(gm->delete_submodule("linear"));
  EXPECT_FX_ERROR(Interpreter(*gm).run(inputs), RunError, kMissingAttr,
                  "Node referenced nonexistent target linear");
  EXPECT_FX_ERROR(gm->forward(inputs), RunError, kMissingAttr,
                  "'ParamModel' object has no attribute 'linear'");
  EXPECT_FX_ERROR(gm->forward(inputs), RunError, kMissingAttr, "While executing %linear : ");
}

TEST(NodeError, F_162_S4_13_errors_inside_submodules_keep_their_message) {
  MyModel model;
  auto gm = my_model_module(model, /*leaf=*/true);
  const RunError error = error_of(*gm, {torch::ones({1, 3})});
  EXPECT_EQ(error.code(), ErrorCode::kNodeFailed);
  EXPECT_THAT(error.text(), HasSubstr("mat1 and mat2 shapes cannot be multiplied (1x3 and 10x20)"));
  EXPECT_THAT(error.text(), HasSubstr("While executing %sub_module_a : "));
  EXPECT_THAT(error.text(), HasSubstr("\n  x: Tensor f32[1, 3]\nModule: sub_module_a"));
}

TEST(NodeError, nested_graphs_name_the_inner_and_the_outer_node) {
  auto inner_graph = std::make_shared<Graph>();
  Node& a = inner_graph->placeholder("a");
  inner_graph->output(inner_graph->call_function("torch.view", {a, Argument::list({7})}));
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  GraphModule gm(graph);
  gm.set_submodule("block", std::make_shared<GraphModule>(inner_graph, "Block"));
  graph->output(graph->call_module("block", {x}));
  gm.recompile();
  const RunError error = error_of(gm, {torch::ones({2})});
  EXPECT_EQ(error.code(), ErrorCode::kNodeFailed);
  const std::string& text = error.text();
  EXPECT_LT(text.find("While executing %view"), text.find("While executing %block"));
  // An inner input that is missing is no missing input of the outer graph.
  node_of(gm, "block").set_args({});
  gm.recompile();
  EXPECT_EQ(error_of(gm, {torch::ones({2})}).code(), ErrorCode::kNodeFailed);
}

TEST(NodeError, S4_61_an_override_that_returns_nothing_fails_in_the_first_user) {
  struct Nothing : Interpreter {
    using Interpreter::Interpreter;
    Value call_module(std::string_view, Values, KwValues) override { return {}; }
  };
  auto graph = std::make_shared<Graph>();
  MyModel model;
  Node& x = graph->placeholder("x");
  Node& linear = graph->call_module("another_linear", {x});
  graph->output(graph->call_function("operator.neg", {linear}));
  GraphModule gm(*model, graph);
  EXPECT_FX_ERROR(Nothing(gm).run({torch::ones({1, 5})}), RunError, kNodeFailed,
                  "While executing %neg : ");
}

TEST(NodeError, S0_19_a_wrong_kind_of_value_names_the_argument) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_function("aten::relu", {x}));
  GraphModule gm(graph);
  const RunError error = error_of(gm, {"text"});
  EXPECT_THAT(error.text(), HasSubstr("argument 'self' (position 1) does not take a str"));
  EXPECT_THAT(error.text(), HasSubstr("While executing %relu : "));
}

TEST(NodeError, an_unknown_operator_fails_when_it_is_reached) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_function("mylib::no_such_op", {x}));
  GraphModule gm(graph);
  EXPECT_THAT(error_of(gm, {1}).text(), HasSubstr("this process has no operator "
                                                  "'mylib::no_such_op'"));
}

TEST(NodeError, env_stays_for_a_look_after_an_error) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& neg = graph->call_function("operator.neg", {x});
  graph->output(graph->call_function("operator.add", {neg, "text"}));
  GraphModule gm(graph);
  Interpreter interpreter(gm);
  EXPECT_THROW(interpreter.run({torch::ones({2})}), RunError);
  EXPECT_TRUE(same(interpreter.env().at("neg"), row({-1, -1})));
  EXPECT_EQ(interpreter.next_node()->name(), "add");
}

TEST(NodeError, S2_13_a_missing_key_inside_a_run_carries_the_node) {
  struct Early : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      if (node.name() == "add") env().at("mul");
      return Interpreter::run_node(node);
    }
  };
  auto gm = affine_module();
  EXPECT_FX_ERROR(Early(*gm).run({1}), RunError, kMissingValue, "While executing %add : ");
}

TEST(NodeError, an_edit_after_compilation_is_mentioned) {
  auto gm = affine_module();
  node_of(*gm, "add").update_arg(1, 5);
  EXPECT_FX_ERROR(gm->forward({"text"}), RunError, kNodeFailed,
                  "The graph was edited since it was compiled");
}

TEST(DeviceCheck, S4_38_S4_41_mixed_devices_are_reported_before_the_kernel_runs) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& add = graph->call_function("aten::add.Tensor", {x, y});
  graph->output(add);
  GraphModule gm(graph);
  const at::Tensor cpu = torch::ones({2}), meta = torch::ones({2}, at::kMeta);
  for (const char* target : {"aten::add.Tensor", "torch.add", "operator.add", "aten::linear"}) {
    add.set_target(target);
    gm.recompile();
    const RunError error = error_of(gm, {cpu, meta});
    EXPECT_EQ(error.code(), ErrorCode::kDeviceMismatch) << target;
    // Each argument with its device.
    EXPECT_TRUE(error.text().starts_with(
        "Expected all tensors to be on the same device, but found at least two devices, cpu and "
        "meta! (argument 1 on cpu, argument 2 on meta)"))
        << error.text();
    EXPECT_THAT(error.text(), HasSubstr("\n  y: Tensor f32[2] meta"));
  }
  add.set_op(Opcode::kCallMethod, Target::string("add"));
  gm.recompile();
  EXPECT_EQ(error_of(gm, {cpu, meta}).code(), ErrorCode::kDeviceMismatch);
}

TEST(DeviceCheck, scalars_and_copies_may_mix) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& add = graph->call_function("aten::add.Tensor", {x, y});
  graph->output(add);
  GraphModule gm(graph);
  const at::Tensor meta = torch::ones({2}, at::kMeta);
  // A zero-dimensional CPU tensor goes with every device.
  EXPECT_TRUE(gm.forward({meta, torch::scalar_tensor(1)}).toTensor().is_meta());
  EXPECT_TRUE(Interpreter(gm).run({torch::scalar_tensor(1), meta}).toTensor().is_meta());
  add.set_target("aten::copy_");
  gm.recompile();
  EXPECT_TRUE(gm.forward({meta, torch::ones({2})}).toTensor().is_meta());
  EXPECT_TRUE(Interpreter(gm).run({meta, torch::ones({2})}).toTensor().is_meta());
}

TEST(DeviceCheck, lists_are_searched) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  graph->output(graph->call_function("aten::cat", {Argument::list({x, y})}));
  GraphModule gm(graph);
  const RunError error = error_of(gm, {torch::ones({2}), torch::ones({2}, at::kMeta)});
  EXPECT_EQ(error.code(), ErrorCode::kDeviceMismatch);
  EXPECT_THAT(error.text(), HasSubstr("(argument 1 on cpu, meta)"));
}

}  // namespace
}  // namespace fx
