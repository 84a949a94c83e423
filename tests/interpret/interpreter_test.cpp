#include "fx/interpret/interpreter.h"

#include "tests/interpret/call_log.h"

namespace fx {
namespace {

using ::testing::ElementsAre;

TEST(Interpreter, I_002_F_089_S0_03_equals_graph_module_and_eager) {
  torch::manual_seed(0);
  const at::Tensor x = torch::randn({10, 20}), y = torch::randn({10, 1});

  ParamModel param_model;
  auto gm = param_module(param_model);
  const at::Tensor eager = param_model->forward(x, y);
  EXPECT_TRUE(same(Interpreter(*gm).run({x, y}), eager));
  EXPECT_TRUE(same(gm->forward({x, y}), eager));

  MyModel my_model;
  const at::Tensor batch = torch::randn({1, 10});
  for (bool leaf : {false, true}) {
    auto my = my_model_module(my_model, leaf);
    EXPECT_TRUE(same(Interpreter(*my).run({batch}), my_model->forward(batch)));
    EXPECT_TRUE(same(my->forward({batch}), my_model->forward(batch)));
  }

  auto affine = affine_module();
  EXPECT_TRUE(same(Interpreter(*affine).run({x}), (x + 1) * 2));
  EXPECT_TRUE(same((*affine)(x), (x + 1) * 2));
  EXPECT_EQ(Interpreter(*affine).run({3}).toInt(), 8);
  EXPECT_EQ((*affine)(3).toInt(), 8);
}

TEST(Interpreter, S0_06_env_holds_every_node_in_graph_order_without_collection) {
  auto gm = affine_module();
  Interpreter interpreter(*gm, /*garbage_collect_values=*/false);
  interpreter.run({5});
  EXPECT_EQ(interpreter.env().names(), (Names{"x", "add", "mul", "output"}));
  EXPECT_EQ(interpreter.env().at("add").toInt(), 6);
  EXPECT_EQ(interpreter.env().at("output").toInt(), 12);
}

TEST(Interpreter, S0_06_result_is_in_env_after_each_node) {
  auto gm = affine_module();
  Interpreter interpreter(*gm, false);
  interpreter.start({5});
  for (Node& node : gm->graph().nodes()) {
    EXPECT_FALSE(interpreter.env().contains(node));
    EXPECT_EQ(interpreter.step(), &node);
    EXPECT_TRUE(interpreter.env().contains(node));
  }
  EXPECT_EQ(interpreter.step(), nullptr);
}

struct FetchCounter : Interpreter {
  using Interpreter::Interpreter;
  ArgsKwargs fetch_args_kwargs_from_env(Node& node) override {
    ++fetches[std::string(node.name())];
    return Interpreter::fetch_args_kwargs_from_env(node);
  }
  std::map<std::string, int> fetches;
};

TEST(Interpreter, S0_08_run_node_fetches_exactly_once) {
  ParamModel model;
  auto gm = param_module(model);
  FetchCounter interpreter(*gm);
  interpreter.run({torch::ones({10, 20}), torch::ones({10, 1})});
  ASSERT_EQ(interpreter.fetches.size(), gm->graph().size());
  for (const auto& [name, count] : interpreter.fetches) EXPECT_EQ(count, 1) << name;
}

TEST(Interpreter, I_004_Q_009_F_094_S0_14_initial_env_skips_every_node_in_it) {
  auto gm = affine_module();
  RunOptions options;
  options.initial_env = {{&node_of(*gm, "x"), 0}, {&node_of(*gm, "add"), 100}};
  Interpreter interpreter(*gm);
  EXPECT_EQ(interpreter.run({}, options).toInt(), 200);
  // The caller's map is copied, and used up values are gone.
  EXPECT_EQ(options.initial_env.size(), 2u);
  EXPECT_EQ(interpreter.env().names(), (Names{"output"}));
  // A preset inner node: its placeholder still takes its input.
  options.initial_env = {{&node_of(*gm, "add"), 100}};
  EXPECT_EQ(interpreter.run({1}, options).toInt(), 200);
  // A preset output is no result, as in torch.fx.
  options.initial_env = {{&node_of(*gm, "output"), 1}};
  EXPECT_TRUE(interpreter.run({1}, options).isNone());
}

TEST(Interpreter, S0_36_close_to_eager) {
  torch::manual_seed(0);
  ParamModel model;
  auto gm = param_module(model);
  const at::Tensor x = torch::randn({10, 20}), y = torch::randn({10, 1});
  const at::Tensor eager = model->forward(x, y);
  const at::Tensor result = Interpreter(*gm).run({x, y}).toTensor();
  EXPECT_EQ(result.sizes(), (at::IntArrayRef{10, 5}));
  EXPECT_TRUE(torch::allclose(eager, result));
}

TEST(Interpreter, S0_34_values_at_seed_0) {
  torch::manual_seed(0);
  ParamModel model;
  auto gm = param_module(model);
  const at::Tensor x = torch::randn({10, 20}), y = torch::randn({10, 1});
  const at::Tensor result = Interpreter(*gm).run({x, y}).toTensor();
  EXPECT_TRUE(torch::allclose(
      result[0], row({0.688611f, -1.518742f, 1.672375f, 0.668162f, -0.618695f}), 0, 1e-5));
}

TEST(Interpreter, I_003_S0_38_inputs_bind_by_position) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  graph->output(graph->call_function("operator.sub", {x, y}));
  GraphModule gm(graph);
  EXPECT_EQ(Interpreter(gm).run({10, 3}).toInt(), 7);
  EXPECT_EQ(Interpreter(gm).run({3, 10}).toInt(), -7);
  // Extra inputs are an error here; strict = false ignores them, as torch.fx does.
  EXPECT_FX_ERROR(Interpreter(gm).run({10, 3, 4}), RunError, kExtraInput,
                  "2 inputs (x, y), found 3");
  EXPECT_EQ(Interpreter(gm).run({10, 3, 4}, {.strict = false}).toInt(), 7);
}

TEST(Interpreter, S0_73_an_edit_counts_without_recompile) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 1.0});
  graph->output(graph->call_function("operator.mul", {add, 2.0}));
  GraphModule gm(graph);
  Interpreter before(gm);
  EXPECT_EQ(before.run({5.0}).toDouble(), 12.0);
  add.set_args({x, 100.0});
  EXPECT_EQ(Interpreter(gm).run({5.0}).toDouble(), 210.0);
  // One that was built before the edit sees it as well: nothing is kept from the old graph.
  EXPECT_EQ(before.run({5.0}).toDouble(), 210.0);
  // The compiled program runs the graph of its last recompile.
  EXPECT_EQ(gm(5.0).toDouble(), 12.0);
  gm.recompile();
  EXPECT_EQ(gm(5.0).toDouble(), 210.0);
}

