// Insertion points, moving nodes, iterating while editing, and the order of nodes.
#include <random>

#include "fx/graph/graph.h"
#include "tests/graph/graph_test_access.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

struct XOut {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& out = graph.output(x);
  Node& f(std::string_view name) { return graph.call_function("torch.relu", {x}, {}, name); }
};

// Golden vector A.3.
TEST(Insert, A_3_order_under_one_guard_G_027_G_028) {
  XOut g;
  {
    auto at = g.graph.inserting_after(g.x);
    for (const char* name : {"a", "b", "c"}) g.f(name);
  }
  EXPECT_EQ(names(g.graph), (Names{"x", "c", "b", "a", "output"}));
  {
    auto at = g.graph.inserting_before(g.out);
    g.f("d");
    g.f("e");
  }
  EXPECT_EQ(names(g.graph), (Names{"x", "c", "b", "a", "d", "e", "output"}));
  {
    auto at = g.graph.inserting_at_end();
    g.f("f");
    g.f("f2");
  }
  {
    auto at = g.graph.inserting_at_start();
    g.f("h");
    g.f("h2");
  }
  EXPECT_EQ(names(g.graph), (Names{"h2", "h", "x", "c", "b", "a", "d", "e", "output", "f", "f2"}));
}

TEST(Insert, G_029_S1_68_S1_73_guards_restore_the_point_also_on_exceptions) {
  XOut g;
  try {
    auto at = g.graph.inserting_before(g.out);
    g.f("a");
    throw std::runtime_error("stop");
  } catch (const std::runtime_error&) {
  }
  g.f("z");
  EXPECT_EQ(names(g.graph), (Names{"x", "a", "output", "z"})) << "G-029: back at the end";
}

TEST(Insert, guards_nest) {
  XOut g;
  auto outer = g.graph.inserting_before(g.out);
  Node& a = g.f("a");
  {
    auto inner = g.graph.inserting_before(a);
    g.f("b");
    InsertPointGuard moved = std::move(inner);
    g.f("c");
  }
  g.f("d");
  EXPECT_EQ(names(g.graph), (Names{"x", "b", "c", "a", "d", "output"}));
}

TEST(Insert, S1_73_a_foreign_or_erased_node_is_refused) {
  XOut g, other;
  EXPECT_FX_ERROR((void)g.graph.inserting_before(other.x), GraphError, kForeignNode,
                  "the node to insert before, x is not in this graph");
  EXPECT_FX_ERROR((void)g.graph.inserting_after(other.x), GraphError, kForeignNode,
                  "the node to insert after, x is not in this graph");
  g.graph.erase_node(g.out);
  EXPECT_FX_ERROR((void)g.graph.inserting_before(g.out), GraphError, kErasedNode, "erased");
  g.f("a");
  EXPECT_EQ(names(g.graph), (Names{"x", "a"}));
}

TEST(Insert, G_040_the_point_survives_the_erasure_of_its_node) {
  XOut g;
  Node& a = g.f("a");
  Node& b = g.f("b");
  g.f("c");
  {
    auto at = g.graph.inserting_before(a);
    g.graph.erase_node(a);
    g.f("d");
    g.graph.erase_node(b);
    g.f("e");
  }
  EXPECT_EQ(names(g.graph), (Names{"x", "output", "d", "e", "c"}));
  {
    Node& d = *g.graph.find_node("d");
    auto outer = g.graph.inserting_after(d);
    {
      auto inner = g.graph.inserting_at_end();
      g.graph.erase_node(d);
    }
    g.f("f");
  }
  EXPECT_EQ(names(g.graph), (Names{"x", "output", "f", "e", "c"}));
}

// As in torch.fx, where the point is a bound method of the node.
TEST(Insert, the_point_follows_a_moved_node) {
  Graph graph;
  Node& a = graph.placeholder("a");
  graph.placeholder("b");
  Node& c = graph.placeholder("c");
  auto at = graph.inserting_before(c);
  graph.call_function("torch.relu", {a});
  a.prepend(c);
  graph.call_function("torch.neg", {a});
  EXPECT_EQ(names(graph), (Names{"neg", "c", "a", "b", "relu"}));
}

