// GraphModules as modules: what they take over, when edits take effect, and the code of a graph.
#include <torch/torch.h>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;

at::Tensor scalar(float value) { return torch::tensor(value); }
double number(const Value& value) { return value.toTensor().item<double>(); }

std::vector<std::string> child_names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& child : module.named_children()) names.push_back(child.key());
  return names;
}

// (x + y) * 2
std::shared_ptr<GraphModule> sum_times_two() {
  return symbolic_trace([](auto x, auto y) { return (x + y) * 2; });
}

// (x + 5) * 2, kept as a module of its own.
struct AffineNet : torch::nn::Module {
  auto forward(auto x) { return (x + 5) * 2; }
};

struct ThreeLayersImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return linear2(relu(linear1(x))); }
  nn::Linear linear1 = register_module("linear1", nn::Linear(10, 5));
  nn::ReLU relu = register_module("relu", nn::ReLU());
  nn::Linear linear2 = register_module("linear2", nn::Linear(5, 2));
};

struct ConvNet : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return pool(relu(bn(conv(x)))); }
  nn::Conv2d conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)));
  nn::BatchNorm2d bn = register_module("bn", nn::BatchNorm2d(16));
  nn::ReLU relu = register_module("relu", nn::ReLU());
  nn::MaxPool2d pool = register_module("pool", nn::MaxPool2d(2));
};

TEST(GraphModules, S1_16_S1_17_recompile_applies_the_changed_graph) {
  auto gm = sum_times_two();
  gm->graph().find_node("mul")->update_arg(1, 3);
  gm->recompile();
  const at::Tensor x = torch::randn(1), y = torch::randn(1);
  EXPECT_TRUE(torch::equal((*gm)(x, y).toTensor(), (x + y) * 3));
  EXPECT_EQ(number((*gm)(torch::tensor({1.f}), torch::tensor({2.f}))), 9);
}

TEST(GraphModules, S1_27_an_edit_is_known_until_recompile) {
  auto gm = sum_times_two();
  EXPECT_FALSE(gm->needs_recompile());
  Node& mul = *gm->graph().find_node("mul");
  const auto edited = [&](auto&& edit) {
    edit();
    EXPECT_TRUE(gm->needs_recompile());
    gm->recompile();
    EXPECT_FALSE(gm->needs_recompile());
  };
  edited([&] { mul.update_arg(1, 3); });
  Node* made = nullptr;
  edited([&] {
    auto at = gm->graph().inserting_after(mul);
    made = &gm->graph().call_function("operator.neg", {mul});
  });
  edited([&] { gm->graph().erase_node(*made); });
  gm->graph().lint();
  (void)gm->graph().str();
  EXPECT_FALSE(gm->needs_recompile()) << "looking is no edit";
}

TEST(GraphModules, S1_45_the_traced_module_stays_as_it_was) {
  auto model = std::make_shared<AffineNet>();
  auto gm = symbolic_trace(model);
  gm->graph().find_node("mul")->update_arg(1, 10);
  gm->recompile();
  EXPECT_EQ(number((*gm)(scalar(3))), 80);
  EXPECT_EQ(model->forward(scalar(3)).item<double>(), 16);
}

TEST(GraphModules, S3_36_a_call_gives_a_tensor_not_a_proxy) {
  auto gm = sum_times_two();
  const at::Tensor x = torch::randn({2, 3}), y = torch::randn({2, 3});
  const Value result = (*gm)(x, y);
  ASSERT_TRUE(result.isTensor());
  EXPECT_TRUE(torch::equal(result.toTensor(), (x + y) * 2));
}

TEST(GraphModules, S3_40_gradients_flow_through_a_call) {
  auto net = std::make_shared<ThreeLayersImpl>();
  auto gm = symbolic_trace(net);
  const at::Tensor x = torch::randn({4, 10});
  const at::Tensor y = (*gm)(x).toTensor();
  ASSERT_TRUE(y.requires_grad());
  y.pow(2).sum().backward();
  const at::Tensor first = net->linear1->weight.grad().clone();
  const at::Tensor second = net->linear2->weight.grad().clone();
  net->zero_grad();
  net->forward(x).pow(2).sum().backward();
  EXPECT_TRUE(torch::allclose(first, net->linear1->weight.grad()));
  EXPECT_TRUE(torch::allclose(second, net->linear2->weight.grad()));
  EXPECT_GT(second.abs().sum().item<double>(), 0);
}