TEST(Interpreter, I_006_lifetimes_follow_edits) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 1});
  Node& mul = graph->call_function("operator.mul", {add, 2});
  graph->output(mul);
  GraphModule gm(graph);
  Interpreter interpreter(gm);
  EXPECT_EQ(interpreter.run({5}).toInt(), 12);
  // x is read later now: lifetimes computed at construction would have freed it too early.
  mul.set_args({add, x});
  EXPECT_EQ(interpreter.run({5}).toInt(), 30);
  EXPECT_EQ(interpreter.env().names(), (Names{"output"}));
}

TEST(Interpreter, follows_a_replaced_graph) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  EXPECT_EQ(interpreter.run({1}).toInt(), 4);
  auto graph = std::make_shared<Graph>();
  graph->output(graph->call_function("operator.neg", {graph->placeholder("x")}));
  gm->set_graph(graph);
  EXPECT_EQ(interpreter.run({1}).toInt(), -1);
}

TEST(Interpreter, S2_02_run_stores_and_map_nodes_to_values_looks_up) {
  auto gm = affine_module();
  Node& add = node_of(*gm, "add");
  Interpreter interpreter(*gm);
  interpreter.env().set(node_of(*gm, "x"), 7);
  EXPECT_EQ(interpreter.map_nodes_to_values(add.arg(0), add).toInt(), 7);
  EXPECT_EQ(interpreter.map_nodes_to_values(add.arg(1), add).toInt(), 1);
  EXPECT_EQ(interpreter.run_node(add).toInt(), 8);
  EXPECT_FALSE(interpreter.env().contains(add));  // run_node stores nothing
  interpreter.start({7});
  while (interpreter.next_node() != &add) interpreter.step();
  interpreter.step();
  EXPECT_EQ(interpreter.env().at(add).toInt(), 8);  // run() does
}

