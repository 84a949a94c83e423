#include "fx/passes/tools_common.h"

#include "fx/base/error.h"
#include "fx/passes/shape_prop.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<Node*>& nodes) {
  Names out;
  for (const Node* node : nodes) out.emplace_back(node->name());
  return out;
}

Names names_of(const Graph& graph) { return names_of(graph.nodes().to_vector()); }

TEST(ToolsCommon, P_033_Q_015_topological_sorts) {
  auto make = [] {
    return parse_module(R"(
%x = placeholder[target=x]
%a = call_function[target=aten::sin](args = (%x,))
%b = call_function[target=aten::cos](args = (%x,))
%c = call_function[target=aten::add.Tensor](args = (%a, 1))
%d = call_function[target=aten::mul.Tensor](args = (%b, %c))
return %d
)");
  };
  auto gm = make();
  Graph& graph = gm->graph();
  const Names sorted = names_of(graph);
  EXPECT_FALSE(stable_topological_sort(graph));
  // The order is broken: d stands in front of its inputs.
  graph.find_node("a")->prepend(*graph.find_node("d"));
  EXPECT_THROW(graph.lint(), LintError);
  EXPECT_TRUE(stable_topological_sort(graph));
  EXPECT_EQ(names_of(graph), sorted);
  EXPECT_NO_THROW(graph.lint({.strict = true}));
  // Breadth-first: b comes before c, which waits for a.
  auto other = make();
  other->graph().find_node("x")->append(*other->graph().find_node("c"));
  EXPECT_TRUE(legalize_graph(other->graph()));
  EXPECT_EQ(names_of(other->graph()), (Names{"x", "a", "b", "c", "d", "output"}));
  EXPECT_FALSE(legalize_graph(other->graph()));
  // A cycle is an error, and nothing has moved then.
  other->graph().find_node("a")->set_args({*other->graph().find_node("d")});
  try {
    legalize_graph(other->graph());
    FAIL();
  } catch (const LintError& error) {
    EXPECT_EQ(error.text(), "Input graph has cycles, unable to add [a, c, d, output]");
  }
  EXPECT_EQ(names_of(other->graph()), (Names{"x", "a", "b", "c", "d", "output"}));
}

// A read stays between the writes around it, although no value says so.
TEST(ToolsCommon, sorting_keeps_effects) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%copy = call_function[target=aten::clone](args = (%x,))
%late = call_function[target=aten::mul.Tensor](args = (%copy, 2))
%add = call_function[target=aten::add_.Tensor](args = (%copy, 1))
%sin = call_function[target=aten::sin](args = (%copy,))
%out = call_function[target=aten::add.Tensor](args = (%late, %sin))
return %out
)");
  const Values inputs{Value(torch::randn({3}))};
  const Value expected = gm->forward(inputs);
  Graph& graph = gm->graph();
  graph.find_node("x")->append(*graph.find_node("out"));
  EXPECT_TRUE(legalize_graph(graph));
  EXPECT_EQ(names_of(graph), (Names{"x", "copy", "late", "add", "sin", "out", "output"}));
  gm->recompile();
  EXPECT_VALUES_EQ(expected, gm->forward(inputs));
}

TEST(ToolsCommon, P_033_names_and_kinds_of_nodes) {
  torch::nn::Sequential model(torch::nn::Linear(3, 3));
  auto traced = symbolic_trace(*model);
  const Node& call = *traced->graph().find_nodes(Opcode::kCallModule).at(0);
  EXPECT_EQ(get_node_target(*traced, call), "torch.nn.Linear");
  EXPECT_TRUE(is_callable(call));
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%size = call_method[target=size](args = (%x, 0))
%relu = call_function[target=aten::relu](args = (%x,))
return (%size, %relu)
)");
  Graph& graph = gm->graph();
  EXPECT_FALSE(is_callable(*graph.find_node("x")));
  EXPECT_EQ(get_node_target(*gm, *graph.find_node("size")), "size");
  EXPECT_EQ(get_node_target(*gm, *graph.find_node("relu")), "aten::relu");
  EXPECT_FALSE(is_node_output_tensor(*graph.find_node("relu")));  // shape_prop has not run
  ShapeProp(*gm).propagate({Value(torch::ones({2}))});
  EXPECT_TRUE(is_node_output_tensor(*graph.find_node("relu")));
  EXPECT_FALSE(is_node_output_tensor(*graph.find_node("size")));
}

TEST(ToolsCommon, P_033_fusion_groups) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%size = call_method[target=size](args = (%x, 0))
%twice = call_function[target=operator.mul](args = (%size, 2))
%sin = call_function[target=aten::sin](args = (%x,))
%add = call_function[target=aten::add.Tensor](args = (%sin, %twice))
%size_1 = call_method[target=size](args = (%add, 0))
%reshape = call_function[target=aten::reshape](args = (%sin, [%size_1]))
return %reshape
)");
  ShapeProp(*gm).propagate({Value(torch::ones({2}))});
  const Graph& graph = gm->graph();
  std::vector<bool> accepted(graph.id_bound(), true);
  const FusionGroups all = find_fusions(graph, accepted);
  ASSERT_EQ(all.groups.size(), 2u);
  EXPECT_EQ(names_of(*all.find(*graph.find_node("twice"))), (Names{"size", "twice", "add"}));
  EXPECT_EQ(names_of(*all.find(*graph.find_node("reshape"))), (Names{"size_1", "reshape"}));
  EXPECT_EQ(all.find(*graph.find_node("sin")), nullptr);
  // A group that reaches outside is given up.
  accepted[graph.find_node("add")->id()] = false;
  const FusionGroups some = find_fusions(graph, accepted);
  ASSERT_EQ(some.groups.size(), 1u);
  EXPECT_FALSE(accepted[graph.find_node("size")->id()]);
  EXPECT_FALSE(accepted[graph.find_node("twice")->id()]);
  EXPECT_TRUE(accepted[graph.find_node("size_1")->id()]);
}

}  // namespace
}  // namespace fx
