// Edited graphs run: by the Interpreter, which reads the graph as it stands, and by the
// GraphModule, whose program is that of the last recompile(). Expected values are worked out by
// hand.
#include <torch/torch.h>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_types.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "tests/graph/affine.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

at::Tensor vec(std::vector<float> values) { return torch::tensor(values); }

/// Runs by the Interpreter and, recompiled, by the GraphModule; both have to agree.
at::Tensor run(GraphModule& module, Values inputs) {
  const at::Tensor interpreted = Interpreter(module).run(inputs).toTensor();
  module.recompile();
  const at::Tensor compiled = module.forward(inputs).toTensor();
  EXPECT_TRUE(at::equal(interpreted, compiled)) << interpreted << compiled;
  return interpreted;
}

#define EXPECT_TENSOR(found, wanted)                                                \
  do {                                                                              \
    const at::Tensor found_ = (found), wanted_ = (wanted);                          \
    EXPECT_TRUE(found_.sizes() == wanted_.sizes() && at::allclose(found_, wanted_)) \
        << "found\n"                                                                \
        << found_ << "\nwanted\n"                                                   \
        << wanted_;                                                                 \
  } while (false)

TEST(RunGraph, G_022_F_068_S0_04_every_opcode_reaches_its_own_handler) {
  struct Net : torch::nn::Module {
    Net() {
      register_parameter("w", torch::ones({2}) * 3);
      register_module("relu", torch::nn::ReLU());
    }
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& w = graph->get_attr("w");
  Node& mul = graph->call_function("operator.mul", {x, w});
  Node& relu = graph->call_module("relu", {mul});
  Node& neg = graph->call_method("neg", {relu});
  graph->output(neg);
  GraphModule module(Net(), graph);
  struct Recorder : Interpreter {
    using Interpreter::Interpreter;
    Value placeholder(std::string_view t, Values a, KwValues k) override {
      seen += "placeholder ";
      return Interpreter::placeholder(t, std::move(a), std::move(k));
    }
    Value get_attr(std::string_view t, Values a, KwValues k) override {
      seen += "get_attr ";
      return Interpreter::get_attr(t, std::move(a), std::move(k));
    }
    Value call_function(const Target& t, Values a, KwValues k) override {
      seen += "call_function ";
      return Interpreter::call_function(t, std::move(a), std::move(k));
    }
    Value call_module(std::string_view t, Values a, KwValues k) override {
      seen += "call_module ";
      return Interpreter::call_module(t, std::move(a), std::move(k));
    }
    Value call_method(std::string_view t, Values a, KwValues k) override {
      seen += "call_method ";
      return Interpreter::call_method(t, std::move(a), std::move(k));
    }
    Value output(std::string_view t, Values a, KwValues k) override {
      seen += "output";
      return Interpreter::output(t, std::move(a), std::move(k));
    }
    std::string seen;
  } interpreter(module);
  EXPECT_TENSOR(interpreter.run({vec({2, -2})}).toTensor(), vec({-6, -0.0f}));
  EXPECT_EQ(interpreter.seen, "placeholder get_attr call_function call_module call_method output");
}

TEST(RunGraph, S0_50_S1_13_three_kinds_of_add_execute) {
  for (const char* name : {"operator.add", "torch.add", "aten::add.Tensor", "aten::add"}) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    graph->output(graph->call_function(name, {x, x}));
    GraphModule module(graph);
    SCOPED_TRACE(name);
    EXPECT_TENSOR(run(module, {vec({1, 2})}), vec({2, 4}));
  }
}

