// Editing the arguments and uses of nodes: update_arg and its kin, replace_all_uses_with,
// erase_node.
#include "fx/graph/graph.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// x -> add = x + 2; mul = add * add; return mul
struct AddMul {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& add = graph.call_function("operator.add", {x, 2});
  Node& mul = graph.call_function("operator.mul", {add, add});
  Node& out = graph.output(mul);
};

Args args_of(const Node& node) { return {node.args().begin(), node.args().end()}; }

TEST(GraphEdit, S1_05_S0_64_update_arg_replaces_one_position) {
  AddMul g;
  g.add.update_arg(1, 10);
  EXPECT_EQ(args_of(g.add), (Args{g.x, 10}));
  g.mul.update_arg(0, g.x);
  EXPECT_EQ(args_of(g.mul), (Args{g.x, g.add}));
  EXPECT_EQ(names(g.x.users()), (Names{"add", "mul"}));
  EXPECT_EQ(names(g.add.users()), Names{"mul"});
  g.mul.update_arg(-1, 3);
  EXPECT_EQ(args_of(g.mul), (Args{g.x, 3}));
  EXPECT_TRUE(g.add.users().empty());
  EXPECT_EQ(names(g.mul.all_input_nodes()), Names{"x"});
}

TEST(GraphEdit, S1_06_update_arg_takes_every_kind) {
  AddMul g;
  const std::vector<Argument> values{g.x,
                                     7,
                                     2.5,
                                     true,
                                     "text",
                                     Argument(),
                                     Argument::list({1, g.x}),
                                     Argument::tuple({g.x}),
                                     Argument::dict({{"k", g.x}}),
                                     Argument::slice(0, g.x),
                                     Argument::ellipsis(),
                                     c10::ScalarType::Float,
                                     c10::Device(c10::kCPU),
                                     c10::kStrided,
                                     c10::MemoryFormat::Contiguous,
                                     std::complex<double>(1, 2)};
  for (const Argument& value : values) {
    g.mul.update_arg(0, value);
    EXPECT_EQ(g.mul.arg(0), value) << repr(value);
    EXPECT_EQ(g.x.users().contains(g.mul), value.has_nodes()) << repr(value);
    g.graph.lint();
  }
}

TEST(GraphEdit, S1_19_a_name_is_no_node) {
  AddMul g;
  g.mul.set_args({"x", "add"});
  EXPECT_EQ(g.mul.arg(0).kind(), Argument::Kind::kString);
  EXPECT_TRUE(g.add.users().empty());
  EXPECT_FALSE(g.x.users().contains(g.mul));
  g.mul.update_arg(0, g.x);
  EXPECT_TRUE(g.x.users().contains(g.mul));
}

TEST(GraphEdit, W_16_N_034_bad_index_throws_and_changes_nothing) {
  AddMul g;
  EXPECT_FX_ERROR(g.add.update_arg(2, g.add), GraphError, kIndexOutOfRange,
                  "node add has 2 positional arguments, index 2 is out of range");
  EXPECT_FX_ERROR(g.add.update_arg(-3, 1), GraphError, kIndexOutOfRange, "index -3");
  EXPECT_EQ(args_of(g.add), (Args{g.x, 2}));
  EXPECT_EQ(names(g.add.users()), Names{"mul"});
}

TEST(GraphEdit, S1_07_S1_58_N_036_keyword_arguments) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& clamp = graph.call_function("torch.clamp", {x}, {{"min", 0.0}, {"max", 5.0}});
  clamp.update_kwarg("max", 10.0);
  EXPECT_EQ(clamp.kwarg("max").to_double(), 10.0);
  clamp.update_arg("max", 7.0);
  EXPECT_EQ(clamp.kwarg("max").to_double(), 7.0)
      << "the string form is update_kwarg on a known key";
  EXPECT_FX_ERROR(clamp.update_arg("maximum", 1.0), GraphError, kUnknownKwarg,
                  "node clamp has no keyword argument 'maximum', it has {'min': 0.0, 'max': 7.0}");
  clamp.update_kwarg("extra", y);
  EXPECT_EQ(repr(clamp.kwargs()), "{'min': 0.0, 'max': 7.0, 'extra': y}");
  EXPECT_EQ(names(y.users()), Names{"clamp"});
  clamp.update_kwarg("extra", 1);
  EXPECT_TRUE(y.users().empty());
}