TEST(Insert, S0_62_W_11_instead_of_insert_node) {
  XOut g;
  auto at = g.graph.inserting_after(g.x);
  Node& relu = g.graph.create_node(Opcode::kCallFunction, Target::function("torch.relu"), {g.x});
  g.x.replace_all_uses_with(relu, [&](Node& user) { return &user != &relu; });
  EXPECT_EQ(names(g.graph), (Names{"x", "relu", "output"}));
  g.graph.lint({.strict = true});
}

// W-21: a node made without an insertion point lands behind the output.
TEST(Insert, W_21_without_a_point_lint_finds_the_broken_order) {
  XOut g;
  Node& relu = g.f("relu");
  g.x.replace_all_uses_with(relu, [&](Node& user) { return &user != &relu; });
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintOrder,
                  "Argument 'relu' of Node 'output' was used before it has been defined!");
  g.out.prepend(relu);  // S1-36: moving repairs it
  g.graph.lint({.strict = true});
}

TEST(Move, N_052_N_031_N_032_S1_36_prepend_and_append) {
  XOut g;
  Node& a = g.f("a");
  Node& b = g.f("b");
  g.out.prepend(a);
  EXPECT_EQ(names(g.graph), (Names{"x", "a", "output", "b"}));
  a.append(b);
  EXPECT_EQ(names(g.graph), (Names{"x", "a", "b", "output"}));
  b.append(a);
  EXPECT_EQ(names(g.graph), (Names{"x", "b", "a", "output"}));
  g.out.append(b);
  EXPECT_EQ(names(g.graph), (Names{"x", "a", "output", "b"}));
  EXPECT_EQ(g.graph.size(), 4u);
}

TEST(Move, F_125_F31_next_to_itself_or_where_it_stands_changes_nothing) {
  XOut g;
  Node& a = g.f("a");
  a.prepend(a);
  a.append(a);
  g.out.append(a);
  a.prepend(g.out);
  EXPECT_EQ(names(g.graph), (Names{"x", "output", "a"}));
  EXPECT_EQ(g.graph.size(), 3u);
  g.graph.lint();
}

TEST(Move, foreign_and_erased_nodes_are_refused) {
  XOut g, other;
  EXPECT_FX_ERROR(g.x.prepend(other.x), GraphError, kForeignNode,
                  "Attempting to move a Node into a different Graph");
  EXPECT_FX_ERROR(g.x.append(other.x), GraphError, kForeignNode,
                  "Attempting to move a Node into a different Graph");
  Node& a = g.f("a");
  g.graph.erase_node(a);
  EXPECT_FX_ERROR(g.x.append(a), GraphError, kErasedNode, "the node a has been erased");
  EXPECT_FX_ERROR(a.append(g.x), GraphError, kErasedNode, "the position a has been erased");
  EXPECT_EQ(names(g.graph), (Names{"x", "output"}));
}

TEST(Iterate, G_003_G_004_G_005_edits_while_iterating) {
  Graph graph;
  Node& x = graph.placeholder("x");
  for (const char* name : {"a", "b", "c", "d"}) graph.call_function("torch.relu", {x}, {}, name);
  Names visited;
  for (Node& node : graph.nodes()) {
    visited.emplace_back(node.name());
    if (node.name() == "a") {
      auto after = graph.inserting_after(node);
      graph.call_function("torch.neg", {x}, {}, "right_after");
      auto before = graph.inserting_before(node);
      graph.call_function("torch.neg", {x}, {}, "right_before");
      graph.erase_node(*graph.find_node("c"));  // one to come
    }
    if (node.name() == "b") graph.erase_node(node);  // the current one
  }
  EXPECT_EQ(visited, (Names{"x", "a", "right_after", "b", "d"}));
  EXPECT_EQ(names(graph), (Names{"x", "right_before", "a", "right_after", "d"}));
}

