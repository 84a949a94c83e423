// Tests of torch.fx's own suite (test_fx.py, TestFX) that build and edit graphs by hand, each under
// its number and with what it asserts there.
#include <torch/torch.h>

#include "fx/graph/module_call.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using Traced = std::shared_ptr<GraphModule>;

at::Tensor vec(std::vector<float> values) { return torch::tensor(values); }

// x -> torch.sigmoid/relu/..., output.
struct XRelu {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& b = graph->call_function("torch.relu", {x}, {}, "b");
  Node& out = graph->output(b);
};

TEST(TestFX, F_003_custom_import) {
  register_wrapped_function("test_fx.custom_import",
                            [](Values args, KwValues) -> Value { return args[0].toTensor() * 2; });
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& mine = graph->call_function("test_fx.custom_import", {x});
  graph->output(graph->call_function("torch.sin", {mine}));
  const at::Tensor input = vec({1, 2});
  EXPECT_TRUE(torch::equal(GraphModule(graph)(input).toTensor(), torch::sin(input * 2)));
}

TEST(TestFX, F_031_graph_unique_names_manual) {
  Graph graph;
  Node& a = graph.create_node("placeholder", "x");
  Node& b = graph.create_node("call_module", "linear_mod", {a}, {}, "foo_1_1");
  Node& c = graph.create_node("get_attr", "y_attr", {}, {}, "foo_1");
  Node& d = graph.create_node("call_function", "operator.add", {b, c});
  graph.output(d);
  Graph copy;
  ValueMap map;
  copy.graph_copy(graph, map);
  for (const char* name : {"foo_1", "foo_1", "foo"}) copy.call_function("torch.relu", {}, {}, name);
  std::set<std::string> seen;
  for (const Node& node : copy.nodes())
    EXPECT_TRUE(seen.emplace(node.name()).second) << node.name();
  copy.lint();
}

TEST(TestFX, F_043_all_input_nodes) {
  Graph graph;
  Node& a = graph.placeholder("x");
  Node& b = graph.call_module("linear_mod", {a});
  Node& c = graph.get_attr("y_attr");
  Node& d = graph.call_function("operator.add", {b, c});
  Node& e = graph.call_function("torch.unsqueeze", {d, 0});
  graph.output(e);
  EXPECT_EQ(b.all_input_nodes(), std::vector<Node*>{&a});
  EXPECT_TRUE(c.all_input_nodes().empty());
  EXPECT_EQ(d.all_input_nodes(), (std::vector<Node*>{&b, &c}));
  EXPECT_EQ(e.all_input_nodes(), std::vector<Node*>{&d});
  graph.lint();
}

TEST(TestFX, F_044_deepcopy_graphmodule_with_transform) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_function("torch.relu", {x}));
  GraphModule traced(graph);
  auto changed = std::make_shared<Graph>();
  ValueMap map;
  const Argument result = changed->graph_copy(traced.graph(), map);
  changed->output(changed->call_function("operator.neg", {result}));
  GraphModule transformed(traced, changed);
  auto copied = transformed.deep_copy();
  transformed.set_class_name("another");
  EXPECT_NE(copied->class_name(), transformed.class_name());
  const at::Tensor input = torch::randn({3, 4});
  EXPECT_TRUE(torch::equal(transformed(input).toTensor(), (*copied)(input).toTensor()));
  EXPECT_TRUE(torch::equal((*copied)(input).toTensor(), -torch::relu(input)));
}

TEST(TestFX, F_045_deepcopy_with_submods_params) {
  GraphModule module(std::make_shared<Graph>());
  module.set_parameter("baz.bar.param", torch::rand({3, 4}));
  module.set_parameter("param", torch::rand({3, 4}));
  Graph& graph = module.graph();
  Node& x = graph.placeholder("x");
  Node& sum = graph.call_function("operator.add", {x, graph.get_attr("param")});
  graph.output(graph.call_function("operator.add", {sum, graph.get_attr("baz.bar.param")}));
  module.recompile();
  auto copied = module.deep_copy();
  copied->graph().lint({.strict = true});
  const at::Tensor input = torch::rand({3, 4});
  EXPECT_TRUE(torch::equal(module(input).toTensor(), (*copied)(input).toTensor()));
}