TEST(GraphEdit, N_020_F_132_S0_65_N_012_setting_kwargs_moves_the_users) {
  AddMul g;
  g.mul.set_kwargs({{"a", Argument::list({g.x})}});
  EXPECT_EQ(names(g.mul.all_input_nodes()), (Names{"add", "x"}));
  EXPECT_EQ(names(g.x.users()), (Names{"add", "mul"}));
  g.mul.set_kwargs({});
  EXPECT_EQ(names(g.x.users()), Names{"add"});
  g.mul.set_args_kwargs({g.x}, {{"b", g.x}});
  EXPECT_EQ(names(g.x.users()), (Names{"add", "mul"}));
  EXPECT_TRUE(g.add.users().empty());
}

TEST(GraphEdit, Q_004_F_197_N_035_insert_arg) {
  AddMul g;
  g.mul.insert_arg(0, g.x);
  EXPECT_EQ(args_of(g.mul), (Args{g.x, g.add, g.add}));
  g.mul.insert_arg(3, Argument::list({g.x}));
  EXPECT_EQ(args_of(g.mul), (Args{g.x, g.add, g.add, Argument::list({g.x})}));
  static_assert(std::is_const_v<std::remove_reference_t<decltype(g.mul.arg(3).items()[0])>>,
                "an inserted list cannot change either");
  g.mul.insert_arg(1, 5);
  EXPECT_EQ(g.mul.arg(1).to_int(), 5);
  EXPECT_EQ(names(g.x.users()), (Names{"add", "mul"}));
  for (int index : {-1, 6})
    EXPECT_FX_ERROR(g.mul.insert_arg(index, 1), GraphError, kIndexOutOfRange,
                    "insert_arg index must be between 0 and 5 for node mul");
  g.graph.lint();
}

TEST(GraphEdit, S1_53_rerouting_moves_users) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& add = graph.call_function("operator.add", {x, 5});
  Node& sub = graph.call_function("operator.sub", {x, 5});
  Node& mul = graph.call_function("operator.mul", {sub, 2});
  graph.output(mul);
  mul.update_arg(0, add);
  EXPECT_EQ(names(add.users()), Names{"mul"});
  EXPECT_TRUE(sub.users().empty());
  EXPECT_EQ(names(graph), (Names{"x", "add", "sub", "mul", "output"}))
      << "S1-54: sub stays until dead code is removed";
  EXPECT_TRUE(graph.eliminate_dead_code());
  EXPECT_EQ(names(graph), (Names{"x", "add", "mul", "output"}));
}

TEST(GraphEdit, G_043_S1_71_N_028_targets_are_assignable) {
  AddMul g;
  g.mul.set_target("operator.add");
  EXPECT_TRUE(g.mul.target() == Target::function("operator.add"));
  EXPECT_EQ(g.mul.name(), "mul") << "the name stays";
  g.mul.set_target(Target::function("torch.mul"));
  EXPECT_TRUE(g.mul.calls("torch.mul"));
  EXPECT_FX_ERROR(g.mul.set_target(Target::string("relu")), GraphError, kBadTarget,
                  "the target 'relu' of a call_function node is a string but a function");
  EXPECT_TRUE(g.mul.calls("torch.mul"));
  g.mul.set_op(Opcode::kCallMethod, Target::string("mul"));
  EXPECT_EQ(g.mul.op(), Opcode::kCallMethod);
  EXPECT_EQ(g.graph.find_nodes(Opcode::kCallMethod), std::vector<Node*>{&g.mul});
  EXPECT_FX_ERROR(g.mul.set_op(static_cast<Opcode>(9), Target::string("mul")), GraphError,
                  kBadOpcode, "op 9 is not in the legal opcodes");
  g.graph.lint();
}

