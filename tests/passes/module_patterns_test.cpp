// Chains of modules, patterns with names, comparing and lifting graphs, calls that cse leaves
// alone.
#include "fx/passes/module_patterns.h"

#include "fx/base/error.h"
#include "fx/passes/cse.h"
#include "fx/passes/name_node_map.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

TEST(ModulePatterns, X_006_chains_of_modules) {
  torch::nn::Sequential model(torch::nn::Linear(3, 4), torch::nn::ReLU(), torch::nn::Linear(4, 2));
  auto gm = symbolic_trace(*model);
  const auto calls = gm->graph().find_nodes(Opcode::kCallModule);
  using Pattern = std::vector<std::string_view>;
  const Pattern pattern{"torch.nn.Linear", "torch.nn.ReLU"};
  EXPECT_FALSE(matches_module_pattern(*gm, pattern, *calls[0]));
  EXPECT_TRUE(matches_module_pattern(*gm, pattern, *calls[1]));
  EXPECT_FALSE(matches_module_pattern(*gm, pattern, *calls[2]));
  EXPECT_TRUE(matches_module_pattern(*gm, {"torch.nn.Linear", "torch.nn.ReLU", "torch.nn.Linear"},
                                     *calls[2]));
  EXPECT_FALSE(matches_module_pattern(*gm, {"torch.nn.Tanh", "torch.nn.Linear"}, *calls[0]));
  EXPECT_FALSE(matches_module_pattern(*gm, {}, *calls[0]));
  EXPECT_FALSE(matches_module_pattern(*gm, {"torch.nn.Linear"}, gm->graph().output_node()));
}

TEST(ModulePatterns, X_006_replace_node_module) {
  torch::nn::Sequential model(torch::nn::Linear(3, 4), torch::nn::ReLU());
  auto gm = symbolic_trace(*model);
  Node& relu = *gm->graph().find_nodes(Opcode::kCallModule)[1];
  replace_node_module(*gm, relu, torch::nn::Sigmoid().ptr());
  gm->graph().lint({.strict = true});
  gm->recompile();
  const at::Tensor x = torch::randn({2, 3});
  const at::Tensor linear = model->ptr<torch::nn::LinearImpl>(0)->forward(x);
  EXPECT_VALUES_EQ(Value(linear.sigmoid()), gm->forward({Value(x)}));
  EXPECT_TRUE(torch::equal(model->forward(x), linear.relu()));  // the model is what it was
  EXPECT_THROW(replace_node_module(*gm, gm->graph().output_node(), torch::nn::ReLU().ptr()),
               GraphError);
}

TEST(ModulePatterns, P_038_lift_subgraph_as_module) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=deep.w]
%lin = call_module[target=lin](args = (%x,))
%out = call_function[target=torch.add](args = (%lin, %w))
return %out
)");
  gm->set_parameter("deep.w", torch::rand({3}));
  gm->set_submodule("lin", torch::nn::Linear(3, 3).ptr());
  gm->set_submodule("unused", torch::nn::ReLU().ptr());
  gm->recompile();
  auto lifted = lift_subgraph_as_module(*gm, gm->graph().clone(), "Lifted");
  EXPECT_EQ(lifted->class_name(), "Lifted");
  EXPECT_EQ(lifted->find_submodule("lin"), gm->find_submodule("lin"));
  EXPECT_TRUE(lifted->find_tensor("deep.w").is_same(gm->find_tensor("deep.w")));
  EXPECT_EQ(lifted->find_submodule("unused"), nullptr);
  const Values inputs{Value(torch::rand({2, 3}))};
  EXPECT_VALUES_EQ(gm->forward(inputs), lifted->forward(inputs));
}

TEST(ModulePatterns, P_038_compare_graphs) {
  const char* one = R"(fx 1
%x = placeholder[target=x]
%a = call_function[target=torch.relu](args = (%x,))
%b = call_function[target=torch.neg](args = (%x,))
%c = call_function[target=torch.add](args = (%a, %b))
return %c
)";
  const char* other = R"(fx 1
