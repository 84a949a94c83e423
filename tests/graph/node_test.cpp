#include "fx/graph/node.h"

#include <map>
#include <set>
#include <unordered_map>

#include "tests/graph/graphs.h"

namespace fx {
namespace {

// x, y -> add = x + y; relu = torch.relu(add); return relu
struct AddRelu {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& add = graph.call_function("operator.add", {x, y});
  Node& relu = graph.call_function("torch.relu", {add});
  Node& out = graph.output(relu);
};

TEST(Node, N_001_S1_03_has_op_target_args_kwargs_and_name) {
  AddRelu g;
  EXPECT_EQ(g.add.op(), Opcode::kCallFunction);
  EXPECT_EQ(g.add.target(), Target::function("operator.add"));
  EXPECT_TRUE(std::ranges::equal(g.add.args(), Args{g.x, g.y}));
  EXPECT_TRUE(g.add.kwargs().empty());
  EXPECT_EQ(g.add.name(), "add");
  EXPECT_EQ(&g.add.graph(), &g.graph);
  EXPECT_EQ(names(g.add.users()), Names{"relu"});
  EXPECT_EQ(names(g.add.all_input_nodes()), (Names{"x", "y"}));
  EXPECT_EQ(g.add.type(), "");
  EXPECT_TRUE(g.add.meta().empty());
  EXPECT_EQ(g.add.prev(), &g.y);
  EXPECT_EQ(g.add.next(), &g.relu);
  EXPECT_EQ(names(g.graph), (Names{"x", "y", "add", "relu", "output"}))
      << "iteration follows the order of execution";
}

TEST(Node, N_005_N_006_F_081_G_017_S3_53_S4_03_N_002_six_opcodes_and_no_other) {
  Graph graph;
  Node& x = graph.create_node("placeholder", "x");
  graph.create_node("get_attr", "w");
  graph.create_node("call_function", "torch.add", {x, 1});
  graph.create_node("call_method", "relu", {x});
  graph.create_node("call_module", "layer", {x});
  graph.create_node("output", "output", {x});
  const std::vector<Opcode> all{Opcode::kPlaceholder, Opcode::kGetAttr,    Opcode::kCallFunction,
                                Opcode::kCallMethod,  Opcode::kCallModule, Opcode::kOutput};
  std::vector<Opcode> got;
  for (Node& node : graph.nodes()) got.push_back(node.op());
  EXPECT_EQ(got, all);
  EXPECT_FX_ERROR(graph.create_node("call", "torch.add"), GraphError, kBadOpcode,
                  "op 'call' is not in the legal opcodes");
  EXPECT_FX_ERROR(graph.create_node(static_cast<Opcode>(6), Target::string("a")), GraphError,
                  kBadOpcode, "op 6 is not in the legal opcodes");
  EXPECT_FX_ERROR(graph.create_node(Opcode::kCallFunction, Target::string("relu")), GraphError,
                  kBadTarget, "is a string but a function is expected");
  for (Opcode op : all) {
    if (op == Opcode::kCallFunction) continue;
    EXPECT_FX_ERROR(graph.create_node(op, Target::function("torch.relu")), GraphError, kBadTarget,
                    "is a function but a string is expected");
  }
  EXPECT_EQ(graph.size(), 6u) << "a refused node leaves nothing behind";
  for (Opcode op : all) EXPECT_EQ(opcode_from_name(opcode_name(op)), op);
  EXPECT_EQ(opcode_from_name("root"), std::nullopt);
  EXPECT_EQ(opcode_name(static_cast<Opcode>(17)), "<illegal opcode>");
}

TEST(Node, G_019_N_003_N_004_placeholder_and_output_shapes) {
  Graph graph;
  Node& args = graph.placeholder("*args");
  Node& none = graph.placeholder_with_default("b", Argument());
  Node& out = graph.output(Argument::dict({{"r", Argument::list({args, none})}}));
  EXPECT_EQ(args.target().str(), "*args");
  EXPECT_EQ(args.num_args(), 0u);
  EXPECT_EQ(none.num_args(), 1u) << "a default of None is a default (G-019)";
  EXPECT_TRUE(none.arg(0).is_none());
  EXPECT_EQ(out.name(), "output");
  EXPECT_EQ(out.target().str(), "output");
  EXPECT_EQ(out.num_args(), 1u);
  EXPECT_EQ(names(out.all_input_nodes()), (Names{"_args", "b"}));
}

TEST(Node, S0_50_S1_13_S2_31_targets_are_comparable_values) {
  const Target python = Target::function("operator.add");
  const Target torch = Target::function("torch.add");
  const Target aten = Target::function("aten::add.Tensor");
  EXPECT_FALSE(python == torch);
  EXPECT_FALSE(torch == aten);
  EXPECT_FALSE(python == aten);
  EXPECT_EQ(aten, Target::function("aten::add.Tensor"));
  EXPECT_FALSE(Target::string("torch.add") == torch) << "a string is no function";
  EXPECT_EQ(torch.function()->kind(), FunctionKind::kTorch);
  EXPECT_EQ(python.function()->kind(), FunctionKind::kBuiltin);
  EXPECT_EQ(aten.function()->kind(), FunctionKind::kOperator);
  EXPECT_EQ(aten.function()->overload_name(), "Tensor");
  AddRelu g;
  EXPECT_TRUE(g.relu.target() == Target::function("torch.relu"));
  EXPECT_TRUE(g.relu.target() == "torch.relu");
  std::set<std::size_t> hashes{std::hash<Target>{}(python), std::hash<Target>{}(torch),
                               std::hash<Target>{}(aten)};
  EXPECT_EQ(hashes.size(), 3u);
}

TEST(Node, calls_matches_one_overload_or_all) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& tensor = graph.call_function("aten::add.Tensor", {x, x});
  Node& relu = graph.call_function("aten::relu.default", {x});
  Node& torch = graph.call_function("torch.add", {x, x});
  EXPECT_TRUE(tensor.calls("aten::add"));
  EXPECT_TRUE(tensor.calls("aten::add.Tensor"));
  EXPECT_FALSE(tensor.calls("aten::add.Scalar"));
  EXPECT_FALSE(tensor.calls("aten::add.default"));
  EXPECT_FALSE(tensor.calls("aten::ad"));
  EXPECT_FALSE(tensor.calls("torch.add"));
  EXPECT_TRUE(relu.calls("aten::relu"));
  EXPECT_TRUE(relu.calls("aten::relu.default"));
  EXPECT_FALSE(relu.calls("aten::relu_"));
  EXPECT_TRUE(torch.calls("torch.add"));
  EXPECT_FALSE(torch.calls("torch"));
  EXPECT_FALSE(x.calls("x"));
  EXPECT_EQ(graph.find_calls("aten::add"), std::vector<Node*>{&tensor});
}

TEST(Node, N_010_F_159_S0_71_S1_15_N_011_args_are_replaced_never_changed) {
  AddRelu g;
  static_assert(std::is_const_v<std::remove_reference_t<decltype(g.add.args()[0])>>);
  const Args old(g.add.args().begin(), g.add.args().end());
  const Argument list = Argument::list({g.x, g.y});
  g.relu.set_args({list});
  g.add.update_arg(1, 10);
  EXPECT_TRUE(std::ranges::equal(old, Args{g.x, g.y})) << "values taken before stay as they were";
  EXPECT_TRUE(std::ranges::equal(g.add.args(), Args{g.x, 10}));
  EXPECT_EQ(list, Argument::list({g.x, g.y}));
  EXPECT_FALSE(g.y.users().contains(g.add));
  EXPECT_TRUE(g.y.users().contains(g.relu));
}

TEST(Node, N_018_F_129_S1_33_W_18_users_are_ordered_and_unique) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& add = graph.call_function("operator.add", {x, x});
  EXPECT_EQ(names(x.users()), Names{"add"}) << "x + x is one user";
  Node& mul = graph.call_function("operator.mul", {x, add});
  Node& neg = graph.call_function("operator.neg", {x});
  EXPECT_EQ(names(x.users()), (Names{"add", "mul", "neg"}));
  EXPECT_EQ(x.num_users(), 3u);
  EXPECT_EQ(x.users().size(), 3u);
  add.update_arg(0, 1);
  EXPECT_EQ(names(x.users()), (Names{"mul", "neg", "add"})) << "N-018: set again means to the end";
  add.update_arg(1, 1);
  EXPECT_EQ(names(x.users()), (Names{"mul", "neg"}));
  graph.erase_node(neg);
  EXPECT_EQ(names(x.users()), Names{"mul"});
  mul.set_args({add, add});
  EXPECT_TRUE(x.users().empty());
  EXPECT_TRUE(mul.uses(add));
  EXPECT_FALSE(mul.uses(x));
}

