#include "fx/passes/const_subgraphs.h"

#include "fx/base/error.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/inline_module.h"
#include "fx/passes/shape_prop.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using Names = std::vector<std::string>;

Names names_of(const Graph& graph) {
  Names out;
  for (const Node& node : graph.nodes()) out.emplace_back(node.name());
  return out;
}

// A module of the graph with random parameters of these shapes, in eval mode.
std::shared_ptr<GraphModule> module_of(
    const std::string& text, const std::vector<std::pair<std::string, at::IntArrayRef>>& shapes) {
  auto gm = parse_module(text);
  for (const auto& [path, shape] : shapes)
    gm->set_parameter(path, torch::rand(shape).set_requires_grad(true));
  gm->eval();
  return gm;
}

// Splits, runs twice, and compares with the original.
std::shared_ptr<FoldedGraphModule> folded(const GraphModule& gm, const Values& inputs,
                                          const SplitConstOptions& options = {}) {
  auto result = split_const_subgraphs(gm, options);
  const Value expected = std::const_pointer_cast<GraphModule>(gm.deep_copy())->forward(inputs);
  EXPECT_VALUES_EQ(expected, result->forward(inputs));
  EXPECT_VALUES_EQ(expected, result->forward(inputs));
  result->graph().lint();
  for (const Node& node : result->graph().nodes())
    EXPECT_NE(node.op(), Opcode::kCallModule) << node.name();  // nothing is a submodule of its own
  EXPECT_EQ(result->has_folding_been_run(), result->const_subgraph_module() != nullptr);
  return result;
}

const std::string kOneAttribute = R"(
%x = placeholder[target=x]
%y = placeholder[target=y]
%attr_1 = get_attr[target=attr_1]
%a = call_function[target=operator.add](args = (%attr_1, %attr_1))
%sub = call_function[target=operator.sub](args = (%x, %a))
%mul = call_function[target=operator.mul](args = (%sub, %y))
%attr_2 = get_attr[target=attr_2]
%out = call_function[target=operator.add](args = (%mul, %attr_2))
return %out
)";

TEST(ConstSubgraphs, X_001_R_060_one_attribute) {
  const Values inputs{Value(torch::rand({2, 3})), Value(torch::rand({3}))};
  auto gm = module_of(kOneAttribute, {{"attr_1", {2, 3}}, {"attr_2", {3}}});
  const auto result = folded(*gm, inputs);
  EXPECT_EQ(result->folded_attrs(), Names{"_FX_CONST_FOLDED_ATTRS_0"});
  EXPECT_EQ(names_of(result->graph()),
            (Names{"x", "y", "a", "sub", "mul", "attr_2", "out", "output"}));
  EXPECT_EQ(result->graph().find_node("a")->op(), Opcode::kGetAttr);
  EXPECT_EQ(names_of(result->const_subgraph_module()->graph()), (Names{"attr_1", "a", "output"}));
  EXPECT_FALSE(result->find_tensor("attr_1").defined());  // what only the constant part reads
  // Attributes that have the names already.
  auto taken = module_of(kOneAttribute, {{"attr_1", {2, 3}}, {"attr_2", {3}}});
  taken->set_parameter("_FX_CONST_FOLDED_ATTRS_0", torch::zeros({1}));
  EXPECT_EQ(folded(*taken, inputs)->folded_attrs(), Names{"_FX_CONST_FOLDED_ATTRS_1"});
}

