// Each rule of lint broken on purpose; each code with its message.
#include "fx/graph/graph.h"
#include "tests/graph/graph_test_access.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using AttrKind = GraphOwner::AttrKind;

struct Fixture {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& add = graph.call_function("operator.add", {x, y});
  Node& relu = graph.call_function("torch.relu", {add});
  Node& out = graph.output(relu);
};

/// A module with a parameter "w", a submodule "layer", a buffer "layer.running_mean".
class Owner : public GraphOwner {
 public:
  AttrKind attr_kind(std::string_view path) const override {
    if (path == "w") return AttrKind::kParameter;
    if (path == "layer") return AttrKind::kModule;
    if (path == "layer.running_mean") return AttrKind::kBuffer;
    return AttrKind::kMissing;
  }
  bool module_is_impure(std::string_view, bool) const override { return impure; }
  Graph* nested_graph(std::string_view) const override { return nullptr; }
  bool impure = false;
};

TEST(Lint, S1_35_clean_graphs_pass_in_silence) {
  Fixture g;
  g.graph.lint();
  g.graph.lint({.strict = true});
}

TEST(Lint, S3_45_F20_small_graphs) {
  Graph empty;
  empty.lint();
  EXPECT_FX_ERROR(empty.lint({.strict = true}), LintError, kLintOutput, "found 0 output nodes");
  Graph identity;
  identity.output(identity.placeholder("x"));
  identity.lint({.strict = true});
  Graph constant;
  constant.output(Argument());
  constant.lint({.strict = true});
}

TEST(Lint, G_047_S3_75_S4_105_opcode) {
  Fixture g;
  GraphTestAccess::set_opcode(g.relu, 9);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintBadOpcode, "Node relu had unknown opcode 9");
}

TEST(Lint, G_048_ownership) {
  Fixture g;
  Graph other;
  GraphTestAccess::set_graph(g.relu, other);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintOwnership,
                  "Node 'relu' does not belong to this Graph!");
  GraphTestAccess::set_graph(g.relu, g.graph);
}

TEST(Lint, G_050_S3_75_S4_105_foreign_argument) {
  Fixture g;
  Graph other;
  Node& z = other.placeholder("z");
  g.relu.update_arg(0, Argument::list({z}));
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintForeignArg,
                  "Argument 'z' of Node 'relu' does not belong to this Graph, but was used as an "
                  "argument!");
  g.relu.update_arg(0, g.x);
}

TEST(Lint, N_033_F_080_G_051_S3_75_S4_105_W_20_order) {
  Fixture g;
  g.out.append(g.add);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintOrder,
                  "Argument 'add' of Node 'relu' was used before it has been defined! Please check "
                  "that Nodes in the graph are topologically ordered");
  g.relu.prepend(g.add);
  g.graph.lint();
  g.add.update_arg(0, g.add);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintOrder, "Argument 'add' of Node 'add'");
}

TEST(Lint, erased_argument) {
  Fixture g;
  GraphTestAccess::mark_erased(g.add, true);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintErasedArg,
                  "Argument 'add' of Node 'relu' has been erased from the graph!");
  GraphTestAccess::mark_erased(g.add, false);
  Node& dead = g.graph.call_function("torch.neg", {g.x});
  g.graph.erase_node(dead);
  g.out.set_args({dead});
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintErasedArg, "Argument 'neg' of Node 'output'");
}

TEST(Lint, G_052_S3_75_S4_105_duplicate_names) {
  Fixture g;
  GraphTestAccess::steal_name(g.relu, g.add);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintDuplicateName, "Node redefined name add!");
  GraphTestAccess::drop_name(g.relu);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintDuplicateName, "<unnamed>");
  EXPECT_THAT(g.graph.str(), ::testing::HasSubstr("%<unnamed>")) << "F6: printing never throws";
}

TEST(Lint, G_053_target_kind) {
  Fixture g;
  GraphTestAccess::set_target(g.relu, Target::string("relu"));
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintTarget,
                  "Node 'relu' of type call_function has the target 'relu', a string");
  Node& method = g.graph.call_method("neg", {g.x});
  GraphTestAccess::set_target(g.relu, Target::function("torch.relu"));
  GraphTestAccess::set_target(method, Target::function("torch.neg"));
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintTarget,
                  "Node 'neg' of type call_method has the target 'torch.neg', a function");
}

TEST(Lint, G_054_S3_75_S4_105_F10_missing_attributes) {
  Owner owner;
  Fixture g;
  Node& w = g.graph.get_attr("v.w");
  g.graph.lint();
  g.graph.set_owner(&owner);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintMissingAttr,
                  "Node v_w target v.w references a nonexistent attribute");
  w.set_target("w");
  g.graph.lint();
  w.set_target("layer");
  g.graph.lint();
  w.set_op(Opcode::kCallModule, Target::string("head"));
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintMissingAttr, "head references a nonexistent");
  g.graph.set_owner(nullptr);
}

TEST(Lint, G_055_call_module_needs_a_module) {
  Owner owner;
  Fixture g;
  g.graph.set_owner(&owner);
  Node& module = g.graph.call_module("layer", {g.x});
  g.graph.lint();
  module.set_target("layer.running_mean");
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintNotAModule,
                  "Node layer target layer.running_mean does not reference an nn.Module");
  g.graph.set_owner(nullptr);
}