TEST(Iterate, erasing_everything_behind_and_around) {
  Graph graph;
  Node& x = graph.placeholder("x");
  for (int i = 0; i < 10; ++i) graph.call_function("torch.relu", {x});
  int visits = 0;
  for (Node& node : graph.nodes()) {
    ++visits;
    if (&node == &x) continue;
    Node* next = node.next();
    graph.erase_node(node);
    if (next) graph.erase_node(*next);
  }
  EXPECT_EQ(visits, 6);
  EXPECT_EQ(names(graph), Names{"x"});
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) graph.erase_node(*it);
  EXPECT_TRUE(graph.empty());
}

TEST(Iterate, both_directions) {
  XOut g;
  Node& a = g.f("a");
  Names backwards;
  for (auto it = g.graph.nodes().rbegin(); it != g.graph.nodes().rend(); ++it)
    backwards.emplace_back(it->name());
  EXPECT_EQ(backwards, (Names{"a", "output", "x"}));
  auto it = g.graph.nodes().end();
  EXPECT_EQ(&*--it, &a);
  EXPECT_EQ((it--)->name(), "a");
  EXPECT_EQ((it++)->name(), "output");
  EXPECT_EQ(it->name(), "a");
  static_assert(std::bidirectional_iterator<NodeRange::iterator>);
  static_assert(std::bidirectional_iterator<NodeRange::reverse_iterator>);
  EXPECT_EQ(&g.graph.nodes().front(), &g.x);
  EXPECT_EQ(&g.graph.nodes().back(), &a);
}

// comes_before has to agree with the list after any edits.
void check_order(const Graph& graph) {
  const Node* last = nullptr;
  for (const Node& node : graph.nodes()) {
    ASSERT_GT(GraphTestAccess::order(node), 0u);
    if (last) {
      ASSERT_TRUE(last->comes_before(node)) << last->name() << " before " << node.name();
      ASSERT_FALSE(node.comes_before(*last));
    }
    last = &node;
  }
}

TEST(Order, N_022_many_inserts_before_one_node) {
  XOut g;
  auto at = g.graph.inserting_before(g.out);
  for (int i = 0; i < 100000; ++i) g.f("a");
  check_order(g.graph);
  EXPECT_EQ(g.graph.size(), 100002u);
}

TEST(Order, N_022_many_inserts_right_after_one_node) {
  XOut g;
  auto at = g.graph.inserting_after(g.x);
  for (int i = 0; i < 100000; ++i) g.f("a");
  check_order(g.graph);
}

TEST(Order, N_022_many_inserts_at_the_start) {
  Graph graph;
  auto at = graph.inserting_at_start();
  for (int i = 0; i < 100000; ++i) graph.get_attr("w");
  check_order(graph);
}

TEST(Order, N_022_inserts_and_moves_in_random_places) {
  std::mt19937 random(7);
  XOut g;
  std::vector<Node*> nodes{&g.x, &g.out};
  auto any = [&]() -> Node& { return *nodes[random() % nodes.size()]; };
  for (int i = 0; i < 100000; ++i) {
    auto at = random() % 2 ? g.graph.inserting_before(any()) : g.graph.inserting_after(any());
    nodes.push_back(&g.f("a"));
    if (i % 3 == 0) any().prepend(any());
    if (i % 5 == 0) any().append(any());
  }
  check_order(g.graph);
  EXPECT_EQ(g.graph.size(), nodes.size());
}

// The same gap halved again and again, with the list alternating around it.
TEST(Order, N_022_ping_pong) {
  XOut g;
  Node* low = &g.x;
  Node* high = &g.out;
  for (int i = 0; i < 50000; ++i) {
    auto at = g.graph.inserting_after(*low);
    Node& made = g.f("a");
    (i % 2 ? low : high) = &made;
  }
  check_order(g.graph);
}

}  // namespace
}  // namespace fx