TEST(ConstSubgraphs, X_001_when_folding_runs) {
  const Values inputs{Value(torch::rand({2, 3})), Value(torch::rand({3}))};
  auto gm = module_of(kOneAttribute, {{"attr_1", {2, 3}}, {"attr_2", {3}}});
  auto result = split_const_subgraphs(*gm);
  EXPECT_FALSE(result->has_folding_been_run());
  // Not at once: through the base class the attribute is missing, and weights may still change.
  EXPECT_THROW(static_cast<GraphModule&>(*result).forward(inputs), RunError);
  {
    const torch::NoGradGuard no_grad;
    gm->find_tensor("attr_1").fill_(2);
  }
  result->run_folding();
  EXPECT_TRUE(
      torch::equal(result->find_tensor("_FX_CONST_FOLDED_ATTRS_0"), torch::full({2, 3}, 4.0)));
  try {
    result->run_folding();
    FAIL();
  } catch (const PassError& error) {
    EXPECT_EQ(error.text(), "Folding has already been run");
  }
  EXPECT_VALUES_EQ(gm->forward(inputs), (*result)(inputs[0], inputs[1]));
  // Keywords work as well.
  EXPECT_VALUES_EQ(gm->forward(inputs), result->forward({inputs[0]}, {{Symbol("y"), inputs[1]}}));
}

TEST(ConstSubgraphs, R_061_nothing_to_fold) {
  auto reordered = parse_module(R"(
%x = placeholder[target=x]
%mul = call_function[target=operator.mul](args = (%x, 2))
%y = placeholder[target=y]
%add = call_function[target=operator.add](args = (%mul, %y))
return %add
)");
  const auto result = folded(*reordered, {Value(torch::rand({2})), Value(torch::rand({2}))});
  EXPECT_EQ(result->const_subgraph_module(), nullptr);
  EXPECT_TRUE(result->graph().same_structure(reordered->graph()));
  auto noop = module_of(R"(
%x = placeholder[target=x]
%attr = get_attr[target=attr]
%sub = call_function[target=operator.sub](args = (%x, %attr))
return %sub
)",
                        {{"attr", {2}}});
  EXPECT_EQ(folded(*noop, {Value(torch::rand({2}))})->const_subgraph_module(), nullptr);
}

TEST(ConstSubgraphs, R_062_several_attributes_and_paths) {
  auto several = module_of(R"(
%x = placeholder[target=x]
%y = placeholder[target=y]
%attr1 = get_attr[target=attr1]
%permute = call_method[target=permute](args = (%attr1, 1, 0))
%a = call_function[target=operator.add](args = (%attr1, %permute))
%x_1 = call_function[target=operator.sub](args = (%x, %a))
%attr2 = get_attr[target=deep.inside.attr2]
%amax = call_function[target=torch.sum](args = (%attr2,), kwargs = {dim: 1})
%y_1 = call_function[target=operator.add](args = (%y, %amax))
%add = call_function[target=operator.add](args = (%x_1, %y_1))
%out = call_function[target=torch.sigmoid](args = (%add,))
return %out
)",
                           {{"attr1", {4, 4}}, {"deep.inside.attr2", {4, 4}}});
  const auto result = folded(*several, {Value(torch::rand({4, 4})), Value(torch::rand({4}))});
  EXPECT_EQ(result->folded_attrs(),
            (Names{"_FX_CONST_FOLDED_ATTRS_0", "_FX_CONST_FOLDED_ATTRS_1"}));
  EXPECT_EQ(names_of(result->graph()),
            (Names{"x", "y", "a", "x_1", "amax", "y_1", "add", "out", "output"}));
}

TEST(ConstSubgraphs, R_063_R_067_meta) {
  auto gm = module_of(R"(
%x = placeholder[target=x]
%attr = get_attr[target=attr]
%a = call_function[target=operator.add](args = (%attr, %attr))
%sub = call_function[target=operator.sub](args = (%x, %a))
return %sub
)",
                      {{"attr", {2, 3}}});
  ShapeProp(*gm).propagate({Value(torch::rand({2, 3}))});
  int index = 0;
  for (Node& node : gm->graph().nodes()) node.meta().set("meta_idx", index++);
  auto result = split_const_subgraphs(*gm);
  std::vector<int> kept;
  for (const Node& node : result->graph().nodes())
    kept.push_back(*node.meta().get<int>("meta_idx"));
  EXPECT_EQ(kept, (std::vector<int>{0, 2, 3, 4}));  // without the attribute that was folded away
  result->run_folding();
  const at::Tensor attribute = result->find_tensor(result->folded_attrs()[0]);
  const TensorMeta* meta = tensor_meta(*result->graph().find_node("a"));
  ASSERT_TRUE(meta);
  EXPECT_EQ(*meta, TensorMeta(attribute));
  EXPECT_TRUE(attribute.requires_grad());
  EXPECT_TRUE(attribute.is_leaf());
}

