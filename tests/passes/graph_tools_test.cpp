// The tools of graphs that articles of their own are about: one test a tool, with its row ids.
#include "fx/passes/pass_manager.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

TEST(GraphTools, S3_69_S4_99_W_60_eliminate_dead_code) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n%unused = placeholder[target=unused]\n"
      "%a = call_function[target=operator.add](args = (%x, 1))\n"
      "%b = call_function[target=operator.mul](args = (%a, 2))\n"  // a chain: both go
      "%w = call_method[target=add_](args = (%x, 1))\n"            // writes: stays
      "%y = call_function[target=operator.neg](args = (%x,))\n"
      "return %y\n");
  EXPECT_TRUE(module->graph().eliminate_dead_code());
  EXPECT_EQ(names(module->graph()), (Names{"x", "unused", "w", "y", "output"}));
  EXPECT_FALSE(module->graph().eliminate_dead_code());
  // One's own idea of what has effects.
  EXPECT_FALSE(module->graph().eliminate_dead_code([](const Node&) { return true; }));
  EXPECT_TRUE(module->graph().eliminate_dead_code(
      [](const Node& node) { return node.is_placeholder() || node.is_output(); }));
  EXPECT_EQ(names(module->graph()), (Names{"x", "unused", "y", "output"}));
}

TEST(GraphTools, S3_70_S4_100_erase_node) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n"
      "%drop = call_function[target=torch.dropout](args = (%x, 0.5, False))\n"
      "%y = call_function[target=operator.mul](args = (%drop, 2))\n"
      "return %y\n");
  const Values input{torch::rand({3})};
  const Value expected = module->forward(input);
  Graph& graph = module->graph();
  Node& drop = *graph.find_node("drop");
  EXPECT_FX_ERROR(graph.erase_node(drop), GraphError, kEraseWithUsers, "y");
  drop.replace_all_uses_with(*graph.find_node("x"));
  graph.erase_node(drop);
  EXPECT_TRUE(drop.is_erased());
  graph.lint({.strict = true});
  module->recompile();
  EXPECT_EQ(names(graph), (Names{"x", "y", "output"}));
  EXPECT_VALUES_EQ(expected, module->forward(input));
}

TEST(GraphTools, S3_71_S4_101_get_attr) {
  GraphModule module;
  module.set_parameter("foo.baz", torch::full({2}, 1.0));
  module.set_buffer("foo.mean", torch::full({2}, 2.0));
  module.set_constant("table", torch::full({2}, 4.0));
  module.set_submodule("deep.er.lin", std::make_shared<torch::nn::LinearImpl>(2, 2));
  Graph& graph = module.graph();
  Node& baz = graph.get_attr("foo.baz");
  EXPECT_EQ(baz.format_node(), "%foo_baz : [num_users=0] = get_attr[target=foo.baz]");
  Node& mean = graph.get_attr("foo.mean");
  Node& table = graph.get_attr("table");
  Node& weight = graph.get_attr("deep.er.lin.weight");
  EXPECT_EQ(weight.name(), "deep_er_lin_weight");
  Node& sum = graph.call_function("operator.add", {baz, mean});
  graph.output(Argument::tuple({graph.call_function("operator.add", {sum, table}), weight}));
  module.recompile();
  const Values found = elements(module.forward({}));
  EXPECT_TRUE(torch::equal(found[0].toTensor(), torch::full({2}, 7.0)));
  EXPECT_TRUE(found[1].toTensor().is_same(module.find_tensor("deep.er.lin.weight")));
  // torch.fx warns; here it is an error, since the graph could never run.
  EXPECT_FX_ERROR(graph.get_attr("foo.missing"), GraphError, kMissingAttribute, "foo.missing");
}

TEST(GraphTools, S3_72_S4_102_W_60_graph_copy) {
  auto source = symbolic_trace([](Proxy x) { return relu(x) + 1; });
  const std::string before = source->graph().str();
  Graph copy;
  ValueMap map;
  Node& given = copy.placeholder("given");
  map.emplace(source->graph().find_node("x"), given);
  const Argument result = copy.graph_copy(source->graph(), map);
  EXPECT_EQ(names(copy), (Names{"given", "relu", "add"})) << "neither x nor the output";
  EXPECT_EQ(&result.node(), copy.find_node("add"));
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(&copy.find_node("relu")->arg(0).node(), &given);
  copy.output(result);
  copy.find_node("relu")->set_target("torch.sigmoid");
  EXPECT_EQ(source->graph().str(), before);
  GraphModule made(source->graph().clone());
  EXPECT_VALUES_EQ(made.forward({torch::ones({1})}), Value(torch::full({1}, 2.0)));
}