TEST(TestFX, F_070_prepend_does_not_leak) {
  std::weak_ptr<int> watched;
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("torch.relu", {x});
  Node& sigmoid = graph.call_function("torch.sigmoid", {x});
  {
    auto value = std::make_shared<int>(1);
    watched = value;
    sigmoid.meta().set("held", value);
  }
  relu.prepend(sigmoid);
  EXPECT_FALSE(watched.expired());
  graph.erase_node(sigmoid);
  EXPECT_TRUE(watched.expired()) << "what an erased node held is let go, moved or not";
}

TEST(TestFX, F_074_return_tuple_F_144_string_literal_return) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(Argument::tuple({x, graph->call_function("operator.add", {x, x})}));
  const Value out = GraphModule(graph)(vec({1, 2}));
  ASSERT_TRUE(out.isTuple());
  EXPECT_TRUE(torch::equal(out.toTupleRef().elements()[0].toTensor(), vec({1, 2})));
  EXPECT_TRUE(torch::equal(out.toTupleRef().elements()[1].toTensor(), vec({2, 4})));
  auto text = std::make_shared<Graph>();
  text->output("foo");
  EXPECT_EQ(GraphModule(text).forward({}).toStringRef(), "foo");
}

TEST(TestFX, F_059_F_060_torch_custom_ops_and_op_overloads) {
  auto graph = std::make_shared<Graph>();
  Node& a = graph->placeholder("a");
  Node& b = graph->call_function("aten::sigmoid", {a});
  Node& c = graph->call_function("aten::cat", {Argument::list({a, b})});
  Node& d = graph->call_function("aten::cat", {Argument::tuple({c, c})});
  Node& e = graph->call_function("aten::add.Tensor", {d, d});
  graph->output(e);
  graph->lint();
  EXPECT_EQ(e.target().function()->overload_name(), "Tensor");
  const at::Tensor input = torch::randn({3});
  const at::Tensor cat = torch::cat({input, input.sigmoid()});
  EXPECT_TRUE(torch::equal(GraphModule(graph)(input).toTensor(), torch::cat({cat, cat}) * 2));
}

TEST(TestFX, F_112_layout_F_113_ellipsis_F_114_inf_nan) {
  auto layout = std::make_shared<Graph>();
  Node& x = layout->placeholder("x");
  layout->output(layout->call_function("torch.empty_like", {x},
                                       {{"layout", c10::kStrided}, {"pin_memory", false}}));
  EXPECT_EQ(GraphModule(layout)(torch::rand({5, 9, 3, 4})).toTensor().sizes(),
            (std::vector<std::int64_t>{5, 9, 3, 4}));

  auto ellipsis = std::make_shared<Graph>();
  Node& input = ellipsis->placeholder("x");
  Node& y = ellipsis->placeholder("y");
  Node& item = ellipsis->call_function(
      "operator.getitem", {y, Argument::tuple({Argument::slice({}, {}), Argument::slice(1, 10),
                                               Argument::ellipsis()})});
  ellipsis->output(ellipsis->call_function("operator.add", {input, item}));
  GraphModule module(ellipsis);
  const at::Tensor a = torch::rand({5, 9, 3, 4}), b = torch::rand({5, 15, 3, 4});
  EXPECT_TRUE(torch::equal(
      module(a, b).toTensor(),
      a + b.index({at::indexing::Slice(), at::indexing::Slice(1, 10), at::indexing::Ellipsis})));

  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const double value : {kInf, -kInf, std::nan("")}) {
    auto graph = std::make_shared<Graph>();
    graph->output(graph->call_function("operator.add", {graph->placeholder("x"), value}));
    const at::Tensor one = torch::rand({3, 4});
    EXPECT_TRUE(torch::allclose(GraphModule(graph)(one).toTensor(), one + value, 0, 0,
                                /*equal_nan=*/true));
  }
}