TEST(Node, S1_34_N_019_F34_inputs_are_unique_in_order_of_first_use_and_found_when_nested) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("torch.relu", {x});
  Node& mul = graph.call_function("operator.mul", {relu, x});
  EXPECT_EQ(names(mul.all_input_nodes()), (Names{"relu", "x"}));
  Node& y = graph.placeholder("y");
  Node& z = graph.placeholder("z");
  Node& nested = graph.call_function(
      "f", {1, Argument::list({Argument::tuple({z}), relu, relu}), Argument::slice({}, mul, {})},
      {{"k", Argument::dict({{"a", Argument::list({y, z})}})}, {"x", x}});
  EXPECT_EQ(names(nested.all_input_nodes()), (Names{"z", "relu", "mul", "y", "x"}));
  for (Node* input : {&x, &y, &z, &relu, &mul}) EXPECT_TRUE(input->users().contains(nested));
}

TEST(Node, many_inputs_are_unique_too) {
  Graph graph;
  Args list, twice;
  std::vector<Node*> inputs;
  for (int i = 0; i < 1000; ++i) {
    inputs.push_back(&graph.placeholder("x"));
    list.emplace_back(*inputs.back());
  }
  twice = list;
  twice.insert(twice.end(), list.rbegin(), list.rend());
  Node& cat = graph.call_function("aten::cat", {Argument::list(twice)});
  EXPECT_EQ(cat.all_input_nodes(), inputs);
  for (Node* input : inputs) EXPECT_EQ(names(input->users()), Names{"cat"});
  graph.lint();
  cat.set_args({Argument::list({*inputs[3], *inputs[3]})});
  EXPECT_EQ(inputs[0]->num_users(), 0u);
  EXPECT_EQ(inputs[3]->num_users(), 1u);
  graph.lint();
}