TEST(GraphTools, S3_73_S4_103_W_60_inserting_after) {
  auto module = symbolic_trace([](Proxy x) { return relu(x); });
  Graph& graph = module->graph();
  Node& x = *graph.find_node("x");
  {
    const auto scope = graph.inserting_after(x);
    graph.call_function("operator.neg", {x});
    graph.call_function("operator.pos", {x});
  }
  EXPECT_EQ(names(graph), (Names{"x", "pos", "neg", "relu", "output"})) << "each right after x";
  graph.call_function("operator.invert", {x});
  EXPECT_EQ(graph.nodes().back().name(), "invert") << "the scope is over";
  Graph other;
  EXPECT_FX_ERROR((void)graph.inserting_after(other.placeholder("a")), GraphError, kForeignNode,
                  "a");
}

TEST(GraphTools, S3_74_S4_104_inserting_before) {
  auto module = symbolic_trace([](Proxy x) { return relu(x); });
  Graph& graph = module->graph();
  Node& x = *graph.find_node("x");
  Node& relu_node = *graph.find_node("relu");
  {
    const auto scope = graph.inserting_before(relu_node);
    graph.call_function("operator.neg", {x});
    graph.call_function("operator.pos", {x});
  }
  EXPECT_EQ(names(graph), (Names{"x", "neg", "pos", "relu", "output"})) << "in their order";
  {
    const auto start = graph.inserting_at_start();  // torch.fx: inserting_before(None)
    graph.placeholder("first");
  }
  EXPECT_EQ(graph.nodes().front().name(), "first");
  // What lives as long as the graph sets the point for good.
  const auto kept = graph.inserting_before(*graph.find_node("output"));
  graph.call_function("operator.not_", {x});
  graph.call_function("operator.invert", {x});
  EXPECT_EQ(names(graph), (Names{"first", "x", "neg", "pos", "relu", "not_", "invert", "output"}));
}

TEST(GraphTools, S3_76_S4_106_W_60_node_copy) {
  auto module = symbolic_trace([](Proxy x) { return (x + 1) + x; });
  Graph& graph = module->graph();
  Node& add = *graph.find_node("add");
  add.set_type("Tensor");
  add.meta().set("key", std::string("value"));
  const auto scope = graph.inserting_after(add);
  Node& copy = graph.node_copy(add);
  EXPECT_EQ(copy.name(), "add_2") << "add_1 is taken";
  EXPECT_EQ(copy.op(), add.op());
  EXPECT_EQ(copy.target(), add.target());
  EXPECT_EQ(copy.arg(0), add.arg(0));
  EXPECT_EQ(copy.type(), "Tensor");
  EXPECT_EQ(*copy.meta().get<std::string>("key"), "value");
  copy.meta().set("key", std::string("other"));
  EXPECT_EQ(*add.meta().get<std::string>("key"), "value") << "the meta of the copy is its own";
  Node& mapped = graph.node_copy(add, [&](Node&) -> Argument { return copy; });
  EXPECT_EQ(&mapped.arg(0).node(), &copy);
}

TEST(GraphTools, S3_77_S4_107_W_60_nodes) {
  auto module = symbolic_trace([](Proxy x) { return neg(relu(x)) + 1; });
  Graph& graph = module->graph();
  EXPECT_EQ(graph.nodes().size(), 5u);
  Names forward, backward;
  for (const Node& node : graph.nodes()) forward.emplace_back(node.name());
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node)
    backward.emplace_back(node->name());
  EXPECT_EQ(forward, (Names{"x", "relu", "neg", "add", "output"}));
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  // Erasing and inserting while walking.
  for (Node& node : graph.nodes()) {
    if (!node.calls("torch.relu")) continue;
    const auto scope = graph.inserting_after(node);
    Node& sigmoid = graph.call_function("torch.sigmoid", {node.arg(0)});
    node.replace_all_uses_with(sigmoid);
    graph.erase_node(node);
  }
  EXPECT_EQ(names(graph), (Names{"x", "sigmoid", "neg", "add", "output"}));
  graph.lint({.strict = true});
}

}  // namespace
}  // namespace fx