TEST(TestFX, F_115_inf_nan_kwds) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& b = graph->call_function("operator.add", {x, kInf}, {}, "inf");
  Node& c = graph->call_function("operator.add", {x, std::nan("")}, {}, "nan");
  graph->output(Argument::tuple({b, c}));
  EXPECT_EQ(names(*graph), (Names{"x", "inf_1", "nan_1", "output"}));
  GraphModule module(graph);
  const at::Tensor input = torch::rand({3, 4});
  const Value out = module(input);
  EXPECT_TRUE(torch::equal(out.toTupleRef().elements()[0].toTensor(), input + kInf));
  EXPECT_TRUE(out.toTupleRef().elements()[1].toTensor().isnan().all().item<bool>());
  EXPECT_THAT(module.python_code(), ::testing::HasSubstr("inf_1 = x + inf"));
}

TEST(TestFX, F_116_deepcopy_recursion_depth) {
  constexpr int kDepth = 20000;
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < kDepth; ++i) last = &graph.call_function("operator.add", {*last, *last});
  graph.output(*last);
  auto copy = graph.clone();
  ASSERT_EQ(copy->size(), graph.size());
  auto mine = graph.nodes().begin();
  for (const Node& theirs : copy->nodes()) {
    ASSERT_EQ(names(theirs.users()), names(mine->users()));
    ++mine;
  }
}

TEST(TestFX, F_118_replace_input) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& b = graph->call_function("torch.relu", {x});
  graph->output(b);
  b.replace_input_with(x, y);
  const at::Tensor a = torch::randn({33, 44}), c = torch::randn({11, 22});
  EXPECT_TRUE(torch::equal(GraphModule(graph)(a, c).toTensor(), torch::relu(c)));
}

TEST(TestFX, F_119_insertion_point) {
  XRelu g;
  {
    auto at = g.graph->inserting_before(g.b);
    Node& neg = g.graph->call_function("torch.neg", {g.x});
    g.b.set_args({neg});
  }
  const at::Tensor input = torch::randn({33, 44});
  EXPECT_TRUE(torch::equal(GraphModule(g.graph)(input).toTensor(), torch::relu(-input)));
}

TEST(TestFX, F_120_update_args_api_F_121_update_kwargs_api) {
  for (const bool by_keyword : {false, true}) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& y = graph->placeholder("y");
    Node& b = by_keyword ? graph->call_function("torch.relu", {}, {{"input", x}})
                         : graph->call_function("torch.relu", {x});
    graph->output(b);
    GraphModule first(graph);
    const at::Tensor a = torch::randn({3, 4}), c = torch::randn({3, 4});
    EXPECT_TRUE(torch::equal(first(a, c).toTensor(), torch::relu(a)));
    if (by_keyword)
      b.update_kwarg("input", y);
    else
      b.update_arg(0, y);
    GraphModule second(graph);
    EXPECT_TRUE(torch::equal(second(a, c).toTensor(), torch::relu(c)));
    EXPECT_TRUE(torch::equal(first(a, c).toTensor(), torch::relu(a))) << "compiled before";
    first.recompile();
    EXPECT_TRUE(torch::equal(first(a, c).toTensor(), torch::relu(c)));
  }
}

TEST(TestFX, F_124_move_before) {
  XRelu g;
  Node& neg = g.graph->call_function("torch.neg", {g.x});
  g.b.set_args({neg});
  g.b.prepend(neg);
  const at::Tensor input = torch::randn({33, 44});
  EXPECT_TRUE(torch::equal(GraphModule(g.graph)(input).toTensor(), torch::relu(-input)));
}