TEST(GraphModules, S3_51_an_empty_root_runs_unless_something_is_missing_in_it) {
  const torch::nn::Module empty;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("torch.add", {x, 2});
  graph->output(add);
  GraphModule gm(empty, graph);
  EXPECT_EQ(number(gm(scalar(1))), 3);

  for (const bool module : {false, true}) {
    auto broken = std::make_shared<Graph>();
    Node& input = broken->placeholder("x");
    Node& missing =
        module ? broken->call_module("block.linear", {input}) : broken->get_attr("block.weight");
    broken->output(missing);
    EXPECT_FX_ERROR(GraphModule(empty, broken), GraphError, kMissingAttribute,
                    module ? "block.linear" : "block.weight");
  }
}

TEST(GraphModules, M_007_S4_04_code_is_generated_from_the_graph_and_what_was_compiled_runs) {
  auto gm = sum_times_two();
  EXPECT_THAT(gm->python_code(), ::testing::HasSubstr("    def forward(self, x, y):\n"
                                                      "        add = x + y;  x = y = None\n"
                                                      "        mul = add * 2;  add = None\n"
                                                      "        return mul\n"));
  EXPECT_THAT(gm->code(), ::testing::HasSubstr("at::Tensor x, at::Tensor y) {\n"));
  EXPECT_THAT(gm->code(), ::testing::HasSubstr("  return mul;\n"));
  // Code is that of the graph as it stands, a call runs what was compiled.
  gm->graph().find_node("mul")->update_arg(1, 7);
  EXPECT_THAT(gm->python_code(), ::testing::HasSubstr("mul = add * 7;"));
  EXPECT_EQ(number((*gm)(scalar(1), scalar(1))), 4);
  gm->recompile();
  EXPECT_EQ(number((*gm)(scalar(1), scalar(1))), 14);
}

TEST(GraphModules, S4_21_children_can_be_asked_for_and_unused_ones_stay_behind) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return linear(x); }
    nn::Linear linear = register_module("linear", nn::Linear(10, 5));
    nn::Linear unused = register_module("unused", nn::Linear(5, 5));
  };
  Net net;
  Tracer tracer;
  GraphModule gm(net, trace(tracer, net));
  EXPECT_EQ(child_names(gm), (std::vector<std::string>{"linear"}));
  EXPECT_NE(gm.find_submodule("linear"), nullptr);
  EXPECT_EQ(gm.find_submodule("unused"), nullptr);
  EXPECT_EQ(gm.attr_kind("linear"), GraphOwner::AttrKind::kModule);
  EXPECT_EQ(gm.attr_kind("unused"), GraphOwner::AttrKind::kMissing);
}

TEST(GraphModules, S4_35_parts_are_traced_singly_and_joined_by_hand) {
  struct Outer : torch::nn::Module {
    Outer() {
      a = register_module("a", symbolic_trace([](auto x) { return x * 3 + 1; }));
      b = register_module("b", symbolic_trace([](auto x) { return -x; }));
    }
    // Which part runs depends on the values: this cannot be traced as a whole.
    at::Tensor forward(at::Tensor x) {
      return x.sum().item<double>() > 0 ? (*a)(x).toTensor() : (*b)(x).toTensor();
    }
    std::shared_ptr<GraphModule> a, b;
  };
  auto outer = std::make_shared<Outer>();
  EXPECT_THROW(symbolic_trace(outer), TraceError);
  const at::Tensor x = torch::tensor({1.f, 2.f});
  EXPECT_TRUE(torch::equal(outer->forward(x), x * 3 + 1));
  EXPECT_TRUE(torch::equal(outer->forward(-x), x));
  EXPECT_EQ(child_names(*outer), (std::vector<std::string>{"a", "b"}));

  struct Joined : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return (*part)(torch::relu(x)).toTensor(); }
    std::shared_ptr<GraphModule> part =
        register_module("part", symbolic_trace([](auto x) { return x * 3 + 1; }));
  };
  auto retraced = symbolic_trace(std::make_shared<Joined>());
  EXPECT_TRUE(retraced->graph().find_nodes(Opcode::kCallModule).empty()) << "the part is inlined";
  for (const char* name : {"aten::relu", "operator.mul", "operator.add"})
    EXPECT_EQ(retraced->graph().find_calls(name).size(), 1u) << name;
  EXPECT_TRUE(torch::equal((*retraced)(x).toTensor(), x * 3 + 1));
}