TEST(Lint, G_002_Q_013_G_020_G_021_builders_ask_the_owner) {
  Owner owner;
  Graph graph;
  graph.set_owner(&owner);
  EXPECT_EQ(graph.get_attr("w").name(), "w");
  EXPECT_FX_ERROR(graph.get_attr("nope"), GraphError, kMissingAttribute,
                  "get_attr of 'nope': the owning module has no such attribute");
  EXPECT_FX_ERROR(graph.call_module("w", {}), GraphError, kMissingAttribute,
                  "call_module of 'w': the owning module has no such submodule");
  EXPECT_FX_ERROR(graph.call_module("nope", {}), GraphError, kMissingAttribute, "'nope'");
  EXPECT_EQ(graph.size(), 1u);
}

TEST(Lint, users_and_arguments_that_disagree) {
  Fixture g;
  GraphTestAccess::poke_arg(g.relu, 0, g.x);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintUsers,
                  "the inputs registered for Node 'relu' differ from the nodes in its arguments");
  GraphTestAccess::poke_arg(g.relu, 0, 1);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintUsers, "Node 'relu'");
  GraphTestAccess::poke_arg(g.relu, 0, g.add);
  g.graph.lint();
  GraphTestAccess::poke_arg(g.add, 1, g.x);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintUsers, "Node 'add'");
}

TEST(Lint, a_user_that_the_producer_forgot) {
  Fixture g;
  g.graph.call_function("torch.neg", {g.x});
  GraphTestAccess::forget_first_user(g.x);
  EXPECT_FX_ERROR(g.graph.lint(), LintError, kLintUsers,
                  "Node 'add' is missing in the users of 'x'");
}

TEST(Lint, G_024_G_088_G_056_lenient_by_default_strict_on_demand) {
  {
    Fixture g;
    g.graph.placeholder("z");
    g.graph.lint();
    EXPECT_FX_ERROR(g.graph.lint({.strict = true}), LintError, kLintPlaceholders,
                    "placeholder 'z' stands behind another kind of node");
  }
  {
    Graph graph;
    graph.placeholder("x");
    graph.output(graph.placeholder("x"));
    graph.lint();
    EXPECT_FX_ERROR(graph.lint({.strict = true}), LintError, kLintDuplicateInput,
                    "two placeholders have the target 'x'");
  }
  {
    Fixture g;
    Node& after = g.graph.call_function("torch.neg", {g.x});
    g.graph.lint();
    EXPECT_FX_ERROR(g.graph.lint({.strict = true}), LintError, kLintOutput,
                    "found 1 that is not the last node");
    g.out.prepend(after);
    g.graph.lint({.strict = true});
    g.graph.output(g.x);  // S4-81
    g.graph.lint();
    EXPECT_FX_ERROR(g.graph.lint({.strict = true}), LintError, kLintOutput,
                    "wanted exactly one output node at the end of the graph, found 2 output nodes");
  }
}

TEST(Lint, linear_in_the_uses_of_one_node) {
  Graph graph;
  Node& x = graph.placeholder("x");
  for (int i = 0; i < 200000; ++i) graph.call_function("torch.relu", {x});
  graph.output(x);
  graph.lint({.strict = true});
}

TEST(Graph, S4_81_G_041_output_node) {
  Fixture g;
  EXPECT_EQ(&g.graph.output_node(), &g.out);
  g.graph.call_function("torch.neg", {g.x});
  EXPECT_FX_ERROR(g.graph.output_node(), GraphError, kNoOutput,
                  "the last node of the graph is %neg : [num_users=0] = "
                  "call_function[target=torch.neg](args = (%x,), kwargs = {}), wanted an output");
  Graph empty;
  EXPECT_FX_ERROR(empty.output_node(), GraphError, kNoOutput, "the graph is empty");
}

TEST(Graph, S1_47_G_042_find_nodes) {
  Fixture g;
  Node& add2 = g.graph.call_function("operator.add", {g.x, 1});
  Node& method = g.graph.call_method("relu", {g.x});
  Node* first = nullptr;
  for (Node& node : g.graph.nodes())
    if (node.op() == Opcode::kCallFunction && node.target() == Target::function("operator.add")) {
      first = &node;
      break;
    }
  EXPECT_EQ(first, &g.add);
  EXPECT_EQ(g.graph.find_nodes(Opcode::kCallFunction, Target::function("operator.add")),
            (std::vector<Node*>{&g.add, &add2}));
  EXPECT_EQ(g.graph.find_nodes(Opcode::kPlaceholder), (std::vector<Node*>{&g.x, &g.y}));
  EXPECT_EQ(g.graph.placeholders(), (std::vector<Node*>{&g.x, &g.y}));
  EXPECT_EQ(g.graph.find_nodes(Opcode::kCallMethod, Target::string("relu")),
            std::vector<Node*>{&method});
  EXPECT_TRUE(g.graph.find_nodes(Opcode::kCallModule).empty());
  EXPECT_EQ(g.graph.find_calls("operator.add").size(), 2u);
}

TEST(Graph, S1_50_S1_52_find_by_name) {
  Fixture g;
  EXPECT_EQ(g.graph.find_node("add"), &g.add);
  EXPECT_EQ(g.graph.find_node("sub"), nullptr);
  EXPECT_EQ(g.graph.find_node(""), nullptr);
  std::map<std::string_view, Node*> by_name;
  for (Node& node : g.graph.nodes()) by_name.emplace(node.name(), &node);
  EXPECT_EQ(by_name.size(), 5u);
  EXPECT_EQ(by_name.at("relu"), &g.relu);
}

}  // namespace
}  // namespace fx
