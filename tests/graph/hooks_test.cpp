// Functions that are told of the edits of a graph, and deep copies that carry them over.
#include "fx/graph/node_hooks.h"

#include <torch/nn/modules/linear.h>

#include "tests/graph/graphs.h"

namespace fx {
namespace {

// x -> relu -> linear -> output, with a log of what the hooks are told.
struct Logged {
  Logged() {
    handles = {
        register_create_node_hook(graph, [this](Node& n) { add("create " + named(n)); }),
        register_erase_node_hook(graph, [this](Node& n) { add("erase " + named(n)); }),
        register_replace_node_hook(graph, [this](Node& old, std::string_view now, Node& user) {
          add("replace " + named(old) + " by " + std::string(now) + " in " + named(user));
        })};
  }
  static std::string named(const Node& node) { return std::string(node.name()); }
  void add(std::string line) { log.push_back(std::move(line)); }
  Names taken() { return std::exchange(log, {}); }

  std::shared_ptr<Graph> owned = std::make_shared<Graph>();
  Graph& graph = *owned;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("torch.relu", {x});
  Node& linear = graph.call_module("linear", {relu});
  Node& out = graph.output(linear);
  Names log;
  std::vector<HookHandle> handles;
};

TEST(NodeHooks, R_070_G_098_G_099_G_100_M_024_edits_are_told) {
  Logged g;
  Names again;
  const HookHandle second = register_create_node_hook(
      g.graph, [&](Node& n) { again.push_back("second " + Logged::named(n)); });
  Node* a;
  Node* b;
  {
    auto at = g.graph.inserting_before(g.linear);
    a = &g.graph.call_function("torch.neg", {g.x}, {}, "a");
    b = &g.graph.call_function("torch.abs", {g.x}, {}, "a");
  }
  EXPECT_EQ(g.taken(), (Names{"create a", "create a_1"}));
  EXPECT_EQ(again, (Names{"second a", "second a_1"}));
  g.linear.replace_input_with(g.relu, *a);
  g.graph.erase_node(g.relu);
  EXPECT_EQ(g.taken(), (Names{"replace relu by a in linear", "erase relu"}));
  a->replace_all_uses_with(*b);
  EXPECT_EQ(g.taken(), Names{"replace a by a_1 in linear"});
  for (HookHandle& handle : g.handles) handle.remove();
  g.graph.call_function("torch.neg", {g.x});
  EXPECT_TRUE(g.log.empty());
  EXPECT_EQ(again.size(), 3u) << "the other hook stays until its own handle removes it";
  EXPECT_TRUE(second.active());
}

TEST(NodeHooks, N_042_each_changed_user_is_told_and_plain_assignments_are_not) {
  Logged g;
  Node& neg = g.graph.call_function("torch.neg", {g.relu, Argument::list({g.relu})});
  Node& other = g.graph.call_function("torch.abs", {g.x}, {}, "other");
  g.taken();
  g.relu.replace_all_uses_with(other, [&](Node& user) { return &user != &g.linear; });
  EXPECT_EQ(g.taken(), Names{"replace relu by other in neg"}) << "one line a user, not a use";
  neg.set_args({g.x});
  neg.update_arg(0, other);
  neg.update_kwarg("k", g.x);
  EXPECT_TRUE(g.taken().empty());
  neg.replace_input_with(other, 2.5);
  EXPECT_EQ(g.taken(), Names{"replace other by 2.5 in neg"});
}

TEST(NodeHooks, R_071_rename_tells_every_user_while_the_old_name_still_stands) {
  Logged g;
  g.graph.call_function("torch.neg", {g.relu});
  g.taken();
  EXPECT_EQ(g.relu.rename("linear"), "linear_1");
  EXPECT_EQ(g.taken(),
            (Names{"replace relu by linear_1 in linear", "replace relu by linear_1 in neg"}));
  EXPECT_EQ(g.relu.rename("linear_1"), "linear_1");
  EXPECT_TRUE(g.taken().empty()) << "the same name is no change";
}

TEST(NodeHooks, G_017_G_098_a_new_node_is_shown_before_it_is_linked) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& out = graph.output(x);
  bool told = false;
  const HookHandle handle = register_create_node_hook(graph, [&](Node& node) {
    told = true;
    EXPECT_EQ(names(graph), (Names{"x", "output"}));
    EXPECT_EQ(node.prev(), &x);
    EXPECT_EQ(node.next(), &out);
    EXPECT_TRUE(x.users().contains(node));
  });
  auto at = graph.inserting_before(out);
  graph.call_function("torch.relu", {x});
  EXPECT_TRUE(told);
  EXPECT_EQ(names(graph), (Names{"x", "relu", "output"}));
}

TEST(NodeHooks, G_099_the_erased_node_still_has_its_arguments) {
  Logged g;
  Node& neg = g.graph.call_function("torch.neg", {g.relu});
  std::string seen;
  const HookHandle handle =
      register_erase_node_hook(g.graph, [&](Node& node) { seen = repr(node.args()); });
  g.graph.erase_node(neg);
  EXPECT_EQ(seen, "(relu,)");
}

TEST(NodeHooks, a_hook_that_throws_stops_the_edit) {
  Logged g;
  bool refuse = true;
  const HookHandle create = register_create_node_hook(g.graph, [&](Node&) {
    if (refuse) throw std::runtime_error("no new nodes");
  });
  const HookHandle erase = register_erase_node_hook(g.graph, [&](Node&) {
    if (refuse) throw std::runtime_error("nothing goes");
  });
  EXPECT_THROW(g.graph.call_function("torch.neg", {g.relu}), std::runtime_error);
  EXPECT_THROW(g.graph.erase_node(g.out), std::runtime_error);
  EXPECT_EQ(names(g.graph), (Names{"x", "relu", "linear", "output"}));
  EXPECT_EQ(names(g.relu.users()), Names{"linear"});
  EXPECT_EQ(g.graph.find_node("neg"), nullptr);
  g.graph.lint({.strict = true});
  refuse = false;
  g.graph.erase_node(g.out);
  g.graph.output(g.graph.call_function("torch.neg", {g.relu}));
  g.graph.lint({.strict = true});
}

TEST(NodeHooks, G_102_scoped_hooks_go_with_their_scope) {
  Graph graph;
  int created = 0;
  try {
    const ScopedHook hook(register_create_node_hook(graph, [&](Node&) { ++created; }));
    graph.placeholder("x");
    throw std::runtime_error("stop");
  } catch (const std::runtime_error&) {
  }
  graph.placeholder("y");
  EXPECT_EQ(created, 1);
  HookHandle twice = register_create_node_hook(graph, [&](Node&) { ++created; });
  twice.remove();
  twice.remove();
  EXPECT_FALSE(twice.active());
}

TEST(NodeHooks, G_101_deep_copies_carry_the_hooks_and_are_shown_to_them) {
  Logged g;
  GraphModule module(g.owned);
  module.set_submodule("linear", std::make_shared<torch::nn::LinearImpl>(2, 2));
  std::vector<GraphModule*> copies;
  const HookHandle handle =
      register_deepcopy_hook(module, [&](GraphModule& copy) { copies.push_back(&copy); });
  auto copy = module.deep_copy();
  EXPECT_EQ(copies, std::vector<GraphModule*>{copy.get()});
  EXPECT_TRUE(g.taken().empty()) << "nodes of the copy are no new nodes";
  copy->graph().placeholder("z");
  EXPECT_EQ(g.taken(), Names{"create z"}) << "the copy's graph has the hooks";
  for (HookHandle& one : g.handles) one.remove();
  copy->graph().placeholder("w");
  EXPECT_EQ(g.taken(), Names{"create w"}) << "hooks of the copy are its own";
  auto second = copy->deep_copy();
  EXPECT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies.back(), second.get());
}

}  // namespace
}  // namespace fx