TEST(ReplaceUses, F_069_S0_63_S1_59_N_037_all_users_switch_nested_ones_too) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& old = graph.call_function("torch.relu", {x});
  Node& a = graph.call_function("torch.cat", {Argument::list({old, x, old})});
  Node& b = graph.call_function("f", {x}, {{"k", Argument::dict({{"n", Argument::tuple({old})}})}});
  Node& c = graph.call_function("operator.getitem", {x, Argument::slice(old, {}, old)});
  Node& out = graph.output(Argument::tuple({old, a, b, c}));
  Node* made;
  {
    auto at = graph.inserting_after(old);
    made = &graph.call_function("torch.sigmoid", {x});
  }
  const std::vector<Node*> changed = old.replace_all_uses_with(*made);
  EXPECT_EQ(changed, (std::vector<Node*>{&a, &b, &c, &out}));
  EXPECT_TRUE(old.users().empty());
  EXPECT_EQ(repr(a.args()), "([sigmoid, x, sigmoid],)");
  EXPECT_EQ(repr(b.kwargs()), "{'k': {'n': (sigmoid,)}}");
  EXPECT_EQ(repr(c.args()), "(x, slice(sigmoid, None, sigmoid))");
  EXPECT_EQ(repr(out.args()), "((sigmoid, cat, f, getitem),)");
  EXPECT_EQ(made->users().to_vector(), changed);
  graph.erase_node(old);  // S1-60
  graph.lint({.strict = true});
}

TEST(ReplaceUses, F_071_S1_62_N_038_filter_keeps_some_users) {
  AddMul g;
  Node& neg = g.graph.call_function("operator.neg", {g.add});
  std::vector<Node*> asked;
  const auto changed = g.add.replace_all_uses_with(g.x, [&](Node& user) {
    asked.push_back(&user);
    return &user == &neg;
  });
  EXPECT_EQ(names(asked), (Names{"mul", "neg"}));
  EXPECT_EQ(changed, std::vector<Node*>{&neg});
  EXPECT_EQ(names(g.add.users()), Names{"mul"});
  EXPECT_EQ(names(g.x.users()), (Names{"add", "neg"}));
}

TEST(ReplaceUses, S1_75_one_user_is_rerouted_by_update_arg) {
  AddMul g;
  Node& neg = g.graph.call_function("operator.neg", {g.add});
  Node& relu = g.graph.call_function("torch.relu", {g.add});
  g.mul.update_arg(0, relu);
  EXPECT_EQ(args_of(g.mul), (Args{relu, g.add}));
  EXPECT_EQ(args_of(neg), Args{g.add});
}

TEST(ReplaceUses, S1_09_the_same_graph_as_a_loop_of_update_arg) {
  AddMul a, b;
  Node& relu_a = a.graph.call_function("torch.relu", {a.x});
  Node& relu_b = b.graph.call_function("torch.relu", {b.x});
  a.add.replace_all_uses_with(relu_a);
  for (Node* user : b.add.users().to_vector())
    for (std::size_t i = 0; i < user->num_args(); ++i)
      if (user->arg(static_cast<std::int64_t>(i)).node_or_null() == &b.add)
        user->update_arg(static_cast<std::int64_t>(i), relu_b);
  EXPECT_TRUE(a.graph.same_structure(b.graph));
  EXPECT_EQ(a.graph.str(), b.graph.str());
}

// Golden vector A.4; W-22: it does not look at order, nor spare the replacement itself.
TEST(ReplaceUses, A_4_N_040_S1_32_the_self_cycle_and_how_to_avoid_it) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("torch.relu", {x});
  Node& b = graph.call_function("torch.neg", {a});
  a.replace_all_uses_with(b);
  EXPECT_EQ(args_of(b), Args{b});
  EXPECT_FX_ERROR(graph.lint(), LintError, kLintOrder,
                  "Argument 'neg' of Node 'neg' was used before it has been defined!");

  b.update_arg(0, a);
  Node& out = graph.output(a);
  EXPECT_EQ(a.replace_all_uses_with(b, [&](Node& user) { return &user != &b; }),
            std::vector<Node*>{&out});
  EXPECT_EQ(args_of(b), Args{a});
  EXPECT_EQ(args_of(out), Args{b});
  graph.lint({.strict = true});
}

TEST(ReplaceUses, N_039_F30_propagate_meta) {
  AddMul g;
  Node& relu = g.graph.call_function("torch.relu", {g.x});
  g.add.meta().set("tag", 5);
  g.add.replace_all_uses_with(relu, {}, /*propagate_meta=*/true);
  EXPECT_EQ(*relu.meta().get<int>("tag"), 5);
  EXPECT_EQ(*g.add.meta().get<int>("tag"), 5);
  EXPECT_FX_ERROR(relu.replace_all_uses_with(g.add, {}, true), GraphError, kMetaNotEmpty,
                  "replace_with add already has .meta keys");
  EXPECT_EQ(args_of(g.mul), (Args{relu, relu})) << "unchanged on error";
}

