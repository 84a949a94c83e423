#include "fx/analysis/liveness.h"

#include "fx/graph/last_uses.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

TEST(Liveness, S0_29_lists_the_last_user_of_each_node) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& unused = graph.placeholder("unused");
  Node& neg = graph.call_function("aten::neg", {x});
  Node& add = graph.call_function("aten::add.Tensor", {neg, x});
  Node& list = graph.call_function("aten::cat", {Argument::list({add, neg})}, {{"dim", 0}});
  Node& output = graph.output(Argument::tuple({list, add}));
  const Liveness result = liveness(graph);
  ASSERT_EQ(result.lifetimes.size(), 6u);
  EXPECT_EQ(result.find(x)->last_user, &add);
  EXPECT_EQ(result.find(neg)->last_user, &list);
  EXPECT_EQ(result.find(add)->last_user, &output);
  EXPECT_EQ(result.find(list)->last_user, &output);
  EXPECT_EQ(result.find(unused)->last_user, nullptr);
  EXPECT_EQ(result.find(output)->last_user, nullptr);
  EXPECT_EQ(result.find(neg)->defined, 2u);
  EXPECT_EQ(result.find(neg)->last_use, 4u);
  // x; x unused; x neg; x neg add; neg add list; add list output.
  EXPECT_EQ(result.live, (std::vector<std::size_t>{1, 2, 2, 3, 3, 3}));
  EXPECT_EQ(result.peak, 3u);
  EXPECT_EQ(result.str(),
            "   pos  node        last user     live\n"
            "     0  x           add_tensor       1\n"
            "     1  unused      -                2\n"
            "     2  neg         cat              2\n"
            "     3  add_tensor  output           3\n"
            "     4  cat         output           3\n"
            "     5  output      -                3\n"
            "peak: 3 values\n");
}

TEST(Liveness, F1_peak_of_a_chain_is_two) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < 50; ++i) last = &graph.call_function("aten::neg", {*last});
  graph.output(*last);
  EXPECT_EQ(liveness(graph).peak, 2u);
}

TEST(Liveness, of_an_empty_graph) {
  const Liveness result = liveness(Graph());
  EXPECT_TRUE(result.lifetimes.empty());
  EXPECT_EQ(result.peak, 0u);
}

TEST(LastUses, follows_list_order_not_creation_order) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& first = graph.call_function("aten::neg", {x});
  Node& second = graph.call_function("aten::abs", {x});
  graph.output(Argument::tuple({first, second}));
  auto dead_after = [&](Node& node) {
    const LastUses uses(graph);
    Names out;
    for (const Node* dead : uses.after(node)) out.emplace_back(dead->name());
    return out;
  };
  EXPECT_EQ(dead_after(second), (Names{"x"}));
  EXPECT_EQ(dead_after(first), Names{});
  second.append(first);
  EXPECT_EQ(dead_after(first), (Names{"x"}));
  EXPECT_EQ(dead_after(second), Names{});
}

TEST(LastUses, uses_before_the_definition_do_not_count) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& user = graph.call_function("aten::neg", {x});
  Node& late = graph.call_function("aten::abs", {x});
  user.set_args({late});
  graph.output(x);
  const LastUses uses(graph);
  ASSERT_EQ(uses.after(user).size(), 1u);  // its own value
  EXPECT_EQ(uses.after(user)[0], &user);
  ASSERT_EQ(uses.after(late).size(), 1u);
  EXPECT_EQ(uses.after(late)[0], &late);
}

TEST(LastUses, each_value_dies_once_and_only_once) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& twice = graph.call_function("aten::mul.Tensor", {x, x});
  graph.output(Argument::list({twice, twice, x}));
  const LastUses uses(graph);
  std::size_t dead = 0;
  for (const Node& node : graph.nodes()) dead += uses.after(node).size();
  EXPECT_EQ(dead, 2u);
}

}  // namespace
}  // namespace fx
