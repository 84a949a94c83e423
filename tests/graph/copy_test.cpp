// node_copy, graph_copy, clone; what happens when graphs that share nodes die.
#include "fx/graph/graph.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

struct Net {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x", "Tensor");
  Node& conv = graph->call_module("conv", {x});
  Node& bn = graph->call_module("bn", {conv});
  Node& relu = graph->call_function("torch.relu", {bn}, {{"k", Argument::list({bn})}});
  Node& out = graph->output(Argument::dict({{"y", relu}}), "Dict[str, Tensor]");
};

TEST(Copy, S4_77_N_031_G_031_node_copy_maps_the_arguments) {
  Net net;
  net.relu.set_type("T");
  net.relu.meta().set("k", 1);
  Graph other;
  Node& a = other.placeholder("relu");
  Node& copy = other.node_copy(net.relu, [&](Node& input) -> Argument {
    EXPECT_EQ(&input, &net.bn);
    return a;
  });
  EXPECT_EQ(copy.name(), "relu_1") << "the old name, made unique";
  EXPECT_EQ(repr(copy.args()), "(relu,)");
  EXPECT_EQ(repr(copy.kwargs()), "{'k': [relu]}");
  EXPECT_EQ(copy.type(), "T");
  EXPECT_EQ(*copy.meta().get<int>("k"), 1);
  EXPECT_EQ(copy.op(), Opcode::kCallFunction);
  EXPECT_EQ(copy.target(), net.relu.target());
  other.lint();
}

TEST(Copy, S4_77_a_missing_entry_throws_and_adds_nothing) {
  Net net;
  Graph other;
  std::unordered_map<const Node*, Argument> map;
  EXPECT_THROW(other.node_copy(net.relu, [&](Node& n) { return map.at(&n); }), std::out_of_range);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(other.placeholder("relu").name(), "relu");
}

TEST(Copy, F_079_G_032_without_a_map_only_lint_complains) {
  Net net;
  Graph other;
  Node& copy = other.node_copy(net.bn);
  EXPECT_EQ(&copy.arg(0).node(), &net.conv);
  EXPECT_EQ(names(net.conv.users()), (Names{"bn", "bn"}));
  EXPECT_FX_ERROR(other.lint(), LintError, kLintForeignArg,
                  "Argument 'conv' of Node 'bn' does not belong to this Graph");
  copy.update_arg(0, other.placeholder("x"));
  EXPECT_EQ(net.conv.num_users(), 1u);
}

TEST(Copy, S4_80_a_skipped_node_is_an_alias_of_its_input) {
  Net net;
  Graph other;
  ValueMap env;
  for (Node& node : net.graph->nodes()) {
    if (&node == &net.bn) {
      env[&node] = env.at(&net.conv);
      continue;
    }
    env[&node] = other.node_copy(node, [&](Node& input) { return env.at(&input); });
  }
  EXPECT_EQ(names(other), (Names{"x", "conv", "relu", "output"}));
  EXPECT_EQ(repr(other.find_node("relu")->args()), "(conv,)");
  EXPECT_EQ(repr(other.find_node("relu")->kwargs()), "{'k': [conv]}");
  other.lint({.strict = true});
}

TEST(Copy, F_130_G_033_graph_copy_returns_the_output_value_and_fills_the_map) {
  Net net;
  Graph other;
  Node& input = other.placeholder("input");
  ValueMap map{{&net.x, input}};
  const Argument result = other.graph_copy(*net.graph, map);
  EXPECT_EQ(repr(result), "{'y': relu}");
  EXPECT_EQ(names(other), (Names{"input_1", "conv", "bn", "relu"})) << "no output, no second x";
  EXPECT_EQ(&map.at(&net.relu).node(), other.find_node("relu"));
  EXPECT_EQ(map.size(), 4u);
  other.output(result);
  other.lint({.strict = true});
}

TEST(Copy, G_033_goes_to_the_insertion_point_and_stops_at_the_first_output) {
  Net net;
  net.graph->call_function("torch.neg", {net.x});
  Graph other;
  Node& x = other.placeholder("x");
  Node& end = other.output(x);
  auto at = other.inserting_before(end);
  ValueMap map{{&net.x, x}};
  other.graph_copy(*net.graph, map);
  EXPECT_EQ(names(other), (Names{"x", "conv", "bn", "relu", "output"}));
}

