#include "fx/plan/lifetimes.h"

#include <torch/torch.h>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_kernel.h"
#include "fx/graph/module_types.h"
#include "fx/ops/call.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// "a" for private results: "mul until neg".
std::string private_results(const GraphModule& module) {
  const Plan plan(module.graph());
  const std::vector<ResultLifetime> lifetimes = result_lifetimes(plan, module.graph());
  std::string out;
  for (std::size_t i = 0; i < lifetimes.size(); ++i)
    if (lifetimes[i].is_private)
      out += std::string(plan.steps()[i].node->name()) + " until " +
             std::string(plan.steps()[lifetimes[i].last].node->name()) + "\n";
  return out;
}

std::string private_results(std::shared_ptr<Graph> graph) {
  return private_results(GraphModule(std::move(graph)));
}

TEST(ResultLifetimes, end_at_the_last_read_of_the_value_and_its_views) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::exp", {x});
  Node& view = graph->call_function("aten::view", {a, Argument::list({-1})});
  Node& b = graph->call_function("aten::neg", {a});
  Node& c = graph->call_function("aten::abs", {view});
  graph->output(graph->call_function("aten::add.Tensor", {b, c}));
  EXPECT_EQ(private_results(graph),
            "exp until abs_1\nview until abs_1\nneg until add_tensor\nabs_1 until add_tensor\n");
}

TEST(ResultLifetimes, what_is_returned_is_not_private) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::exp", {x});
  Node& b = graph->call_function("aten::neg", {a});
  Node& view = graph->call_function("aten::t", {b});
  Node& in_list = graph->call_function("aten::sin", {a});
  graph->output(Argument::tuple({view, Argument::list({in_list})}));
  EXPECT_EQ(private_results(graph), "exp until sin\n");
}

TEST(ResultLifetimes, what_is_written_is_not_private) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::exp", {x});
  Node& b = graph->call_function("aten::neg", {a});
  graph->call_function("aten::add_.Tensor", {b, a});
  graph->output(graph->call_function("aten::sin", {b}));
  EXPECT_EQ(private_results(graph), "exp until add__tensor\n");
}

TEST(ResultLifetimes, views_of_inputs_and_attributes_are_not_private) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& t = graph->call_function("aten::t", {x});
  Node& w = graph->get_attr("w");
  Node& u = graph->call_function("aten::t", {w});
  graph->output(graph->call_function("aten::add.Tensor", {t, u}));
  GraphModule module;
  module.set_buffer("w", torch::ones({2, 2}));
  module.set_graph(graph);
  EXPECT_EQ(private_results(module), "");
}

TEST(ResultLifetimes, code_that_may_keep_its_arguments) {
  register_wrapped_function("lifetimes_test_function",
                            [](Values args, KwValues) -> Value { return args[0].toTensor() + 1; });
  struct Own : torch::nn::Module {};
  struct Kernel : KernelModule {
    bool call_into(std::span<const Value>, std::span<const at::Tensor>) override { return false; }
  };
  ModuleType type;
  type.name = "test.Kernel";
  type.is_impure = [](const torch::nn::Module&, bool) { return false; };
  type.call = [](torch::nn::Module&, Values args, KwValues) -> Value { return args[0]; };
  register_module_type(typeid(Kernel), type);
  type.name = "test.Own";
  register_module_type(typeid(Own), type);
  const auto through = [](const std::function<Node&(Graph&, Node&)>& call) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& a = graph->call_function("aten::exp", {x});
    graph->output(graph->call_function("aten::sum", {call(*graph, a)}));
    GraphModule module;
    module.set_submodule("own", std::make_shared<Own>());
    module.set_submodule("kernel", std::make_shared<Kernel>());
    module.set_submodule("gelu", torch::nn::GELU().ptr());
    module.set_graph(graph);
    return private_results(module);
  };
  EXPECT_EQ(through([](Graph& g, Node& a) -> Node& {
              return g.call_function("lifetimes_test_function", {a});
            }),
            "");
  EXPECT_EQ(through([](Graph& g, Node& a) -> Node& { return g.call_module("own", {a}); }), "");
  EXPECT_EQ(through([](Graph& g, Node& a) -> Node& { return g.call_module("kernel", {a}); }),
            "exp until kernel\nkernel until sum_1\n");
  EXPECT_EQ(through([](Graph& g, Node& a) -> Node& { return g.call_module("gelu", {a}); }),
            "exp until gelu\ngelu until sum_1\n");
  EXPECT_EQ(through([](Graph& g, Node& a) -> Node& { return g.call_method("double", {a}); }),
            "exp until sum_1\ndouble until sum_1\n");
  EXPECT_EQ(through([](Graph& g, Node& a) -> Node& {
              return g.call_method("own_method", {g.placeholder("y"), a});
            }),
            "");
}

}  // namespace
}  // namespace fx