TEST(GraphModules, M_028_S4_64_is_a_module_like_any_other) {
  auto net = std::make_shared<ThreeLayersImpl>();
  auto gm = symbolic_trace(net);
  const at::Tensor x = torch::randn({1, 10});
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), net->forward(x)));

  torch::nn::ModuleList list(gm);
  EXPECT_EQ(list->size(), 1u);
  EXPECT_EQ(list->parameters().size(), 4u);
  EXPECT_TRUE(torch::equal(list->at<GraphModule>(0)(x).toTensor(), net->forward(x)));
  const std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> parts{{"part", gm}};
  torch::nn::ModuleDict dict(parts);
  EXPECT_TRUE(dict->contains("part"));

  torch::nn::Sequential sequential;
  sequential->push_back(torch::nn::AnyModule(gm));
  sequential->push_back(torch::nn::ReLU());
  EXPECT_TRUE(torch::equal(call_module(*sequential, {x}).toTensor(), net->forward(x).relu()));

  ASSERT_EQ(gm->parameters().size(), 4u);
  EXPECT_TRUE(gm->parameters()[0].is_same(net->linear1->weight));
  list->eval();
  EXPECT_FALSE(gm->is_training());
  EXPECT_FALSE(net->linear1->is_training()) << "submodules are shared";
  gm->train();
  EXPECT_TRUE(net->linear1->is_training());
  gm->to(torch::kDouble);
  EXPECT_EQ((*gm)(x.to(torch::kDouble)).toTensor().scalar_type(), torch::kDouble);
}

// Golden: torch.fx's code of this model.
TEST(GraphModules, S4_68_the_code_calls_the_submodules_and_frees_dead_locals) {
  auto gm = symbolic_trace(std::make_shared<ThreeLayersImpl>(), {.class_name = "Net"});
  EXPECT_THAT(gm->python_code(),
              ::testing::EndsWith("    def forward(self, x):\n"
                                  "        linear1 = self.linear1(x);  x = None\n"
                                  "        relu = self.relu(linear1);  linear1 = None\n"
                                  "        linear2 = self.linear2(relu);  relu = None\n"
                                  "        return linear2\n"));
}

TEST(GraphModules, S4_69_add_delete_change_and_recompile) {
  auto gm = symbolic_trace([](auto x) { return (x + 1) * 2; });
  Graph& graph = gm->graph();
  Node& add = *graph.find_node("add");
  Node& mul = *graph.find_node("mul");
  const auto result = [&] {
    graph.lint({.strict = true});
    gm->recompile();
    return number((*gm)(scalar(3)));
  };
  EXPECT_EQ(result(), 8);
  Node* neg = nullptr;
  {
    auto at = graph.inserting_after(add);
    neg = &graph.call_function("operator.neg", {add});
    mul.update_arg(0, *neg);
  }
  EXPECT_EQ(result(), -8);
  neg->replace_all_uses_with(add);
  graph.erase_node(*neg);
  EXPECT_EQ(result(), 8);
  mul.set_target("operator.sub");
  EXPECT_EQ(result(), 2);
  add.update_arg(1, 10);
  EXPECT_EQ(result(), 11);
}