%y = placeholder[target=y]
%n = call_function[target=torch.neg](args = (%y,))
%r = call_function[target=torch.relu](args = (%y,))
%s = call_function[target=torch.add](args = (%r, %n))
return %s
)";
  auto compare = [](std::string_view left, std::string_view right) {
    return compare_graphs(*parse_text(left), *parse_text(right));
  };
  EXPECT_TRUE(compare(one, one));
  EXPECT_TRUE(compare(one, other));
  std::string swapped(other);
  swapped.replace(swapped.find("(%r, %n)"), 8, "(%n, %r)");
  EXPECT_FALSE(compare(one, swapped));
  std::string longer(other);
  longer.replace(longer.find("return %s"), 9,
                 "%t = call_function[target=torch.exp](args = (%s,))\nreturn %t");
  EXPECT_FALSE(compare(one, longer));
  EXPECT_FALSE(compare(longer, one));
}

TEST(NameNodeMap, P_041_R_080_nodes_by_their_names) {
  auto pattern = parse_module(R"(
%x = placeholder[target=x]
%w = placeholder[target=w]
%conv = call_function[target=torch.conv2d](args = (%x, %w))
%relu = call_function[target=torch.relu](args = (%conv,))
return (%relu, {'conv': %conv, 'the_relu': %relu})
)");
  auto gm = parse_module(R"(
%a = placeholder[target=a]
%k = placeholder[target=k]
%first = call_function[target=torch.conv2d](args = (%a, %k))
%second = call_function[target=torch.relu](args = (%first,))
%third = call_function[target=operator.mul](args = (%second, 2))
return %third
)");
  const SubgraphMatcherWithNameNodeMap matcher(pattern->graph());
  const auto matches = matcher.match(gm->graph());
  ASSERT_EQ(matches.size(), 1u);
  const Graph& graph = gm->graph();
  EXPECT_EQ(matches[0].name_node_map,
            (std::map<std::string, Node*>{{"conv", graph.find_node("first")},
                                          {"the_relu", graph.find_node("second")}}));
  EXPECT_EQ(matches[0].match.returning_nodes, std::vector<Node*>{graph.find_node("second")});
  // The pattern that was given is what it was.
  EXPECT_EQ(pattern->graph().output_node().arg(0).items().size(), 2u);
  auto refuses = [](const char* result) {
    auto bad = parse_text(
        "fx 1\n%x = placeholder[target=x]\n"
        "%r = call_function[target=torch.relu](args = (%x,))\nreturn " +
        std::string(result) + "\n");
    EXPECT_FX_ERROR(SubgraphMatcherWithNameNodeMap{*bad}, PassError, kBadPattern,
                    "a dict from names to nodes");
  };
  refuses("%r");
  refuses("(%r, %x)");
  refuses("({'r': %r},)");
  refuses("(%r, {'r': 1})");
}

// As a module: attributes of the pattern are looked up in its owner.
TEST(NameNodeMap, P_041_R_080_patterns_with_modules) {
  torch::nn::Sequential model(torch::nn::Linear(3, 3));
  auto gm = symbolic_trace(*model);
  auto pattern = symbolic_trace(*model);
  Node& output = pattern->graph().output_node();
  const Argument result = output.arg(0);
  output.set_args({Argument::tuple({result, Argument::dict({{"linear", result}})})});
  const SubgraphMatcherWithNameNodeMap matcher(pattern->graph(),
                                               {.modules = MatchOptions::Modules::kByType});
  const auto matches = matcher.match(gm->graph());
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].name_node_map.at("linear")->op(), Opcode::kCallModule);
}

TEST(Cse, P_037_banned_calls) {
  auto make = [] {
    return parse_module(R"(
%x = placeholder[target=x]
%a = call_function[target=torch.add](args = (%x, 1))
%b = call_function[target=torch.add](args = (%x, 1))
%c = call_function[target=torch.sin](args = (%x,))
%d = call_function[target=torch.sin](args = (%x,))
%out = call_function[target=torch.cat](args = ([%a, %b, %c, %d],))
return %out
)");
  };
  const auto all = make();
  EXPECT_EQ(cse(*all).rewrites, 2);
  const auto some = make();
  const CseOptions options{.banned = [](const Node& node) { return node.calls("torch.add"); }};
  EXPECT_EQ(cse(*some, options).rewrites, 1);
  EXPECT_EQ(count_calls(some->graph(), "torch.add"), 2u);
  EXPECT_EQ(count_calls(some->graph(), "torch.sin"), 1u);
  EXPECT_FALSE(cse(*some, options).changed);
}

}  // namespace
}  // namespace fx
