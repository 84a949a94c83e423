// Troubles with graphs that people edited: what is found when, and what the message says.
#include <torch/torch.h>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/compare.h"
#include "tests/graph/affine.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;

at::Tensor scalar(float value) { return torch::tensor(value); }

struct LinearNet : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return linear(x); }
  nn::Linear linear = register_module("linear", nn::Linear(10, 5));
};

// Runs by the Interpreter and, recompiled, by the GraphModule; both have to refuse alike.
#define EXPECT_RUN_ERROR(gm, inputs, error_code, part)                        \
  do {                                                                        \
    EXPECT_FX_ERROR(Interpreter(gm).run(inputs), RunError, error_code, part); \
    (gm).recompile();                                                         \
    EXPECT_FX_ERROR((gm).forward(inputs), RunError, error_code, part);        \
  } while (false)

TEST(GraphTrouble, S0_12_a_missing_input_is_named_unless_it_has_a_default) {
  Affine g;
  const std::string text =
      "Expected positional argument for parameter x, but one was not passed in!";
  EXPECT_RUN_ERROR(g.module, {}, kMissingInput, text);
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder_with_default("x", 41);
  graph->output(graph->call_function("operator.add", {x, 1}));
  GraphModule with_default(graph);
  EXPECT_EQ(Interpreter(with_default).run().toInt(), 42);
  EXPECT_EQ(with_default.forward({}).toInt(), 42);
  EXPECT_EQ(with_default.forward({1}).toInt(), 2);
}

TEST(GraphTrouble, S0_16_lint_finds_a_value_that_is_made_too_late) {
  Affine g;
  g.mul.append(g.add);
  EXPECT_FX_ERROR(g.graph->lint(), LintError, kLintOrder,
                  "Argument 'add' of Node 'mul' was used before it has been defined!");
}

TEST(GraphTrouble, S1_18_a_wrong_type_names_the_argument_and_its_position) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("torch.add", {x, "a"});
  graph->output(add);
  GraphModule gm(graph);
  const Values inputs{scalar(1)};
  EXPECT_RUN_ERROR(gm, inputs, kNodeFailed, "argument 'other' (position 2) does not take a str");
  EXPECT_RUN_ERROR(gm, inputs, kNodeFailed, "While executing %add : ");
  add.update_arg(1, 3);
  gm.recompile();
  EXPECT_EQ(gm(scalar(1)).toTensor().item<float>(), 4) << "a number is accepted";
  EXPECT_EQ(Interpreter(gm).run(inputs).toTensor().item<float>(), 4);
}

TEST(GraphTrouble, S1_21_S1_22_a_bad_index_or_key_changes_nothing) {
  Affine g;
  const std::string before = g.graph->str();
  const std::uint64_t version = g.graph->version();
  EXPECT_FX_ERROR(g.add.update_arg(2, g.x), GraphError, kIndexOutOfRange,
                  "node add has 2 positional arguments, index 2 is out of range");
  EXPECT_FX_ERROR(g.add.update_arg("unknown_key", 3), GraphError, kUnknownKwarg,
                  "node add has no keyword argument 'unknown_key'");
  EXPECT_EQ(g.graph->str(), before);
  EXPECT_EQ(g.graph->version(), version);
  EXPECT_EQ(names(g.x.users()), Names{"add"});
}

TEST(GraphTrouble, S1_23_an_unknown_key_throws_and_update_kwarg_adds_it) {
  Affine g;
  EXPECT_FX_ERROR(g.add.update_arg("unknown_key", 3), GraphError, kUnknownKwarg, "'unknown_key'");
  g.add.update_kwarg("unknown_key", 3);
  EXPECT_EQ(repr(g.add.kwargs()), "{'unknown_key': 3}");
  g.add.update_arg(-1, 7);
  EXPECT_EQ(repr(g.add.args()), "(x, 7)") << "a negative index counts from the end";
}