TEST(RunGraph, S1_13_operators_keep_the_order_of_their_operands) {
  struct Case {
    const char* name;
    bool reflected;
    float wanted;  // for x = 3 and the number 5
  };
  for (const Case& c : std::initializer_list<Case>{{"operator.add", false, 8},
                                                   {"operator.sub", false, -2},
                                                   {"operator.sub", true, 2},
                                                   {"operator.mul", false, 15},
                                                   {"operator.truediv", true, 5.0f / 3},
                                                   {"operator.truediv", false, 0.6f},
                                                   {"operator.floordiv", true, 1},
                                                   {"operator.mod", true, 2},
                                                   {"operator.mod", false, 3},
                                                   {"operator.pow", true, 125},
                                                   {"operator.pow", false, 243},
                                                   {"operator.lt", false, 1},
                                                   {"operator.lt", true, 0},
                                                   {"operator.ge", true, 1},
                                                   {"operator.eq", false, 0},
                                                   {"operator.ne", false, 1}}) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    graph->output(c.reflected ? graph->call_function(c.name, {5, x})
                              : graph->call_function(c.name, {x, 5}));
    GraphModule module(graph);
    const at::Tensor found = run(module, {torch::tensor(3.0f)}).to(torch::kFloat);
    EXPECT_NEAR(found.item<float>(), c.wanted, 1e-6) << c.name << (c.reflected ? " reflected" : "");
  }
}

TEST(RunGraph, S1_13_unary_matmul_and_getitem) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& neg = graph->call_function("operator.neg", {x});
  Node& row = graph->call_function("operator.getitem", {neg, 0});
  Node& column = graph->call_function(
      "operator.getitem",
      {neg, Argument::tuple({Argument::slice({}, {}), Argument::slice(1, {})})});
  Node& product = graph->call_function("operator.matmul", {row, column});
  graph->output(product);
  GraphModule module(graph);
  // -[[1, 2], [3, 4]]: row [-1, -2], column [[-2], [-4]]; 2 + 8.
  EXPECT_TENSOR(run(module, {torch::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}})}), vec({10}));
}

TEST(RunGraph, S0_60_S1_26_the_interpreter_reads_edits_at_once_the_module_after_recompile) {
  Affine g;
  const at::Tensor three = torch::tensor(3.0f);
  Interpreter interpreter(g.module);
  EXPECT_EQ(interpreter.run({three}).toTensor().item<float>(), 8);
  g.mul.update_arg(1, 10);
  EXPECT_EQ(g.module(three).toTensor().item<float>(), 8);
  EXPECT_TRUE(g.module.needs_recompile());
  EXPECT_EQ(interpreter.run({three}).toTensor().item<float>(), 40);
  g.module.recompile();
  EXPECT_FALSE(g.module.needs_recompile());
  EXPECT_EQ(g.module(three).toTensor().item<float>(), 40);
}

TEST(RunGraph, S1_07_update_kwarg_of_clamp) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& clamp = graph->call_function("torch.clamp", {x}, {{"min", 0.0}, {"max", 5.0}});
  graph->output(clamp);
  GraphModule module(graph);
  EXPECT_TENSOR(run(module, {vec({-1, 7})}), vec({0, 5}));
  clamp.update_kwarg("max", 10.0);
  EXPECT_TENSOR(run(module, {vec({-1, 7})}), vec({0, 7}));
}

TEST(RunGraph, S1_53_S1_54_rerouted_flow) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 10});
  Node& sub = graph->call_function("operator.sub", {add, 5});
  Node& mul = graph->call_function("operator.mul", {sub, 2});
  graph->output(mul);
  GraphModule module(graph);
  EXPECT_TENSOR(run(module, {torch::tensor(10.0f)}), torch::tensor(30.0f));
  mul.update_arg(0, add);
  EXPECT_TENSOR(run(module, {torch::tensor(10.0f)}), torch::tensor(40.0f));
  EXPECT_EQ(sub.num_users(), 0u);
  graph->eliminate_dead_code();
  EXPECT_EQ(names(*graph), (Names{"x", "add", "mul", "output"}));
  EXPECT_TENSOR(run(module, {torch::tensor(10.0f)}), torch::tensor(40.0f));
}

TEST(RunGraph, S1_71_a_swapped_target) {
  Affine g;
  g.mul.set_target("operator.add");
  EXPECT_TENSOR(run(g.module, {torch::tensor(3.0f)}), torch::tensor(6.0f));  // (3 + 1) + 2
  g.mul.set_op(Opcode::kCallMethod, Target::string("pow"));
  EXPECT_TENSOR(run(g.module, {torch::tensor(3.0f)}), torch::tensor(16.0f));  // (3 + 1) ** 2
}

