#include "fx/interpret/interpreter.h"
#include "tests/interpret/models.h"

/// How inputs reach placeholders; the Interpreter and the compiled program bind them alike.
namespace fx {
namespace {

// Runs both ways and returns the value after checking that they agree.
Value run_both(GraphModule& gm, Values args, KwValues kwargs = {}) {
  const Value interpreted = Interpreter(gm).run(args, {.kwargs = kwargs});
  const Value compiled = gm.forward(std::move(args), std::move(kwargs));
  EXPECT_EQ(to_string(interpreted), to_string(compiled));
  return interpreted;
}

// f(x, y=10, z=20) -> (x, y, z)
GraphModule& three_inputs() {
  static GraphModule gm = [] {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& y = graph->placeholder_with_default("y", 10);
    Node& z = graph->placeholder_with_default("z", Argument::list({20}));
    graph->output(Argument::tuple({x, y, z}));
    return GraphModule(graph);
  }();
  return gm;
}

std::shared_ptr<GraphModule> echo(std::vector<std::string> placeholders) {
  auto graph = std::make_shared<Graph>();
  Args nodes;
  for (const std::string& name : placeholders) nodes.emplace_back(graph->placeholder(name));
  graph->output(Argument::tuple(nodes));
  return std::make_shared<GraphModule>(graph);
}

TEST(Interpreter, F_098_F4_defaults_and_keywords) {
  GraphModule& gm = three_inputs();
  EXPECT_EQ(to_string(run_both(gm, {1})), "(1, 10, [20])");
  EXPECT_EQ(to_string(run_both(gm, {1, 2})), "(1, 2, [20])");
  EXPECT_EQ(to_string(run_both(gm, {1, 2, 3})), "(1, 2, 3)");
  EXPECT_EQ(to_string(run_both(gm, {}, {{Symbol("x"), 1}})), "(1, 10, [20])");
  EXPECT_EQ(to_string(run_both(gm, {1}, {{Symbol("z"), 3}})), "(1, 10, 3)");
  EXPECT_EQ(to_string(run_both(gm, {}, {{Symbol("z"), 3}, {Symbol("x"), 1}})), "(1, 10, 3)");
}

TEST(Interpreter, F4_a_default_of_none_is_a_default) {
  auto graph = std::make_shared<Graph>();
  graph->output(graph->placeholder_with_default("mask", nullptr));
  GraphModule gm(graph);
  EXPECT_TRUE(run_both(gm, {}).isNone());
}

TEST(Interpreter, F_099_F3_arity_errors_name_the_placeholders) {
  GraphModule& gm = three_inputs();
  const std::string missing =
      "Expected positional argument for parameter x, but one was not passed in!";
  EXPECT_FX_ERROR(Interpreter(gm).run({}), RunError, kMissingInput, missing);
  EXPECT_FX_ERROR(gm.forward({}), RunError, kMissingInput, missing);
  EXPECT_FX_ERROR(gm.forward({}), RunError, kMissingInput, "While executing %x : ");
  const std::string extra = "the graph takes 3 inputs (x, y, z), found 4";
  EXPECT_FX_ERROR(Interpreter(gm).run({1, 2, 3, 4}), RunError, kExtraInput, extra);
  EXPECT_FX_ERROR(gm.forward({1, 2, 3, 4}), RunError, kExtraInput, extra);
  const KwValues unknown{{Symbol("zz"), 1}};
  EXPECT_FX_ERROR(Interpreter(gm).run({1}, {.kwargs = unknown}), RunError, kUnknownInput,
                  "no input 'zz', did you mean 'z'? Its inputs are (x, y, z)");
  EXPECT_FX_ERROR(gm.forward({1}, unknown), RunError, kUnknownInput, "did you mean 'z'");
  const KwValues twice{{Symbol("x"), 1}};
  EXPECT_FX_ERROR(Interpreter(gm).run({1}, {.kwargs = twice}), RunError, kUnknownInput,
                  "'x' was given by position and by keyword");
  EXPECT_FX_ERROR(gm.forward({1}, twice), RunError, kUnknownInput, "by position and by keyword");
}

TEST(Interpreter, F_095_I_010_starred_placeholders_collect_what_is_left) {
  auto args = echo({"x", "*args"});
  EXPECT_EQ(to_string(run_both(*args, {1, 2, 3})), "(1, [2, 3])");
  EXPECT_EQ(to_string(run_both(*args, {1})), "(1, [])");
  auto all = echo({"x", "*args", "**kwargs"});
  EXPECT_EQ(to_string(run_both(*all, {1, 2}, {{Symbol("k"), 3}})), "(1, [2], {'k': 3})");
  auto keyword_only = echo({"*args", "key"});
  EXPECT_EQ(to_string(run_both(*keyword_only, {1, 2}, {{Symbol("key"), 3}})), "([1, 2], 3)");
}

TEST(Interpreter, S4_25_variadic_inputs_are_used_by_the_graph) {
  auto graph = std::make_shared<Graph>();
  Node& args = graph->placeholder("*args");
  Node& first = graph->call_function("operator.getitem", {args, 0});
  Node& second = graph->call_function("operator.getitem", {args, 1});
  graph->output(graph->call_function("operator.add", {first, second}));
  GraphModule gm(graph);
  EXPECT_TRUE(same(run_both(gm, {row({1, 2}), row({10, 20})}), row({11, 22})));
}

TEST(Interpreter, keywords_may_use_node_names) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("input");
  x.rename("image");
  graph->output(x);
  GraphModule gm(graph);
  EXPECT_EQ(run_both(gm, {}, {{Symbol("input"), 1}}).toInt(), 1);
  EXPECT_EQ(run_both(gm, {}, {{Symbol("image"), 2}}).toInt(), 2);
}

TEST(Interpreter, G_044_G_045_I_005_F_191_F5_structured_inputs_and_outputs) {
  // forward((a, b), *, c={"k": c}) -> {"sum": a + b, "rest": [c]}
  auto graph = std::make_shared<Graph>();
  Node& a = graph->placeholder("a");
  Node& b = graph->placeholder("b");
  Node& c = graph->placeholder("c");
  Node& sum = graph->call_function("operator.add", {a, b});
  graph->output(Argument::tuple({sum, c}));
  GraphModule gm(graph);
  const TreeSpec leaf;
  auto node = [](TreeSpec::Kind kind, std::vector<TreeSpec> children,
                 std::vector<std::string> keys = {}) {
    TreeSpec spec;
    spec.kind = kind;
    spec.children = std::move(children);
    spec.keys = std::move(keys);
    return spec;
  };
  using Kind = TreeSpec::Kind;
  gm.set_specs(node(Kind::kTuple, {node(Kind::kTuple, {node(Kind::kTuple, {leaf, leaf})}),
                                   node(Kind::kDict, {node(Kind::kDict, {leaf}, {"k"})}, {"c"})}),
               node(Kind::kDict, {leaf, node(Kind::kList, {leaf})}, {"sum", "rest"}));
  const Value pair = c10::ivalue::Tuple::create(Values{1, 2});
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("k", 5);
  const KwValues kwargs{{Symbol("c"), dict}};
  EXPECT_EQ(to_string(run_both(gm, {pair}, kwargs)), "{'sum': 3, 'rest': [5]}");
  // Without processing the flat values go in and out.
  EXPECT_EQ(to_string(Interpreter(gm).run({1, 2, 5}, {.enable_io_processing = false})), "(3, 5)");
  Values boxed{1, 2, 5};
  EXPECT_EQ(to_string(Interpreter(gm).boxed_run(boxed)), "{'sum': 3, 'rest': [5]}");
  EXPECT_FX_ERROR(Interpreter(gm).run({7}, {.kwargs = kwargs}), RunError, kWrongType,
                  "wanted a tuple of 2, found int");
}

}  // namespace
}  // namespace fx