TEST(ConstSubgraphs, R_064_R_065_outputs_and_unused_inputs) {
  auto gm = module_of(R"(
%x = placeholder[target=x]
%unused = placeholder[target=unused]
%attr = get_attr[target=attr]
%a = call_function[target=operator.add](args = (%attr, 1))
%sub = call_function[target=operator.sub](args = (%x, %a))
%mul = call_function[target=operator.mul](args = (%x, %a))
%relu = call_function[target=torch.relu](args = (%x,))
return {'first': %sub, 'rest': (%mul, %relu)}
)",
                      {{"attr", {3}}});
  const auto result = folded(*gm, {Value(torch::rand({3})), Value(torch::rand({1}))});
  EXPECT_EQ(result->graph().placeholders().size(), 2u);
  EXPECT_EQ(result->graph().output_node().arg(0).kind(), Argument::Kind::kDict);
}

TEST(ConstSubgraphs, X_001_skipped_and_impure_nodes) {
  auto gm = module_of(R"(
%x = placeholder[target=x]
%attr = get_attr[target=attr]
%quant = call_function[target=torch.mul](args = (%attr, 2))
%dequant = call_function[target=torch.add](args = (%quant, 1))
%noise = call_function[target=torch.bernoulli](args = (%attr,))
%a = call_function[target=operator.sub](args = (%dequant, %noise))
%sub = call_function[target=operator.sub](args = (%x, %a))
return %sub
)",
                      {{"attr", {3}}});
  auto skipping = split_const_subgraphs(
      *gm, {.skip_folding_node_fn = [](const Node& node) { return node.calls("torch.mul"); }});
  EXPECT_EQ(skipping->const_subgraph_module(), nullptr);
  auto result = split_const_subgraphs(*gm);
  EXPECT_EQ(names_of(result->const_subgraph_module()->graph()),
            (Names{"attr", "quant", "dequant", "output"}));
  // Random numbers are drawn in each run.
  EXPECT_EQ(names_of(result->graph()),
            (Names{"x", "attr", "dequant", "noise", "a", "sub", "output"}));
}

TEST(ConstSubgraphs, R_067_R_069_modules_and_partial_graphs) {
  torch::nn::Sequential model(torch::nn::Linear(3, 3));
  auto traced = symbolic_trace(*model);
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& w = graph->create_node(Opcode::kGetAttr, Target::string("w"));
  Node& lin = graph->create_node(Opcode::kCallModule, Target::string("0"), {w});
  graph->output(graph->call_function("torch.add", {x, lin}));
  auto gm = std::make_shared<GraphModule>(graph);
  gm->set_parameter("w", torch::rand({2, 3}));
  gm->set_submodule("0", traced->find_submodule("0"));
  gm->eval();
  const auto result = folded(*gm, {Value(torch::rand({2, 3}))});
  EXPECT_EQ(names_of(result->const_subgraph_module()->graph()), (Names{"w", "_0", "output"}));
}

// What could change between runs is no constant.
TEST(ConstSubgraphs, written_returned_and_trainable_values) {
  auto written = module_of(R"(
%x = placeholder[target=x]
%attr = get_attr[target=attr]
%a = call_function[target=aten::mul.Tensor](args = (%attr, 2))
%sub = call_function[target=aten::sub.Tensor](args = (%x, %a))
%count = call_function[target=aten::add_.Tensor](args = (%attr, 1))
return %sub
)",
                           {});
  written->set_buffer("attr", torch::rand({3}));
  EXPECT_EQ(split_const_subgraphs(*written)->const_subgraph_module(), nullptr);
  const std::string returned = R"(