TEST(RunGraph, W_21_a_new_node_with_and_without_an_insertion_point) {
  Affine g;
  Node& square = g.graph->call_function("operator.add", {g.x, 2});  // behind the output
  g.add.replace_all_uses_with(square);
  EXPECT_THROW(g.graph->lint(), LintError);
  EXPECT_THROW(Interpreter(g.module).run({torch::tensor(3.0f)}), RunError);
  g.mul.prepend(square);
  g.graph->lint({.strict = true});
  EXPECT_TENSOR(run(g.module, {torch::tensor(3.0f)}), torch::tensor(10.0f));  // (3 + 2) * 2
}

TEST(RunGraph, S1_68_S1_69_concept_sample_6_delete_and_rebuild) {
  // x + 2 becomes x + 4 by a new node: 5 -> 7 for x = 3.
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 2});
  graph->output(add);
  GraphModule module(graph);
  EXPECT_TENSOR(run(module, {torch::tensor(3.0f)}), torch::tensor(5.0f));
  {
    auto at = graph->inserting_after(add);
    Node& made = graph->call_function("operator.add", {add.arg(0), 4});
    add.replace_all_uses_with(made);
  }
  graph->erase_node(add);
  graph->lint({.strict = true});
  EXPECT_TENSOR(run(module, {torch::tensor(3.0f)}), torch::tensor(7.0f));
}

TEST(RunGraph, S1_73_S1_74_S1_75_concept_sample_7_insert_relu) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& sub = graph->call_function("operator.sub", {x, 1});
  Node& mul = graph->call_function("operator.mul", {sub, 2});
  graph->output(mul);
  GraphModule module(graph);
  {
    auto at = graph->inserting_before(mul);
    Node& relu = graph->call_function("torch.relu", {sub});
    mul.update_arg(0, relu);
  }
  EXPECT_EQ(names(*graph), (Names{"x", "sub", "relu", "mul", "output"}));
  EXPECT_TENSOR(run(module, {vec({-3, 4})}), vec({0, 6}));
}

TEST(RunGraph, S0_68_S1_08_the_edited_graph_runs_everywhere_also_after_text) {
  Affine g;
  g.mul.update_arg(1, 3);
  g.graph->lint({.strict = true});
  const at::Tensor wanted = vec({6, 9});
  EXPECT_TENSOR(run(g.module, {vec({1, 2})}), wanted);
  GraphModule reloaded(parse_text(to_text(*g.graph)));
  EXPECT_TENSOR(run(reloaded, {vec({1, 2})}), wanted);
  GraphModule cloned(g.graph->clone());
  EXPECT_TENSOR(run(cloned, {vec({1, 2})}), wanted);
}

TEST(RunGraph, S3_44_S3_46_S3_47_S3_48_S3_49_direct_building) {
  auto graph = std::make_shared<Graph>();
  Node& input = graph->placeholder("input");
  Node& two = graph->create_node("call_function", "torch.tensor", {Argument::list({2.0})});
  Node& add = graph->create_node("call_function", "torch.add", {input, two});
  graph->output(add);
  GraphModule module(graph);
  Interpreter interpreter(module, /*garbage_collect_values=*/false);
  EXPECT_TENSOR(interpreter.run({vec({1, 2, 3})}).toTensor(), vec({3, 4, 5}));
  EXPECT_TENSOR(interpreter.env().at(two).toTensor(), vec({2}));
  EXPECT_TENSOR(run(module, {vec({1, 2, 3})}), vec({3, 4, 5}));
}

TEST(RunGraph, S3_49_nested_results) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(Argument::dict({{"a", Argument::list({x, 1})}, {"b", Argument::tuple({x})}}));
  GraphModule module(graph);
  for (const Value& value : {Interpreter(module).run({vec({1})}), module(vec({1}))}) {
    const auto dict = value.toGenericDict();
    EXPECT_TENSOR(elements(dict.at("a"))[0].toTensor(), vec({1}));
    EXPECT_EQ(elements(dict.at("a"))[1].toInt(), 1);
    EXPECT_TRUE(dict.at("b").isTuple());
  }
}