TEST(GraphTrouble, S1_29_cycles_are_found_by_lint_and_hang_nothing) {
  for (const bool two : {false, true}) {
    Affine g;
    g.add.update_arg(0, two ? g.mul : g.add);
    EXPECT_FX_ERROR(g.graph->lint(), LintError, kLintOrder, "of Node 'add' was used before");
    const std::string missing = std::string("Node add referenced nonexistent value ") +
                                (two ? "mul" : "add") + "! Run Graph.lint() to diagnose";
    const Values inputs{scalar(1)};
    EXPECT_RUN_ERROR(g.module, inputs, kMissingValue, missing);
    EXPECT_THAT(g.graph->str(), ::testing::HasSubstr("return mul"));
    EXPECT_THAT(g.graph->tabular(), ::testing::HasSubstr("operator.add"));
    EXPECT_THROW(g.graph->eliminate_dead_code(), LintError) << "it lints first";
  }
}

TEST(GraphTrouble, S1_30_arguments_from_elsewhere) {
  Affine g, other;
  g.mul.update_arg(0, other.add);
  EXPECT_FX_ERROR(g.graph->lint(), LintError, kLintForeignArg,
                  "Argument 'add' of Node 'mul' does not belong to this Graph");
  g.mul.update_arg(0, g.add);
  Node& gone = g.graph->call_function("operator.neg", {g.x});
  g.graph->erase_node(gone);
  g.mul.update_arg(0, gone);
  // torch.fx reports an erased node as used before its definition; this says what happened.
  EXPECT_FX_ERROR(g.graph->lint(), LintError, kLintErasedArg,
                  "Argument 'neg' of Node 'mul' has been erased from the graph!");
}

TEST(GraphTrouble, S1_31_a_bad_graph_compiles_and_fails_when_it_runs) {
  Affine g;
  Node& gone = g.graph->call_function("operator.neg", {g.x});
  g.graph->erase_node(gone);
  g.mul.update_arg(0, gone);
  EXPECT_NO_THROW(g.module.recompile());
  const Values inputs{scalar(1)};
  EXPECT_RUN_ERROR(g.module, inputs, kMissingValue, "Node mul referenced nonexistent value neg!");
  EXPECT_RUN_ERROR(g.module, inputs, kMissingValue, "While executing %mul : ");
}

TEST(GraphTrouble, S2_11_wrong_arguments_of_the_lookup_do_not_compile) {
  using Lookup = decltype(&Interpreter::map_nodes_to_values);
  static_assert(std::is_invocable_v<Lookup, Interpreter&, const Argument&, Node&>);
  static_assert(!std::is_invocable_v<Lookup, Interpreter&, Node&, Value>, "node and result");
  static_assert(!std::is_invocable_v<Lookup, Interpreter&, const Argument&, const Argument&>);
  static_assert(!std::is_invocable_v<Lookup, Interpreter&, const Argument&, std::string>);
  Affine g;
  const Argument pair = Argument::tuple({g.x, 1});
  EXPECT_FX_ERROR(pair.node(), GraphError, kWrongArgumentKind, "tuple");
  Interpreter interpreter(g.module);
  interpreter.env().set(g.x, 5);
  EXPECT_EQ(to_string(interpreter.map_nodes_to_values(pair, g.add)), "(5, 1)");
}

TEST(GraphTrouble, S2_15_an_override_that_returns_nothing_fails_in_the_first_user) {
  struct Nothing : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      if (node.name() == "add") return {};
      return Interpreter::run_node(node);
    }
  };
  Affine g;
  EXPECT_FX_ERROR(Nothing(g.module).run({scalar(1)}), RunError, kNodeFailed,
                  "While executing %mul : ");
  EXPECT_FX_ERROR(Nothing(g.module).run({scalar(1)}), RunError, kNodeFailed, "None");
}