%attr = get_attr[target=attr]
%a = call_function[target=aten::mul.Tensor](args = (%attr, 2))
return %a
)";
  auto gm = module_of(returned, {{"attr", {3}}});
  EXPECT_EQ(split_const_subgraphs(*gm)->const_subgraph_module(), nullptr);
  EXPECT_NE(split_const_subgraphs(*gm, {.fold_outputs = true})->const_subgraph_module(), nullptr);
  auto training = module_of(kOneAttribute, {{"attr_1", {3}}, {"attr_2", {3}}});
  training->train();
  EXPECT_EQ(split_const_subgraphs(*training)->const_subgraph_module(), nullptr);
  auto forced = split_const_subgraphs(*training, {.fold_trainable = true});
  EXPECT_NE(forced->const_subgraph_module(), nullptr);
  EXPECT_TRUE(forced->is_training());
}

TEST(ConstSubgraphs, results_that_are_no_tensors) {
  auto gm = module_of(R"(
%x = placeholder[target=x]
%attr = get_attr[target=attr]
%size = call_method[target=size](args = (%attr, 0))
%chunk = call_function[target=torch.chunk](args = (%attr, 2))
%getitem = call_function[target=operator.getitem](args = (%chunk, 1))
%mul = call_function[target=operator.mul](args = (%x, %size))
%cat = call_function[target=torch.cat](args = ([%mul, %getitem],))
return %cat
)",
                      {{"attr", {4}}});
  const auto result = folded(*gm, {Value(torch::rand({2}))});
  EXPECT_EQ(result->graph().find_node("mul")->arg(1), Argument(4));
}

TEST(InlineModule, X_002_nodes_attributes_and_items) {
  auto inner_graph = parse_text(R"(fx 1
%a = placeholder[target=a]
%b = placeholder[target=b](default=2)
%w = get_attr[target=w]
%add = call_function[target=operator.add](args = (%a, %w))
%mul = call_function[target=operator.mul](args = (%add, %b))
return (%add, %mul)
)");
  auto inner = std::make_shared<GraphModule>(inner_graph, "Inner");
  inner->set_parameter("w", torch::rand({3}));
  inner->recompile();
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& call = graph->create_node(Opcode::kCallModule, Target::string("part"), {x});
  Node& first = graph->call_function("operator.getitem", {call, 0});
  Node& last = graph->call_function("operator.getitem", {call, -1});
  graph->output(Argument::tuple({last, first, call}));
  auto gm = std::make_shared<GraphModule>(graph);
  gm->set_submodule("part", inner);
  gm->recompile();
  const Values inputs{Value(torch::rand({3}))};
  const Value expected = gm->forward(inputs);
  const ValueMap map = inline_module(*gm, call);
  EXPECT_EQ(names_of(gm->graph()), (Names{"x", "w", "add", "mul", "output"}));
  EXPECT_EQ(map.at(inner_graph->find_node("mul")).node().name(), "mul");
  EXPECT_EQ(gm->graph().find_node("w")->target(), "part.w");
  gm->graph().lint({.strict = true});
  gm->recompile();
  EXPECT_VALUES_EQ(expected, gm->forward(inputs));
  // What is no GraphModule cannot be inlined.
  EXPECT_THROW(inline_module(*gm, *gm->graph().find_node("mul")), GraphError);
}

TEST(InlineModule, X_002_unique_names) {
  GraphModule gm;
  EXPECT_EQ(get_unique_attr_name_in_module(gm, "a"), "a");
  EXPECT_EQ(get_unique_attr_name_in_module(gm, "a.b-c"), "a_b_c");
  EXPECT_EQ(get_unique_attr_name_in_module(gm, "1a"), "_1a");
  gm.set_parameter("a", torch::zeros({1}));
  EXPECT_EQ(get_unique_attr_name_in_module(gm, "a"), "a_1");
  gm.set_buffer("a_1", torch::zeros({1}));
  EXPECT_EQ(get_unique_attr_name_in_module(gm, "a"), "a_2");
  EXPECT_EQ(get_unique_attr_name_in_module(gm, "a_1"), "a_2");
}

}  // namespace
}  // namespace fx
