#include "fx/interpret/env.h"

#include "fx/base/error.h"
#include "tests/interpret/models.h"

namespace fx {
namespace {

struct Three {
  Graph graph;
  Node& a = graph.placeholder("a");
  Node& b = graph.placeholder("b");
  Node& c = graph.placeholder("c");
};

TEST(Env, S0_40_lists_names_in_insertion_order) {
  Three g;
  Env env{{&g.c, 3}, {&g.a, 1}};
  env.set(g.b, 2);
  env.set(g.a, 10);  // replaced: keeps its place
  EXPECT_EQ(env.names(), (Names{"c", "a", "b"}));
  std::vector<std::int64_t> values;
  for (auto [node, value] : env) values.push_back(value.toInt());
  EXPECT_EQ(values, (std::vector<std::int64_t>{3, 10, 2}));
}

TEST(Env, S2_14_contains_and_find) {
  Three g;
  Env env{{&g.a, 1}};
  EXPECT_TRUE(env.contains(g.a));
  EXPECT_FALSE(env.contains(g.b));
  EXPECT_EQ(env.find(g.a)->toInt(), 1);
  EXPECT_EQ(env.find(g.b), nullptr);
  EXPECT_TRUE(env.contains("a"));
  EXPECT_FALSE(env.contains("b"));
  EXPECT_FALSE(env.contains("no such node"));
  EXPECT_FALSE(Env().contains("a"));
}

TEST(Env, S2_13_at_throws_for_a_missing_node) {
  Three g;
  Env env{{&g.a, 1}};
  EXPECT_EQ(env.at(g.a).toInt(), 1);
  EXPECT_EQ(env.at("a").toInt(), 1);
  EXPECT_FX_ERROR(env.at(g.b), RunError, kMissingValue, "there is no value of the node b");
  EXPECT_FX_ERROR(env.at("x"), RunError, kMissingValue, "'x'");
}

TEST(Env, erases_in_any_order_and_takes_nodes_again) {
  Three g;
  Env env{{&g.a, 1}, {&g.b, 2}, {&g.c, 3}};
  EXPECT_TRUE(env.erase(g.b));
  EXPECT_FALSE(env.erase(g.b));
  EXPECT_EQ(env.names(), (Names{"a", "c"}));
  env.set(g.b, 4);
  EXPECT_EQ(env.names(), (Names{"a", "c", "b"}));
  EXPECT_TRUE(env.erase(g.a));
  EXPECT_TRUE(env.erase(g.c));
  EXPECT_TRUE(env.erase(g.b));
  EXPECT_TRUE(env.empty());
  EXPECT_EQ(env.begin(), env.end());
  env[g.c] = 7;
  EXPECT_EQ(env.at(g.c).toInt(), 7);
}

TEST(Env, erasing_destroys_the_value_at_once) {
  Three g;
  Env env;
  at::Tensor tensor = torch::ones({2});
  env.set(g.a, tensor);
  EXPECT_EQ(tensor.use_count(), 2);
  env.erase(g.a);
  EXPECT_EQ(tensor.use_count(), 1);
  env.set(g.b, tensor);
  env.clear();
  EXPECT_EQ(tensor.use_count(), 1);
}

TEST(Env, a_copy_is_independent) {
  Three g;
  Env env{{&g.a, 1}};
  Env copy = env;
  copy.set(g.b, 2);
  copy.set(g.a, 5);
  EXPECT_EQ(env.size(), 1u);
  EXPECT_EQ(env.at(g.a).toInt(), 1);
  Env moved = std::move(copy);
  EXPECT_EQ(moved.size(), 2u);
  EXPECT_TRUE(copy.empty());
  copy.set(g.c, 3);
  EXPECT_EQ(copy.names(), (Names{"c"}));
}

TEST(Env, S2_12_nodes_of_another_graph_are_refused) {
  Three g, other;
  Env env{{&g.a, 1}};
  EXPECT_FX_ERROR(env.set(other.b, 2), GraphError, kForeignNode, "b");
  EXPECT_FX_ERROR(env.set(other.a, 2), GraphError, kForeignNode, "a");
  EXPECT_EQ(env.find(other.a), nullptr);
  EXPECT_FALSE(env.erase(other.a));
  EXPECT_EQ(env.at(g.a).toInt(), 1);
  // Once empty it may serve another graph.
  env.clear();
  env.set(other.b, 2);
  EXPECT_EQ(env.names(), (Names{"b"}));
}

TEST(Env, nodes_made_later_fit) {
  Graph graph;
  Env env;
  for (int i = 0; i < 1000; ++i) env.set(graph.placeholder("p"), i);
  EXPECT_EQ(env.size(), 1000u);
  EXPECT_EQ(env.at("p_999").toInt(), 999);
}

}  // namespace
}  // namespace fx