TEST(GraphTrouble, S2_17_a_value_is_not_there_before_its_node_ran) {
  struct Early : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      order.emplace_back(node.name());
      if (node.name() == "add" && early) env().at("mul");
      return Interpreter::run_node(node);
    }
    bool early = false;
    std::vector<std::string> order;
  };
  Affine g;
  Early interpreter(g.module);
  interpreter.run({scalar(1)});
  EXPECT_EQ(interpreter.order, names(*g.graph)) << "the order of the list";
  interpreter.early = true;
  EXPECT_FX_ERROR(interpreter.run({scalar(1)}), RunError, kMissingValue,
                  "there is no value of a node 'mul'");
}

TEST(GraphTrouble, S3_24_broken_links_and_missing_nodes_are_found) {
  Affine original, broken;
  // A link that lint can see.
  broken.mul.append(broken.add);
  EXPECT_THROW(broken.graph->lint(), LintError);
  // One that only the results show: mul reads x, past add.
  Affine skipping;
  skipping.mul.update_arg(0, skipping.x);
  EXPECT_NO_THROW(skipping.graph->lint({.strict = true}));
  auto difference = find_first_difference(original.module, skipping.module, {scalar(3)});
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->node, "mul");
  // A node that is gone.
  Affine removed;
  removed.add.replace_all_uses_with(removed.x);
  removed.graph->erase_node(removed.add);
  difference = find_first_difference(original.module, removed.module, {scalar(3)});
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->node, "mul");
  EXPECT_FALSE(find_first_difference(original.module, *original.module.deep_copy(), {scalar(3)}));
}

TEST(GraphTrouble, S4_15_the_message_says_how_far_a_path_goes) {
  struct Block : torch::nn::Module {
    nn::Linear linear = register_module("linear", nn::Linear(10, 5));
  };
  struct Net : torch::nn::Module {
    std::shared_ptr<Block> block = register_module("block", std::make_shared<Block>());
  };
  auto graph = std::make_shared<Graph>();
  graph->output(graph->call_module("block.linear", {graph->placeholder("x")}));
  Net net;
  GraphModule gm(net, graph);
  Node& call = *graph->find_node("block_linear");
  Interpreter interpreter(gm);
  EXPECT_FX_ERROR(interpreter.fetch_attr("block.missing.deep"), RunError, kMissingAttr,
                  "Node referenced nonexistent target block.missing");
  EXPECT_FX_ERROR(interpreter.fetch_attr("missing.linear"), RunError, kMissingAttr,
                  "Node referenced nonexistent target missing");
  call.set_target("block.missing");
  EXPECT_FX_ERROR(interpreter.run({torch::ones({1, 10})}), RunError, kMissingAttr,
                  "Node referenced nonexistent target block.missing");
}

// Whether a module is called depends on a flag.
struct FlaggedNet : torch::nn::Module {
  explicit FlaggedNet(bool with_extra) : with_extra(with_extra) {
    if (with_extra) extra = register_module("extra", nn::Linear(5, 5));
  }
  auto forward(auto x) {
    auto y = linear(x);
    return with_extra ? extra(y) : y;
  }
  bool with_extra;
  nn::Linear linear = register_module("linear", nn::Linear(10, 5));
  nn::Linear extra{nullptr};
};

