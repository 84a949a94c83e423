// Snapshots of graphs; those of modules are tested with the pass manager, which lives on them.

#include "fx/graph/module_snapshot.h"

#include <torch/torch.h>

#include <random>

#include "fx/graph/text.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// Everything a user can see of a graph, identities included.
std::string seen(const Graph& graph) {
  std::string out = to_text(graph, {.meta = true});
  const Node* previous = nullptr;
  for (const Node& node : graph.nodes()) {
    out += std::to_string(reinterpret_cast<std::uintptr_t>(&node)) + "<";
    for (const Node* user : node.users()) out += std::string(user->name()) + " ";
    for (const Node* input : node.all_input_nodes()) out += std::string(input->name()) + " ";
    EXPECT_TRUE(!previous || previous->comes_before(node));
    EXPECT_EQ(node.prev(), previous);
    EXPECT_FALSE(node.is_erased());
    EXPECT_EQ(graph.find_node(node.name()), &node);
    previous = &node;
  }
  return out;
}

std::shared_ptr<Graph> sample() {
  return parse_text(R"(fx 1
%x = placeholder[target=x]
%y = placeholder[target=y](default=1)
%b = call_function[target=aten::add.Tensor](args = (%x, %y), kwargs = {alpha: 2})
%a = call_function[target=f](args = ([%x, %b], {'k': (%y, slice(None, %b, None))}))
%c : Tensor = call_method[target=view](args = (%a, 1, 2, 3))
return (%c, %b)
)");
}

TEST(GraphSnapshot, DiffersExactly) {
  const auto graph = sample();
  const GraphSnapshot snapshot(*graph, GraphSnapshot::Keep::kForComparison);
  EXPECT_FALSE(snapshot.differs());
  auto after = [&](auto edit, auto undo) {
    edit();
    const bool differs = snapshot.differs();
    undo();
    EXPECT_FALSE(snapshot.differs());
    return differs;
  };
  Node& b = *graph->find_node("b");
  Node& c = *graph->find_node("c");
  EXPECT_TRUE(after([&] { b.update_kwarg("alpha", 2.0); }, [&] { b.update_kwarg("alpha", 2); }));
  EXPECT_TRUE(after([&] { c.update_arg(1, 5); }, [&] { c.update_arg(1, 1); }));
  EXPECT_TRUE(
      after([&] { b.set_target("aten::sub.Tensor"); }, [&] { b.set_target("aten::add.Tensor"); }));
  EXPECT_FALSE(after([&] { c.update_arg(1, 1); }, [] {}));
  EXPECT_FALSE(after([&] { c.meta().set("k", std::string("v")); }, [] {}));
  EXPECT_TRUE(after(
      [&] {
        graph->nodes().front().append(*graph->find_node("y"));
        graph->find_node("y")->append(graph->nodes().front());
      },
      [&] { graph->find_node("y")->prepend(*graph->find_node("x")); }));
  Node* made = nullptr;
  EXPECT_TRUE(
      after([&] { made = &graph->call_function("f", {b}); }, [&] { graph->erase_node(*made); }));
  EXPECT_THROW(const_cast<GraphSnapshot&>(snapshot).restore(), InternalError);
}

TEST(GraphSnapshot, RestoresAfterAnything) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto graph = sample();
    graph->find_node("b")->meta().set("note", std::string("old"));
    const auto guard = graph->inserting_before(*graph->find_node("c"));
    const std::string before = seen(*graph);
    GraphSnapshot snapshot(*graph, GraphSnapshot::Keep::kForRestore);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 20; ++i) {
      auto nodes = graph->nodes().to_vector();
      if (nodes.empty()) break;
      Node& node = *nodes[random() % nodes.size()];
      Node& other = *nodes[random() % nodes.size()];
      switch (random() % 8) {
        case 0:
          graph->call_function("g", {node, other});
          break;
        case 1:
          node.replace_all_uses_with(other);
          break;
        case 2:
          node.append(other);
          break;
        case 3:
          if (node.num_users() == 0) graph->erase_node(node);
          break;
        case 4:
          node.set_args({other});
          break;
        case 5:
          node.rename("renamed");
          break;
        case 6:
          node.meta().set("note", std::string("new"));
          node.set_type("int");
          break;
        default:
          node.set_kwargs({{"k", other}});
          break;
      }
    }
    snapshot.restore();
    EXPECT_EQ(seen(*graph), before) << "seed " << seed;
    EXPECT_FALSE(snapshot.differs());
    graph->lint({.strict = true});
    // The insertion point is the old one too.
    EXPECT_EQ(graph->call_function("h", {}).next(), graph->find_node("c"));
  }
}

TEST(GraphSnapshot, NamesStayTaken) {
  const auto graph = sample();
  GraphSnapshot snapshot(*graph, GraphSnapshot::Keep::kForRestore);
  EXPECT_EQ(graph->call_function("f", {}).name(), "f");
  snapshot.restore();
  EXPECT_EQ(graph->find_node("f"), nullptr);
  EXPECT_EQ(graph->call_function("f", {}).name(), "f_1");
}

}  // namespace
}  // namespace fx