TEST(Interpreter, S2_18_run_calls_run_node_which_calls_the_handler) {
  auto gm = affine_module();
  CallLog interpreter(*gm);
  interpreter.run({1}, {});
  EXPECT_THAT(
      interpreter.log,
      ElementsAre("run", "run_node", "placeholder(x)", "run_node", "call_function(operator.add)",
                  "run_node", "call_function(operator.mul)", "run_node", "output(output)"));
}

TEST(Interpreter, S3_54_computes_concrete_values) {
  // A ShapeProp of one's own: fills meta from what really came out.
  struct ShapeRecorder : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      Value value = Interpreter::run_node(node);
      if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        node.meta().set("shape", tensor.sizes().vec());
        node.meta().set("dtype", tensor.scalar_type());
        node.meta().set("stride", tensor.strides().vec());
        node.meta().set("device", tensor.device());
      }
      return value;
    }
  };
  ParamModel model;
  auto gm = param_module(model);
  ShapeRecorder(*gm).run({torch::ones({10, 20}), torch::ones({10, 1})});
  for (auto [name, shape] : {std::pair{"x", std::vector<std::int64_t>{10, 20}},
                             {"y", {10, 1}},
                             {"param", {10, 20}},
                             {"mul", {10, 20}},
                             {"linear", {10, 5}},
                             {"output", {10, 5}}}) {
    const Meta& meta = node_of(*gm, name).meta();
    ASSERT_NE(meta.get<std::vector<std::int64_t>>("shape"), nullptr) << name;
    EXPECT_EQ(*meta.get<std::vector<std::int64_t>>("shape"), shape) << name;
    EXPECT_EQ(*meta.get<at::ScalarType>("dtype"), at::kFloat);
    EXPECT_TRUE(meta.get<c10::Device>("device")->is_cpu());
  }
  EXPECT_EQ(*node_of(*gm, "linear").meta().get<std::vector<std::int64_t>>("stride"),
            (std::vector<std::int64_t>{5, 1}));
}

TEST(Interpreter, S3_56_steps_and_runs_single_nodes) {
  struct Model : torch::nn::Module {
    Model() { linear = register_module("linear", torch::nn::Linear(5, 3)); }
    torch::nn::Linear linear{nullptr};
  };
  torch::manual_seed(0);
  Model model;
  auto graph = std::make_shared<Graph>();
  Node& input = graph->placeholder("input");
  Node& linear = graph->call_module("linear", {input});
  graph->output(linear);
  GraphModule gm(model, graph);
  const at::Tensor x = torch::randn({1, 5});
  Interpreter interpreter(gm);
  // The first node gives the input.
  EXPECT_TRUE(same(interpreter.run_node(input, {x}), x));
  // A later one reads it.
  EXPECT_TRUE(same(interpreter.run_node(linear, {x}), model.linear->forward(x)));
  // start() and then run_node by hand.
  interpreter.start({x});
  EXPECT_TRUE(same(interpreter.run_node(input), x));
  // S3_57: the whole graph returns a tensor.
  const Value result = interpreter.run({x});
  ASSERT_TRUE(result.isTensor());
  EXPECT_TRUE(torch::allclose(result.toTensor(),
                              row({-0.013696f, 0.152358f, -0.064105f}).unsqueeze(0), 0, 1e-5));
  EXPECT_EQ(interpreter.env().names(), (Names{"output"}));
}

TEST(Interpreter, S3_57_run_returns_a_tensor) {
  auto gm = affine_module();
  const Value result = Interpreter(*gm).run({row({1, 2})});
  EXPECT_TRUE(same(result, row({4, 6})));
}

TEST(Interpreter, S3_56_step_by_step) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  interpreter.start({3});
  EXPECT_EQ(interpreter.next_node(), &node_of(*gm, "x"));
  EXPECT_EQ(interpreter.step()->name(), "x");
  EXPECT_EQ(interpreter.step()->name(), "add");
  EXPECT_EQ(interpreter.env().at("add").toInt(), 4);
  EXPECT_EQ(interpreter.next_node(), &node_of(*gm, "mul"));
  EXPECT_EQ(interpreter.finish().toInt(), 8);
  EXPECT_EQ(interpreter.next_node(), nullptr);
}

TEST(Interpreter, S3_59_env_is_keyed_by_node_with_names_as_a_helper) {
  auto gm = affine_module();
  Interpreter interpreter(*gm, false);
  interpreter.run({1});
  Node& add = node_of(*gm, "add");
  EXPECT_EQ(interpreter.env().at(add).toInt(), 2);
  EXPECT_EQ(interpreter.env().at("add").toInt(), 2);
  add.rename("total");
  EXPECT_EQ(interpreter.env().at(add).toInt(), 2);
  EXPECT_EQ(interpreter.env().at("total").toInt(), 2);
  EXPECT_FALSE(interpreter.env().contains("add"));
}