TEST(GraphTrouble, S4_16_S4_18_a_module_that_is_gone_or_renamed) {
  EXPECT_EQ(symbolic_trace(std::make_shared<FlaggedNet>(false))->graph().find_node("extra"),
            nullptr);
  auto gm = symbolic_trace(std::make_shared<FlaggedNet>(true));
  ASSERT_NE(gm->graph().find_node("extra"), nullptr);
  const Values inputs{torch::ones({1, 10})};
  const at::Tensor expected = gm->forward(inputs).toTensor();

  const auto extra = gm->find_submodule("extra");
  ASSERT_TRUE(gm->delete_submodule("extra"));
  EXPECT_FX_ERROR(gm->graph().lint(), LintError, kLintMissingAttr,
                  "Node extra target extra references a nonexistent attribute");
  ASSERT_TRUE(gm->add_submodule("extra", extra));
  gm->graph().lint();

  gm->graph().find_node("extra")->set_target("other");
  EXPECT_FX_ERROR(gm->graph().lint(), LintError, kLintMissingAttr, "target other");
  EXPECT_FX_ERROR(Interpreter(*gm).run(inputs), RunError, kMissingAttr, "other");
  gm->recompile();
  EXPECT_FX_ERROR(gm->forward(inputs), RunError, kMissingAttr, "other");
  ASSERT_TRUE(gm->add_submodule("other", extra));
  gm->graph().lint();
  gm->recompile();
  EXPECT_TRUE(torch::equal(gm->forward(inputs).toTensor(), expected));
}

TEST(GraphTrouble, S4_22_arguments_of_a_module_that_do_not_fit) {
  auto gm = symbolic_trace(std::make_shared<LinearNet>());
  Node& x = *gm->graph().find_node("x");
  Node& linear = *gm->graph().find_node("linear");
  const Values inputs{torch::ones({1, 10})};
  linear.update_kwarg("input", x);
  EXPECT_RUN_ERROR(*gm, inputs, kNodeFailed,
                   "torch.nn.Linear.forward() got multiple values for argument 'input'");
  linear.set_args_kwargs({}, {});
  EXPECT_RUN_ERROR(*gm, inputs, kNodeFailed,
                   "torch.nn.Linear.forward() misses argument 'input': it takes 1 argument "
                   "(input), found 0");
  linear.set_args({x, x});
  EXPECT_RUN_ERROR(*gm, inputs, kNodeFailed,
                   "torch.nn.Linear.forward() takes 1 argument (input), found 2");
  linear.set_args_kwargs({x}, {{"weight", 1}});
  EXPECT_RUN_ERROR(*gm, inputs, kNodeFailed,
                   "torch.nn.Linear.forward() has no argument 'weight', it takes 1 argument "
                   "(input)");
  EXPECT_RUN_ERROR(*gm, inputs, kNodeFailed, "While executing %linear : ");
}

TEST(GraphTrouble, S4_24_strict_lint_and_the_run_check_the_arguments_of_a_module) {
  auto gm = symbolic_trace(std::make_shared<LinearNet>());
  Node& x = *gm->graph().find_node("x");
  Node& linear = *gm->graph().find_node("linear");
  gm->graph().lint({.strict = true});
  const Values inputs{torch::ones({1, 10})};
  linear.set_args({});
  EXPECT_FX_ERROR(gm->graph().lint({.strict = true}), LintError, kLintModuleArguments,
                  "Node linear calls linear: torch.nn.Linear.forward() misses argument 'input'");
  EXPECT_NO_THROW(gm->graph().lint()) << "torch.fx's rules know nothing of arguments";
  EXPECT_RUN_ERROR(*gm, inputs, kNodeFailed, "misses argument 'input'");
  linear.set_args({x, x});
  EXPECT_FX_ERROR(gm->graph().lint({.strict = true}), LintError, kLintModuleArguments,
                  "takes 1 argument (input), found 2");
  linear.set_args_kwargs({}, {{"input", x}});
  gm->graph().lint({.strict = true});
  gm->recompile();
  EXPECT_EQ(gm->forward(inputs).toTensor().size(1), 5);

  // Optional arguments may be left out, those of a nested graph follow its placeholders.
  torch::nn::Module root;
  root.register_module("lstm", torch::nn::LSTM(10, 5));
  root.register_module("part", symbolic_trace([](auto a, auto b) { return a + b; }));
  auto graph = std::make_shared<Graph>();
  Node& input = graph->placeholder("x");
  Node& lstm = graph->call_module("lstm", {input});
  Node& first = graph->call_function("operator.getitem", {lstm, 0});
  Node& part = graph->call_module("part", {first, first});
  graph->output(part);
  GraphModule nested(root, graph);
  graph->lint({.strict = true});
  EXPECT_EQ(nested(torch::ones({2, 1, 10})).toTensor().size(2), 5);
  part.set_args({first});
  EXPECT_FX_ERROR(graph->lint({.strict = true}), LintError, kLintModuleArguments,
                  "misses argument 'y': it takes 2 arguments (x, y), found 1");
}