TEST(TestFX, F_125_prepend_self) {
  XRelu g;
  g.b.prepend(g.b);
  g.x.append(g.b);
  EXPECT_EQ(g.graph->size(), 3u);
  EXPECT_EQ(names(*g.graph), (Names{"x", "b", "output"}));
}

TEST(TestFX, F_132_reassign_args_kwargs_uses) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& z = graph.call_function("operator.add", {x, y}, {}, "z");
  Node& zed = graph.call_function("operator.add", {z, z, z}, {}, "zed");
  graph.output(zed);
  EXPECT_EQ(names(z.users()), Names{"zed"});
  zed.set_args({z, z, x});
  EXPECT_EQ(names(x.users()), (Names{"z", "zed"}));
  z.set_args({y, x});
  EXPECT_EQ(names(x.users()), (Names{"zed", "z"})) << "assigned again, z is the latest user";
  z.set_args({y, y});
  EXPECT_EQ(names(x.users()), Names{"zed"});
}

TEST(TestFX, F_139_module_deepcopy_edit_nodes) {
  XRelu g;
  GraphModule module(g.graph);
  auto copied = module.deep_copy();
  for (Node& node : copied->graph().nodes())
    if (node.target() == "torch.relu") node.set_target("torch.neg");
  copied->recompile();
  const at::Tensor input = torch::rand({2, 2});
  EXPECT_TRUE(torch::equal((*copied)(input).toTensor(), -input));
  EXPECT_TRUE(torch::equal(module(input).toTensor(), torch::relu(input)));
}

TEST(TestFX, F_141_F_142_F_143_default_arguments) {
  auto build = [](bool regular, int defaults) {
    auto graph = std::make_shared<Graph>();
    Argument sum = 0;
    auto add = [&](Node& input) { sum = graph->call_function("operator.add", {sum, input}); };
    std::vector<Node*> inputs;
    if (regular) inputs.push_back(&graph->placeholder("x"));
    for (int i = 0; i < defaults; ++i)
      inputs.push_back(&graph->placeholder_with_default("y" + std::to_string(i), 10 * (i + 1)));
    for (Node* input : inputs) add(*input);
    graph->output(sum);
    return std::make_shared<GraphModule>(graph);
  };
  auto single = build(false, 1);
  EXPECT_EQ(single->forward({}).toInt(), 10);
  EXPECT_EQ(single->forward({4}).toInt(), 4);
  auto multiple = build(false, 2);
  EXPECT_EQ(multiple->forward({}).toInt(), 30);
  EXPECT_EQ(multiple->forward({3}).toInt(), 23);
  EXPECT_EQ(multiple->forward({3, 4}).toInt(), 7);
  auto mixed = build(true, 1);
  EXPECT_EQ(mixed->forward({2}).toInt(), 12);
  EXPECT_EQ(mixed->forward({2, 3}).toInt(), 5);
  EXPECT_FX_ERROR(mixed->forward({}), RunError, kMissingInput, "parameter x");
}

// Lists and dicts of nodes are values: they copy, compare and map like any other.
TEST(TestFX, F_122_F_123_F_127_immutable_lists_and_dicts) {
  Graph graph;
  Node& a = graph.placeholder("a");
  const Argument list = Argument::list({Argument::list({a, 1}), 2, Argument::list({3})});
  const Argument dict = Argument::dict({{"k", list}, {"n", Argument::dict({{"m", a}})}});
  for (const Argument& original : {list, dict}) {
    const Argument copy = original;
    EXPECT_EQ(copy, original);
    EXPECT_EQ(copy.kind(), original.kind());
    std::vector<Argument> leaves;
    original.map_leaves([&](const Argument& leaf) {
      leaves.push_back(leaf);
      return leaf;
    });
    std::size_t next = 0;
    const Argument rebuilt = original.map_leaves([&](const Argument&) { return leaves[next++]; });
    EXPECT_EQ(rebuilt, original) << "flattened and put together again";
    EXPECT_EQ(rebuilt.kind(), original.kind());
    EXPECT_EQ(next, leaves.size());
  }
}