// Control flow on the graph: a call_function that picks one of two sub-GraphModules.
TEST(RunGraph, S3_20_a_branch_between_two_submodules) {
  register_wrapped_function("test.cond", [](Values args, KwValues) -> Value {
    auto holder = args[args[0].toTensor().item<bool>() ? 1 : 2].toCapsule();
    return call_module(*dynamic_cast<ModuleValue&>(*holder).module, {args[3]});
  });
  auto branch = [](std::string_view function, Argument second) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    graph->output(graph->call_function(function, {x, std::move(second)}));
    return std::make_shared<GraphModule>(graph);
  };
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_submodule("true_graph", branch("operator.mul", 10));
  module.set_submodule("false_graph", branch("operator.sub", 1));
  Node& x = graph->placeholder("x");
  Node& sum = graph->call_method("sum", {x});
  Node& positive = graph->call_function("operator.gt", {sum, 0});
  Node& on_true = graph->get_attr("true_graph");
  Node& on_false = graph->get_attr("false_graph");
  graph->output(graph->call_function("test.cond", {positive, on_true, on_false, x}));
  graph->lint({.strict = true});
  EXPECT_THAT(graph->str(),
              ::testing::HasSubstr("%cond : [num_users=1] = call_function[target=test."
                                   "cond](args = (%gt, %true_graph, %false_graph, %x)"));
  EXPECT_TENSOR(run(module, {vec({1, 2})}), vec({10, 20}));
  EXPECT_TENSOR(run(module, {vec({-1, -2})}), vec({-2, -3}));
  // F9: dead code inside a branch goes too.
  Graph& inside = *module.nested_graph("true_graph");
  {
    auto at = inside.inserting_before(inside.output_node());
    inside.call_function("torch.relu", {*inside.find_node("x")});
  }
  EXPECT_TRUE(graph->eliminate_dead_code());
  EXPECT_EQ(names(inside), (Names{"x", "mul", "output"}));
}

TEST(RunGraph, S4_39_a_move_to_a_device_is_a_node_like_any_other) {
  Affine g;
  {
    auto at = g.graph->inserting_after(g.x);
    Node& moved = g.graph->call_method("to", {g.x, c10::Device(c10::kCPU)});
    g.x.replace_all_uses_with(moved, [&](Node& user) { return &user != &moved; });
  }
  g.graph->lint({.strict = true});
  EXPECT_THAT(g.graph->str(),
              ::testing::HasSubstr("%to : [num_users=1] = call_method[target=to](args = (%x, cpu), "
                                   "kwargs = {})\n"));
  EXPECT_TENSOR(run(g.module, {vec({1, 2})}), vec({4, 6}));
  g.graph->find_node("to")->update_arg(1, c10::Device(c10::kMeta));
  g.module.recompile();
  for (const Value& result : {g.module(vec({1, 2})), Interpreter(g.module).run({vec({1, 2})})})
    EXPECT_TRUE(result.toTensor().is_meta()) << "what follows runs where the move went";
}

TEST(RunGraph, W_20_broken_order_fails_when_it_runs) {
  Affine g;
  g.out.append(g.add);
  g.module.recompile();
  EXPECT_THROW(g.module(torch::tensor(3.0f)), RunError);
  EXPECT_FX_ERROR(Interpreter(g.module).run({torch::tensor(3.0f)}), RunError, kMissingValue,
                  "Node mul referenced nonexistent value add! Run Graph.lint() to diagnose");
}

TEST(RunGraph, G_030_the_first_output_wins_and_what_follows_is_not_run) {
  Affine g;
  g.graph->output(g.x);
  g.graph->call_method("no_such_method", {g.x});
  EXPECT_TENSOR(run(g.module, {torch::tensor(3.0f)}), torch::tensor(8.0f));
}

TEST(RunGraph, F20_a_graph_that_returns_its_input) {
  auto graph = std::make_shared<Graph>();
  graph->output(graph->placeholder("x"));
  GraphModule module(graph);
  EXPECT_TENSOR(run(module, {vec({1, 2})}), vec({1, 2}));
}

}  // namespace
}  // namespace fx