TEST(ReplaceUses, replacing_a_node_by_itself_changes_nothing) {
  AddMul g;
  const std::string before = g.graph.str();
  EXPECT_EQ(g.add.replace_all_uses_with(g.add), std::vector<Node*>{&g.mul});
  EXPECT_EQ(g.graph.str(), before);
  EXPECT_EQ(g.add.num_users(), 1u);
}

TEST(ReplaceUses, foreign_and_erased_replacements_are_refused) {
  AddMul g, other;
  EXPECT_FX_ERROR(g.add.replace_all_uses_with(other.x), GraphError, kForeignNode,
                  "the replacement x is not in this graph");
  Node& dead = g.graph.call_function("torch.relu", {g.x});
  g.graph.erase_node(dead);
  EXPECT_FX_ERROR(g.add.replace_all_uses_with(dead), GraphError, kErasedNode,
                  "the replacement relu has been erased");
  EXPECT_EQ(g.add.num_users(), 1u);
}

TEST(ReplaceUses, N_041_N_043_replace_input_with) {
  AddMul g;
  g.mul.replace_input_with(g.add, g.x);
  EXPECT_EQ(args_of(g.mul), (Args{g.x, g.x}));
  EXPECT_TRUE(g.add.users().empty());
  g.mul.set_args({Argument::list({g.x, 1}), Argument::slice({}, g.x, {})});
  g.mul.replace_input_with(g.x, 4);  // N-041: any value may stand for a node
  EXPECT_EQ(repr(g.mul.args()), "([4, 1], slice(None, 4, None))");
  g.mul.replace_input_with(g.add, g.x);  // not an input
  EXPECT_EQ(repr(g.mul.args()), "([4, 1], slice(None, 4, None))");
  g.graph.lint();
}

TEST(Erase, F_126_S0_61_S1_66_G_036_with_users_throws_and_names_them) {
  AddMul g;
  EXPECT_FX_ERROR(g.graph.erase_node(g.add), GraphError, kEraseWithUsers,
                  "Tried to erase Node add but it still had 1 user in the graph: {mul}!");
  Node& neg = g.graph.call_function("operator.neg", {g.add});
  EXPECT_FX_ERROR(g.graph.erase_node(g.add), GraphError, kEraseWithUsers, "{mul, neg}");
  EXPECT_EQ(g.graph.size(), 5u);
  g.graph.erase_node(neg);
  EXPECT_EQ(names(g.add.users()), Names{"mul"}) << "F33: the inputs lose the user";
}

TEST(Erase, G_037_G_038_F32_wrong_graph_and_second_time_throw) {
  AddMul g, other;
  EXPECT_FX_ERROR(g.graph.erase_node(other.out), GraphError, kForeignNode,
                  "the node to erase, output is not in this graph");
  g.graph.erase_node(g.out);
  EXPECT_FX_ERROR(g.graph.erase_node(g.out), GraphError, kErasedNode,
                  "output has been erased from its graph");
  EXPECT_EQ(g.graph.size(), 3u);
}

TEST(Erase, G_039_what_is_left_of_an_erased_node) {
  AddMul g;
  g.out.meta().set("k", 1);
  g.graph.erase_node(g.out);
  EXPECT_TRUE(g.out.is_erased());
  EXPECT_EQ(g.out.name(), "output");
  EXPECT_EQ(g.out.target().str(), "output");
  EXPECT_EQ(g.out.num_args(), 0u);
  EXPECT_TRUE(g.out.meta().empty());
  EXPECT_TRUE(g.mul.users().empty());
  EXPECT_EQ(g.graph.find_node("output"), nullptr);
}

TEST(Erase, S1_64_S1_65_delete_and_rebuild_in_four_steps) {
  AddMul g;
  // 1. Who uses it; 2. the new node, of another arity; 3. repoint the users; 4. erase the old one.
  const std::vector<Node*> users = g.mul.users().to_vector();
  EXPECT_EQ(users, std::vector<Node*>{&g.out});
  Node* made;
  {
    auto at = g.graph.inserting_after(g.mul);
    made = &g.graph.call_function("torch.addcmul", {g.x, g.add, g.add});
  }
  EXPECT_EQ(g.mul.replace_all_uses_with(*made), users);
  g.graph.erase_node(g.mul);
  g.graph.lint({.strict = true});
  EXPECT_EQ(names(g.graph), (Names{"x", "add", "addcmul", "output"}));
  EXPECT_EQ(args_of(g.out), Args{*made});
}

}  // namespace
}  // namespace fx