TEST(GraphModules, S4_78_submodules_by_path_and_their_type) {
  auto gm = symbolic_trace(std::make_shared<ConvNet>());
  std::vector<std::string> batch_norms;
  for (const Node* node : gm->graph().find_nodes(Opcode::kCallModule)) {
    const auto module = gm->find_submodule(node->target().str());
    ASSERT_NE(module, nullptr) << node->target().str();
    if (module->as<torch::nn::BatchNorm2d>()) batch_norms.emplace_back(node->name());
  }
  EXPECT_EQ(batch_norms, (std::vector<std::string>{"bn"}));
  EXPECT_EQ(gm->find_submodule("bn.weight"), nullptr) << "a parameter is no module";
}

TEST(GraphModules, M_001_S4_82_a_graph_module_as_root_keeps_what_is_referenced) {
  auto traced = symbolic_trace(std::make_shared<ConvNet>());
  traced->eval();
  auto graph = std::make_shared<Graph>();
  ValueMap map;
  for (Node& node : traced->graph().nodes()) {
    if (node.target() == "bn") {
      map[&node] = map.at(&node.arg(0).node());
      continue;
    }
    map[&node] = graph->node_copy(node, [&](Node& old) { return map.at(&old); });
  }
  GraphModule gm(*traced, graph);
  EXPECT_EQ(child_names(gm), (std::vector<std::string>{"conv", "relu", "pool"}));
  EXPECT_TRUE(gm.find_tensor("conv.weight").is_same(traced->find_tensor("conv.weight")));
  EXPECT_FALSE(gm.is_training()) << "the flag of the root";
  const at::Tensor y = gm(torch::randn({1, 3, 32, 32})).toTensor();
  EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{1, 16, 16, 16}));
}

TEST(GraphModules, M_005_M_017_Q_011_S4_83_two_modules_share_one_graph_a_deep_copy_does_not) {
  auto traced = symbolic_trace([](auto x) { return (x + 1) * 2; });
  GraphModule second(*traced, traced->graph_ptr());
  auto copy = traced->deep_copy();
  EXPECT_EQ(&second.graph(), &traced->graph());
  EXPECT_EQ(traced->graph().owner(), &second) << "the last module made owns the graph";
  traced->graph().find_node("mul")->update_arg(1, 10);
  EXPECT_EQ(number((*traced)(scalar(3))), 8) << "compiled before the edit";
  EXPECT_EQ(number(second(scalar(3))), 8);
  EXPECT_EQ(number(Interpreter(*traced).run({scalar(3)})), 40);
  EXPECT_EQ(number(Interpreter(second).run({scalar(3)})), 40);
  second.recompile();
  EXPECT_EQ(number(second(scalar(3))), 40);
  EXPECT_EQ(number((*traced)(scalar(3))), 8);
  EXPECT_NE(&copy->graph(), &traced->graph());
  copy->recompile();
  EXPECT_EQ(number((*copy)(scalar(3))), 8);

  auto layers = symbolic_trace(std::make_shared<ThreeLayersImpl>());
  GraphModule sharing(*layers, layers->graph_ptr());
  EXPECT_TRUE(sharing.find_tensor("linear1.weight").is_same(layers->find_tensor("linear1.weight")));
  EXPECT_FALSE(layers->deep_copy()
                   ->find_tensor("linear1.weight")
                   .is_alias_of(layers->find_tensor("linear1.weight")));
}

TEST(GraphModules, S4_84_recompile_after_construction_is_harmless) {
  auto graph = std::make_shared<Graph>();
  graph->output(graph->call_function("operator.add", {graph->placeholder("x"), 1}));
  GraphModule gm(graph);
  EXPECT_FALSE(gm.needs_recompile());
  EXPECT_EQ(number(gm(scalar(3))), 4);
  gm.recompile();
  EXPECT_EQ(number(gm(scalar(3))), 4);
  graph->find_node("add")->update_arg(1, 5);
  EXPECT_EQ(number(gm(scalar(3))), 4);
  gm.recompile();
  EXPECT_EQ(number(gm(scalar(3))), 8);
}

}  // namespace
}  // namespace fx