TEST(TestFX, F_194_G_131_M_016_deepcopy_graphmodule_F_195_deepcopy_no_recursion) {
  auto module = std::make_shared<GraphModule>(std::make_shared<Graph>());
  module->meta().set("foo", "bar");
  module->meta().set("this", module.get());
  module->meta().set("weak", std::weak_ptr<GraphModule>(module));
  auto copied = module->deep_copy();
  EXPECT_EQ(*copied->meta().get<std::string>("foo"), "bar");
  EXPECT_EQ(*copied->meta().get<GraphModule*>("this"), copied.get());
  EXPECT_EQ(copied->meta().get<std::weak_ptr<GraphModule>>("weak")->lock(), copied);
  EXPECT_EQ(*module->meta().get<GraphModule*>("this"), module.get());
  copied->meta().set("foo", "changed");
  EXPECT_EQ(*module->meta().get<std::string>("foo"), "bar");
}

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    register_module("conv", torch::nn::Linear(4, 4));
    register_parameter("param", torch::ones({4}));
    register_buffer("buf", torch::ones({4}));
  }
  at::Tensor forward(at::Tensor x) { return x; }
};

TEST(TestFX, F_174_M_010_M_011_M_012_submodule_manipulation) {
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  auto conv = std::make_shared<torch::nn::LinearImpl>(4, 4);
  EXPECT_TRUE(
      module.add_submodule("net_b.net_c.dropout", std::make_shared<torch::nn::DropoutImpl>()));
  EXPECT_TRUE(module.add_submodule("net_b.net_c.linear", conv));
  EXPECT_TRUE(module.add_submodule("unused.deep.block", std::make_shared<BlockImpl>()));
  module.set_parameter("net_b.param", torch::ones({2}));
  module.set_buffer("net_b.buf", torch::ones({2}));
  EXPECT_FALSE(module.add_submodule("net_b.param.conv", conv)) << "a parameter stands in the way";
  Node& x = graph->placeholder("x");
  Node& dropped = graph->call_module("net_b.net_c.dropout", {x});
  Node& linear = graph->call_module("net_b.net_c.linear", {dropped});
  graph->output(linear);
  graph->lint({.strict = true});

  EXPECT_FX_ERROR(graph->call_module("net_b.net_c.nothing", {x}), GraphError, kMissingAttribute,
                  "'net_b.net_c.nothing'");
  EXPECT_FX_ERROR(graph->get_attr("net_b.nothing"), GraphError, kMissingAttribute,
                  "'net_b.nothing'");
  EXPECT_EQ(module.find_submodule("net_b.nothing"), nullptr);
  EXPECT_FALSE(module.find_tensor("net_b.nothing").defined());
  EXPECT_FALSE(module.delete_submodule("net_b.nothing"));
  EXPECT_FALSE(module.delete_submodule("nothing.at.all"));
  EXPECT_FALSE(module.delete_submodule("net_b.param")) << "no module";

  module.delete_all_unused_submodules();
  EXPECT_EQ(module.find_submodule("unused"), nullptr);
  EXPECT_NE(module.find_submodule("net_b.net_c.dropout"), nullptr);
  EXPECT_TRUE(module.find_tensor("net_b.param").defined()) << "parameters of what is kept stay";
  EXPECT_TRUE(module.find_tensor("net_b.buf").defined());

  dropped.replace_all_uses_with(x);
  graph->erase_node(dropped);
  module.delete_all_unused_submodules();
  EXPECT_EQ(module.find_submodule("net_b.net_c.dropout"), nullptr);
  EXPECT_EQ(module.find_submodule("net_b.net_c.linear"), conv);
  module.recompile();
  const at::Tensor input = torch::rand({2, 4});
  EXPECT_TRUE(torch::equal(module(input).toTensor(), conv->forward(input)));
  EXPECT_TRUE(module.delete_submodule("net_b.net_c.linear"));
  EXPECT_NE(module.find_submodule("net_b.net_c"), nullptr) << "only the last name goes";
}