TEST(Node, S2_06_N_021_nodes_are_keys_and_ordered_by_position) {
  AddRelu g;
  std::unordered_map<const Node*, int> by_hash{{&g.x, 1}, {&g.add, 2}};
  EXPECT_EQ(by_hash.at(&g.add), 2);
  auto earlier = [](const Node* a, const Node* b) { return a->comes_before(*b); };
  std::set<const Node*, decltype(earlier)> by_position({&g.out, &g.x, &g.relu}, earlier);
  EXPECT_EQ(names(by_position), (Names{"x", "relu", "output"}));
  EXPECT_FALSE(g.x.comes_before(g.x));
}

TEST(Node, N_023_neighbours) {
  AddRelu g;
  EXPECT_EQ(g.x.prev(), nullptr);
  EXPECT_EQ(g.x.next(), &g.y);
  EXPECT_EQ(g.out.next(), nullptr);
  EXPECT_EQ(g.out.prev(), &g.relu);
}

TEST(Node, S1_70_reading_an_operand_for_a_new_node) {
  AddRelu g;
  auto at = g.graph.inserting_after(g.add);
  Node& mul = g.graph.call_function("operator.mul", {g.add.arg(0), 2});
  EXPECT_EQ(&mul.arg(0).node(), &g.x);
  EXPECT_EQ(&g.add.arg(-1).node(), &g.y);
  EXPECT_FX_ERROR(g.add.arg(2), GraphError, kIndexOutOfRange,
                  "node add has 2 positional arguments, index 2 is out of range");
  EXPECT_FX_ERROR(g.add.arg(-3), GraphError, kIndexOutOfRange, "index -3 is out of range");
  EXPECT_FX_ERROR(g.add.kwarg("alpha"), GraphError, kUnknownKwarg,
                  "node add has no keyword argument 'alpha', it has {}");
  EXPECT_EQ(g.add.find_kwarg("alpha"), nullptr);
}