TEST(GraphTrouble, S4_23_a_node_without_the_argument_it_needs) {
  Affine g;
  const Values inputs{scalar(1)};
  g.out.set_args({});
  EXPECT_RUN_ERROR(g.module, inputs, kMissingValue,
                   "the output node has no argument, so that there is nothing to return");
  EXPECT_RUN_ERROR(g.module, inputs, kMissingValue, "While executing return");
  g.out.set_args({g.mul});
  g.mul.set_args({});
  EXPECT_RUN_ERROR(g.module, inputs, kNodeFailed, "While executing %mul : ");
}

TEST(GraphTrouble, S4_26_a_trace_holds_for_every_size_and_number_of_dimensions) {
  auto gm = symbolic_trace(std::make_shared<LinearNet>());
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{1, 10}, {7, 10}, {2, 3, 10}, {10}}) {
    const at::Tensor y = (*gm)(torch::randn(shape)).toTensor();
    EXPECT_EQ(y.dim(), static_cast<std::int64_t>(shape.size()));
    EXPECT_EQ(y.size(-1), 5);
  }
  // Only what C++ read as a number while tracing is fixed.
  const std::int64_t fixed = 2;
  auto view = symbolic_trace([=](auto x) { return x.view({fixed, -1}); });
  EXPECT_EQ((*view)(torch::ones({4, 3})).toTensor().size(1), 6);
  EXPECT_FX_ERROR((*view)(torch::ones({3})), RunError, kNodeFailed, "While executing %view : ");
}

TEST(GraphTrouble, S4_29_inputs_can_be_guarded) {
  auto gm = symbolic_trace(std::make_shared<LinearNet>());
  gm->set_input_guards({exact_guard("x", torch::ones({1, 10}))});
  EXPECT_NO_THROW((*gm)(torch::ones({1, 10})));
  EXPECT_FX_ERROR((*gm)(torch::ones({7, 10})), RunError, kShapeMismatch, "x");
  EXPECT_FX_ERROR((*gm)(torch::ones({1, 10}, torch::kDouble)), RunError, kWrongType, "f64");
  gm->set_input_guards({});
  EXPECT_NO_THROW((*gm)(torch::ones({7, 10})));
}

TEST(GraphTrouble, S4_30_eager_and_traced_outputs_are_compared) {
  auto net = std::make_shared<LinearNet>();
  auto gm = symbolic_trace(net);
  auto edited = gm->deep_copy();
  Node& linear = *edited->graph().find_node("linear");
  {
    auto at = edited->graph().inserting_after(linear);
    Node& scaled = edited->graph().call_function("operator.mul", {linear, 2});
    linear.replace_all_uses_with(scaled, [&](Node& user) { return &user != &scaled; });
  }
  edited->recompile();
  const Values inputs{torch::randn({3, 10})};
  const Value eager = net->forward(inputs[0].toTensor());
  EXPECT_EQ(compare_values(eager, gm->forward(inputs)), "");
  EXPECT_NE(compare_values(eager, edited->forward(inputs)), "");
  const auto difference = find_first_difference(*gm, *edited, inputs);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->node, "output");
  const torch::NoGradGuard no_grad;
  edited->find_tensor("linear.bias").add_(1);
  EXPECT_EQ(find_first_difference(*gm, *edited, inputs)->node, "linear");
}

}  // namespace
}  // namespace fx