TEST(TestFX, F_175_delete_unused_submodules_leaf) {
  register_module_type<BlockImpl>("Block");
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_submodule("block", std::make_shared<BlockImpl>());
  module.set_submodule("other", std::make_shared<BlockImpl>());
  graph->output(graph->call_module("block", {graph->placeholder("x")}));
  module.delete_all_unused_submodules();
  EXPECT_NE(module.find_submodule("block.conv"), nullptr) << "what a called module has inside";
  EXPECT_EQ(module.find_submodule("other"), nullptr);
}

TEST(TestFX, M_023_attributes_are_set_and_read_by_path) {
  GraphModule module(std::make_shared<Graph>());
  const at::Tensor tensor = torch::ones({2});
  module.set_parameter("a.b.weight", tensor);
  module.set_buffer("a.b.c.mean", tensor * 2);
  module.set_constant("a.table", tensor * 3);
  EXPECT_NE(module.find_submodule("a.b.c"), nullptr) << "made on the way";
  EXPECT_TRUE(module.fetch_attr("a.b.weight").toTensor().is_same(tensor));
  EXPECT_TRUE(torch::equal(module.fetch_attr("a.b.c.mean").toTensor(), tensor * 2));
  EXPECT_TRUE(torch::equal(module.fetch_attr("a.table").toTensor(), tensor * 3));
  module.set_parameter("a.b.weight", tensor * 5);
  EXPECT_TRUE(torch::equal(module.find_tensor("a.b.weight"), tensor * 5));
  EXPECT_TRUE(module.delete_tensor("a.b.weight"));
  EXPECT_FALSE(module.delete_tensor("a.b.weight"));
  EXPECT_FALSE(module.find_tensor("a.b.weight").defined());
  EXPECT_FX_ERROR(module.fetch_attr("a.b.weight"), RunError, kMissingAttr, "a.b.weight");
  EXPECT_FX_ERROR(module.set_buffer("a..b", tensor), GraphError, kBadName, "'a..b'");
}

TEST(TestFX, M_004_setting_the_graph_owns_and_compiles_it) {
  XRelu first, second;
  second.b.set_target("torch.neg");
  auto module = std::make_shared<GraphModule>(first.graph);
  EXPECT_EQ(first.graph->owner(), module.get());
  module->set_graph(second.graph);
  EXPECT_EQ(second.graph->owner(), module.get());
  EXPECT_NE(first.graph->owner(), module.get());
  EXPECT_EQ(&module->graph(), second.graph.get());
  EXPECT_FALSE(module->needs_recompile());
  EXPECT_TRUE(torch::equal((*module)(vec({1, -2})).toTensor(), vec({-1, 2})));
}

// The same program with other parameters: gradients go to those, not to the module's.
TEST(TestFX, F_176_fx_stateless) {
  auto linear = std::make_shared<torch::nn::LinearImpl>(1, 1);
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_submodule("l1", linear);
  module.set_buffer("buffer", torch::ones({1}));
  Node& x = graph->placeholder("x");
  Node& called = graph->call_module("l1", {x});
  graph->output(graph->call_function("operator.add", {called, graph->get_attr("buffer")}));
  module.recompile();
  auto other = module.deep_copy();
  const at::Tensor weight = torch::tensor({{1.f}}, torch::requires_grad());
  const at::Tensor bias = torch::tensor({0.f}, torch::requires_grad());
  auto stateless = std::dynamic_pointer_cast<torch::nn::LinearImpl>(other->find_submodule("l1"));
  stateless->weight = weight;
  stateless->bias = bias;
  const at::Tensor input = torch::rand({1, 1});
  const at::Tensor result = (*other)(input).toTensor();
  EXPECT_TRUE(torch::equal(result, input + 1));
  result.backward();
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_TRUE(bias.grad().defined());
  EXPECT_FALSE(linear->weight.grad().defined());
}

}  // namespace
}  // namespace fx
