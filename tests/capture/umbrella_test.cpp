#include <fx/fx.h>
// A second way to the same class.
#include <fx/graph/graph_module.h>
#include <fx/passes/named_arguments.h>

#include "tests/graph/graphs.h"

namespace {

namespace nn = fx::nn;

// torch.add, a Linear and a relu method in one net.
struct Mixed : torch::nn::Module {
  Mixed() : linear(register_module("linear", nn::Linear(3, 3))) {}
  auto forward(auto x) { return linear(add(x, x)).relu(); }
  nn::Linear linear;
};

TEST(Umbrella, S0_85_S4_75_one_header_one_namespace) {
  static_assert(std::is_class_v<fx::Graph> && std::is_class_v<fx::Node> &&
                std::is_class_v<fx::GraphModule> && std::is_class_v<fx::Interpreter> &&
                std::is_class_v<fx::Tracer> && std::is_class_v<fx::Proxy> &&
                std::is_class_v<fx::Transformer>);
  std::shared_ptr<fx::GraphModule> gm = fx::symbolic_trace([](auto x) { return x; });
  EXPECT_EQ(gm->graph().size(), 2u);
}

TEST(Umbrella, S1_04_one_net_gives_function_module_and_method_nodes) {
  auto gm = fx::symbolic_trace(std::make_shared<Mixed>());
  const fx::Graph& graph = gm->graph();
  EXPECT_EQ(graph.find_node("add")->op(), fx::Opcode::kCallFunction);
  EXPECT_EQ(graph.find_node("add")->target(), fx::Target::function("torch.add"));
  EXPECT_EQ(graph.find_node("linear")->op(), fx::Opcode::kCallModule);
  EXPECT_EQ(graph.find_node("relu")->op(), fx::Opcode::kCallMethod);
  EXPECT_EQ(graph.find_node("relu")->target(), "relu");
}

TEST(Umbrella, S1_51_names_follow_the_targets) {
  auto gm = fx::symbolic_trace([](auto x) { return ((x + 10) - 5) * 2 + x; });
  EXPECT_EQ(fx::names(gm->graph()), (fx::Names{"x", "add", "sub", "mul", "add_1", "output"}));
}

TEST(Umbrella, S0_02_trace_edit_run) {
  auto net = std::make_shared<Mixed>();
  auto gm = fx::symbolic_trace(net);
  for (fx::Node& node : gm->graph().nodes())
    if (node.calls("torch.add")) node.set_target("torch.mul");
  gm->graph().lint({.strict = true});
  gm->recompile();
  const at::Tensor x = torch::randn({2, 3});
  const at::Tensor expected =
      torch::relu(torch::nn::functional::linear(x * x, net->linear->weight, net->linear->bias));
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), expected));
  EXPECT_TRUE(torch::equal(fx::Interpreter(*gm).run({x}).toTensor(), expected));
}

TEST(Umbrella, S1_24_normalized_arguments_look_alike) {
  auto gm = fx::symbolic_trace([](auto x) {
    return clamp(x, -1, 1) + clamp(x, fx::kw("max", 1), fx::kw("min", -1)) +
           clamp(x, -1, fx::kw("max", 1));
  });
  const auto calls = gm->graph().find_calls("torch.clamp");
  ASSERT_EQ(calls.size(), 3u);
  for (const fx::Node* call : calls) {
    const auto keywords = fx::normalized_arguments(*call);
    ASSERT_TRUE(keywords.has_value()) << *call;
    EXPECT_EQ(fx::repr(*keywords), "{'self': x, 'min': -1, 'max': 1}");
  }
  EXPECT_FALSE(fx::normalized_arguments(*gm->graph().find_node("add")).has_value())
      << "operator.add has no schema";
}

TEST(Umbrella, S1_60_a_replaced_node_can_be_erased) {
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  fx::Graph& graph = gm->graph();
  fx::Node& old = *graph.find_node("add");
  auto at = graph.inserting_before(old);
  fx::Node& faster = graph.call_function("aten::add.Scalar", {old.arg(0), 1});
  old.replace_all_uses_with(faster);
  graph.erase_node(old);
  EXPECT_EQ(graph.find_node("add"), nullptr);
  graph.lint({.strict = true});
  gm->recompile();
  EXPECT_EQ((*gm)(torch::tensor(3.0)).toTensor().item<double>(), 8);
}

}  // namespace