TEST(Node, N_027_G_129_S3_65_N_025_meta_is_a_free_map_that_copies_keep) {
  AddRelu g;
  g.add.meta().set("module_name", "linear");
  g.add.meta().set("level", 3);
  EXPECT_EQ(*g.add.meta().get<std::string>("module_name"), "linear");
  EXPECT_EQ(*g.add.meta().get<int>("level"), 3);
  EXPECT_EQ(g.add.meta().get<double>("level"), nullptr) << "another type";
  EXPECT_EQ(g.add.meta().get<int>("absent"), nullptr);

  Graph other;
  ValueMap map;
  other.graph_copy(g.graph, map);
  Node& copied = map.at(&g.add).node();
  EXPECT_EQ(*copied.meta().get<std::string>("module_name"), "linear");
  auto clone = g.graph.clone();
  EXPECT_EQ(*clone->find_node("add")->meta().get<int>("level"), 3);
  Node& again = g.graph.node_copy(g.add);
  EXPECT_EQ(again.meta().size(), 2u);

  // A copy has a map of its own; values are shared only through shared_ptr.
  auto shared = std::make_shared<int>(5);
  g.add.meta().set("shared", shared);
  Node& third = g.graph.node_copy(g.add);
  third.meta().set("level", 4);
  EXPECT_EQ(*g.add.meta().get<int>("level"), 3);
  EXPECT_EQ(*third.meta().get<std::shared_ptr<int>>("shared"), shared);
  EXPECT_TRUE(third.meta().erase("shared"));
  EXPECT_FALSE(third.meta().erase("shared"));
  EXPECT_TRUE(g.add.meta().contains("shared"));
}

TEST(Node, meta_keeps_insertion_order) {
  Meta meta;
  meta.set("b", 1);
  meta.set("a", 2);
  meta.set("b", 3);
  std::vector<std::string> keys;
  for (const Meta::Entry& entry : meta) keys.push_back(entry.first);
  EXPECT_EQ(keys, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(*meta.get<int>("b"), 3);
  meta.clear();
  EXPECT_TRUE(meta.empty());
}

TEST(Node, N_024_N_026_type_and_stack_trace) {
  AddRelu g;
  EXPECT_EQ(g.add.type(), "");
  g.add.set_type("Dict[str, int]");
  EXPECT_EQ(g.add.type(), "Dict[str, int]");
  EXPECT_EQ(g.add.stack_trace(), "");
  g.add.set_stack_trace("File \"net.cpp\", line 3");
  EXPECT_EQ(*g.add.meta().get<std::string>("stack_trace"), "File \"net.cpp\", line 3");
  EXPECT_EQ(g.graph.clone()->find_node("add")->type(), "Dict[str, int]");
  EXPECT_EQ(g.graph.clone()->find_node("add")->stack_trace(), "File \"net.cpp\", line 3");
}

TEST(Node, F_158_S4_53_names_of_dotted_paths) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_EQ(graph.call_module("sub_module_a.linear", {x}).name(), "sub_module_a_linear");
  EXPECT_EQ(graph.get_attr("layer1.0.weight").name(), "layer1_0_weight");
}

TEST(Node, duplicate_keyword_arguments_are_refused) {
  AddRelu g;
  EXPECT_FX_ERROR(g.graph.call_function("torch.add", {g.x, g.y}, {{"alpha", 1}, {"alpha", 2}}),
                  GraphError, kDuplicateKwarg, "the keyword argument 'alpha' is given twice");
  EXPECT_EQ(g.graph.size(), 5u);
  g.add.update_kwarg("alpha", 3);
  EXPECT_FX_ERROR(g.add.set_kwargs({{"a", g.x}, {"b", 1}, {"a", g.y}}), GraphError, kDuplicateKwarg,
                  "'a' is given twice");
  EXPECT_EQ(g.add.kwarg("alpha").to_int(), 3) << "unchanged on error";
  EXPECT_EQ(g.x.num_users(), 1u);
}

}  // namespace
}  // namespace fx