TEST(Copy, G_033_without_an_output_gives_none) {
  Graph source, other;
  source.placeholder("x");
  ValueMap map;
  EXPECT_TRUE(other.graph_copy(source, map).is_none());
  EXPECT_EQ(other.size(), 1u);
  Graph empty;
  EXPECT_TRUE(other.graph_copy(empty, map).is_none());
}

TEST(Copy, a_graph_into_itself) {
  Net net;
  net.graph->erase_node(net.out);
  ValueMap map{{&net.x, net.relu}};
  net.graph->graph_copy(*net.graph, map);
  EXPECT_EQ(names(*net.graph), (Names{"x", "conv", "bn", "relu", "conv_1", "bn_1", "relu_1"}));
  net.graph->lint();
}

TEST(Copy, G_034_not_in_order_is_an_error) {
  Net net;
  net.bn.append(net.conv);
  Graph other;
  ValueMap map;
  EXPECT_FX_ERROR(other.graph_copy(*net.graph, map), GraphError, kCopyUnmapped,
                  "graph_copy met a use of conv before its definition was copied");
  EXPECT_FX_ERROR(net.graph->clone(), GraphError, kCopyUnmapped,
                  "cannot copy the graph: conv is used before it is defined");
}

TEST(Copy, G_034_F37_clone_shares_nothing) {
  Net net;
  net.x.meta().set("shape", std::vector<int>{1, 2});
  net.out.meta().set("k", 5);
  ValueMap map;
  auto clone = net.graph->clone(&map);
  EXPECT_TRUE(clone->same_structure(*net.graph));
  EXPECT_EQ(clone->str(), net.graph->str());
  EXPECT_EQ(clone->output_node().type(), "Dict[str, Tensor]");
  EXPECT_EQ(*clone->output_node().meta().get<int>("k"), 5);
  EXPECT_EQ(clone->owner(), nullptr);
  clone->lint({.strict = true});

  Node& x = map.at(&net.x).node();
  x.meta().get<std::vector<int>>("shape")->push_back(3);
  EXPECT_EQ(net.x.meta().get<std::vector<int>>("shape")->size(), 2u);
  const std::string before = net.graph->str();
  clone->find_node("relu")->update_arg(0, x);
  clone->call_function("torch.neg", {x});
  EXPECT_EQ(net.graph->str(), before);
  // Names go on from where the copies stand.
  EXPECT_EQ(clone->call_function("torch.relu", {x}).name(), "relu_1");
}

TEST(Copy, clone_keeps_names_in_any_order_of_numbers) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.call_function("f", {x}, {}, "add_3");
  graph.call_function("f", {x}, {}, "add");
  graph.call_function("f", {x}, {}, "x_01");
  graph.call_function("f", {x}, {}, "for");
  auto clone = graph.clone();
  EXPECT_EQ(names(*clone), names(graph));
  EXPECT_EQ(names(*clone), (Names{"x", "add_3", "add", "x_01", "for_1"}));
}

TEST(Lifetime, a_graph_whose_nodes_another_graph_still_uses) {
  Graph other;
  {
    Graph graph;
    Node& x = graph.placeholder("x");
    other.call_function("torch.relu", {Argument::list({x})});
  }
  EXPECT_EQ(other.find_node("relu")->arg(0).items()[0].to_string(),
            "<node of a destroyed graph: x>");
  EXPECT_TRUE(other.find_node("relu")->all_input_nodes().empty());
  EXPECT_THAT(other.str(), ::testing::HasSubstr("destroyed graph"));
  other.lint();
}

TEST(Lifetime, a_user_of_foreign_nodes_that_dies_first) {
  Graph graph;
  Node& x = graph.placeholder("x");
  {
    Graph other;
    other.call_function("torch.relu", {x});
    EXPECT_EQ(x.num_users(), 1u);
  }
  EXPECT_EQ(x.num_users(), 0u);
  graph.call_function("torch.neg", {x});
  EXPECT_EQ(names(x.users()), Names{"neg"});
}

TEST(Lifetime, edges_in_both_directions) {
  auto a = std::make_unique<Graph>();
  auto b = std::make_unique<Graph>();
  Node& x = a->placeholder("x");
  Node& y = b->placeholder("y");
  a->call_function("f", {y, x});
  b->call_function("g", {x, y});
  a.reset();
  EXPECT_EQ(names(y.users()), Names{"g"});
  EXPECT_EQ(repr(b->find_node("g")->args()), "('<node of a destroyed graph: x>', y)");
  b->lint();
}

}  // namespace
}  // namespace fx