TEST(Interpreter, S3_60_takes_a_graph_module_and_inputs) {
  auto gm = affine_module();
  Interpreter by_pointer(gm);
  EXPECT_EQ(by_pointer.run({1}).toInt(), 4);
  // The interpreter keeps a shared module alive.
  Interpreter by_reference(*gm);
  gm.reset();
  EXPECT_EQ(by_reference.run({1}).toInt(), 4);
  EXPECT_EQ(by_pointer.run({2}).toInt(), 6);
}

TEST(Interpreter, I_001_I_012_F_091_S2_20_runs_any_module_with_a_graph) {
  ParamModel model;
  auto graph = param_model_graph();
  Interpreter interpreter(*model, *graph);
  const at::Tensor x = torch::randn({10, 20}), y = torch::randn({10, 1});
  EXPECT_TRUE(same(interpreter.run({x, y}), model->forward(x, y)));
  EXPECT_TRUE(same(interpreter.fetch_attr("linear.weight"), model->linear->weight));
  EXPECT_FX_ERROR(interpreter.fetch_attr("linear.nothing"), RunError, kMissingAttr,
                  "Node referenced nonexistent target linear.nothing");
  EXPECT_FX_ERROR(interpreter.fetch_attr("no.such.thing"), RunError, kMissingAttr,
                  "Node referenced nonexistent target no");
}

TEST(Interpreter, F_106_output_ends_the_run_and_a_graph_without_one_returns_none) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->call_function("operator.neg", {x});
  GraphModule no_output(graph);
  EXPECT_TRUE(Interpreter(no_output).run({1}).isNone());
  EXPECT_TRUE(no_output(1).isNone());
  graph->output(x);
  graph->call_function("operator.truediv", {1, 0});  // never reached
  no_output.recompile();
  EXPECT_EQ(Interpreter(no_output).run({1}).toInt(), 1);
  EXPECT_EQ(no_output(1).toInt(), 1);

  GraphModule empty;
  EXPECT_TRUE(Interpreter(empty).run().isNone());
  EXPECT_TRUE(empty.forward({}).isNone());
}

TEST(Interpreter, I_008_F_090_boxed_run_empties_the_list_and_keeps_it_on_error) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& sum = graph->call_function("operator.add", {x, y});
  graph->output(graph->call_function("operator.neg", {sum}));
  GraphModule gm(graph);
  Interpreter interpreter(gm);

  Values two{torch::ones({2}), torch::ones({2})};
  EXPECT_TRUE(same(interpreter.boxed_run(two), row({-2, -2})));
  EXPECT_TRUE(two.empty());

  Values one{1};
  EXPECT_FX_ERROR(interpreter.boxed_run(one), RunError, kMissingInput,
                  "Interpreter.boxed_run expected 2 arguments for placeholders (x, y) but received "
                  "1 (missing arguments)");
  EXPECT_EQ(one.size(), 1u);
  Values three{1, 2, 3};
  EXPECT_FX_ERROR(interpreter.boxed_run(three), RunError, kExtraInput,
                  "but received 3 (extra arguments)");
  EXPECT_EQ(three.size(), 3u);
}

TEST(Interpreter, G_094_M_021_boxed_inputs_die_at_their_last_use) {
  struct Watch : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      if (node.name() == "neg_1") expired = weak.expired();
      return Interpreter::run_node(node);
    }
    c10::weak_intrusive_ptr<c10::TensorImpl> weak{c10::intrusive_ptr<c10::TensorImpl>()};
    bool expired = false;
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& first = graph->call_function("operator.neg", {x});
  graph->output(graph->call_function("operator.neg", {first}));
  GraphModule gm(graph);
  for (bool boxed : {true, false}) {
    Watch interpreter(gm);
    Values inputs{torch::ones({4})};
    interpreter.weak =
        c10::weak_intrusive_ptr<c10::TensorImpl>(inputs[0].toTensor().getIntrusivePtr());
    boxed ? interpreter.boxed_run(inputs) : interpreter.run(std::move(inputs));
    EXPECT_TRUE(interpreter.expired) << "boxed " << boxed;
  }
}

}  // namespace
}  // namespace fx
