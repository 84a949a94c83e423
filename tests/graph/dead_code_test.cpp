// torch.fx's own tests of dead code elimination (test_dce_pass.py), on graphs that run.
#include <torch/torch.h>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_call.h"
#include "fx/ops/effects.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// x -> ..., output; `build` gives what the output returns.
struct Program {
  explicit Program(const std::function<Argument(Graph&, Node&)>& build,
                   const torch::nn::Module& root = torch::nn::Module()) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    graph->output(build(*graph, x));
    module = std::make_shared<GraphModule>(root, graph);
  }

  // Removes dead code; gives what is left, after a check that it computes what it did.
  Names swept(bool changes, const std::function<bool(const Node&)>& is_impure = {}) {
    const at::Tensor x = torch::tensor({1.f, -2.f});
    const at::Tensor before = module->forward({x.clone()}).toTensor();
    EXPECT_EQ(module->graph().eliminate_dead_code(is_impure), changes);
    module->graph().lint({.strict = true});
    module->recompile();
    EXPECT_TRUE(torch::equal(module->forward({x.clone()}).toTensor(), before));
    return names(module->graph());
  }

  std::shared_ptr<GraphModule> module;
};

struct OneWeight : torch::nn::Module {
  OneWeight() {
    register_parameter("w", torch::tensor({1.f}));
    register_module("relu", torch::nn::ReLU());
  }
};

TEST(DeadCodeOfTorchFx, R_049_a_node_a_chain_a_get_attr) {
  EXPECT_EQ(Program(
                [](Graph& g, Node& x) -> Argument {
                  g.call_function("operator.add", {x, 1});
                  return g.call_function("operator.add", {x, g.get_attr("w")}, {}, "kept");
                },
                OneWeight())
                .swept(true),
            (Names{"x", "w", "kept", "output"}));
  EXPECT_EQ(Program(
                [](Graph& g, Node& x) -> Argument {
                  Node& a = g.call_function("operator.add", {x, 1});
                  g.call_function("operator.mul", {a, g.get_attr("w")});
                  return g.call_function("operator.add", {x, 2}, {}, "kept");
                },
                OneWeight())
                .swept(true),
            (Names{"x", "kept", "output"}));
  EXPECT_EQ(Program([](Graph& g, Node& x) -> Argument {
              Node& a = g.call_function("operator.add", {x, 1});
              Node& shape = g.call_function("builtins.getattr", {a, "shape"});
              g.call_function("operator.getitem", {shape, 0});
              return g.call_function("operator.add", {x, 2}, {}, "kept");
            }).swept(true),
            (Names{"x", "kept", "output"}));
  EXPECT_EQ(Program([](Graph&, Node& x) -> Argument { return x; }).swept(false),
            (Names{"x", "output"}));
}

TEST(DeadCodeOfTorchFx, R_050_placeholders_stay_what_reads_them_goes) {
  for (const bool with_user : {false, true}) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& y = graph->placeholder("y");
    if (with_user) graph->call_function("operator.add", {y, 2});
    graph->output(graph->call_function("operator.add", {x, 1}));
    EXPECT_EQ(graph->eliminate_dead_code(), with_user);
    EXPECT_EQ(graph->placeholders(), (std::vector<Node*>{&x, &y}));
    EXPECT_EQ(graph->size(), 4u);
  }
}

struct ReluWithEffectImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x) {
    ++calls;
    return torch::relu(x);
  }
  static inline int calls = 0;
};

TEST(DeadCodeOfTorchFx, R_051_a_module_with_effects_stays_a_pure_one_goes) {
  register_module_type<ReluWithEffectImpl>("ReluWithEffect");
  struct Net : torch::nn::Module {
    Net() {
      register_module("effect", std::make_shared<ReluWithEffectImpl>());
      register_module("relu", torch::nn::ReLU());
    }
  };
  EXPECT_EQ(Program(
                [](Graph& g, Node& x) -> Argument {
                  g.call_module("effect", {x});
                  g.call_module("relu", {x});
                  return g.call_function("operator.add", {x, 2});
                },
                Net())
                .swept(true),
            (Names{"x", "effect", "add", "output"}));
  EXPECT_EQ(ReluWithEffectImpl::calls, 2) << "before and after";
}

TEST(DeadCodeOfTorchFx, R_052_assertions_and_setitem_stay) {
  EXPECT_EQ(Program([](Graph& g, Node& x) -> Argument {
              Node& sum = g.call_method("sum", {x});
              Node& less = g.call_function("operator.lt", {sum, 100});
              g.call_function("torch._assert", {less, "too large"});
              return g.call_function("operator.add", {x, 2});
            }).swept(false),
            (Names{"x", "sum_1", "lt", "_assert", "add", "output"}));
  EXPECT_EQ(Program([](Graph& g, Node& x) -> Argument {
              g.call_function("operator.setitem", {x, 0, 5});
              return x;
            }).swept(false),
            (Names{"x", "setitem", "output"}));
}

TEST(DeadCodeOfTorchFx, R_053_R_055_operators_that_write_stay) {
  EXPECT_EQ(Program([](Graph& g, Node& x) -> Argument {
              g.call_function("aten::add_.Tensor", {x, x});
              return x;
            }).swept(false),
            (Names{"x", "add__tensor", "output"}));
  EXPECT_EQ(Program([](Graph& g, Node& x) -> Argument {
              g.call_function("aten::add.out", {x, x}, {{"out", x}});
              return x;
            }).swept(false),
            (Names{"x", "add_out", "output"}));
}

TEST(DeadCodeOfTorchFx, R_054_random_numbers_are_drawn_all_the_same) {
  for (const char* name :
       {"aten::rand", "aten::randn", "torch.rand", "torch.randn", "torch.bernoulli"}) {
    const bool of_x = std::string_view(name) == "torch.bernoulli";
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    graph->call_function(name, {of_x ? Argument(x) : Argument::list({2})});
    graph->output(x);
    EXPECT_FALSE(graph->eliminate_dead_code()) << name;
    EXPECT_TRUE(graph->eliminate_dead_code([](const Node& node) {
      return node.is_impure(/*impure_random=*/false);
    })) << name;
  }
}

TEST(DeadCodeOfTorchFx, R_056_a_predicate_decides_instead) {
  auto build = [](Graph& g, Node& x) -> Argument {
    g.call_function("aten::add", {x, x});
    g.call_function("aten::mul", {x, x});
    return x;
  };
  EXPECT_EQ(Program(build).swept(true), (Names{"x", "output"}));
  EXPECT_EQ(Program(build).swept(true, [](const Node& node) { return node.calls("aten::add"); }),
            (Names{"x", "add", "output"}));
}

TEST(DeadCodeOfTorchFx, G_071_R_057_collectives_stay) {
  for (const char* suffix : {"", ".default"}) {
    Graph graph;
    Node& x = graph.placeholder("x");
    Node& reduce = graph.call_function("_c10d_functional::all_reduce" + std::string(suffix),
                                       {x, "sum", "group"});
    graph.call_function("_c10d_functional::wait_tensor" + std::string(suffix), {reduce});
    graph.output(x);
    EXPECT_FALSE(graph.eliminate_dead_code()) << suffix;
    EXPECT_EQ(graph.size(), 4u);
  }
}

TEST(DeadCodeOfTorchFx, F_170_profiler_ranges_stay) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& enter = graph.call_function("profiler::_record_function_enter_new", {"A", Argument()});
  Node& relu = graph.call_function("torch.relu", {x});
  graph.call_function("profiler::_record_function_exit._RecordFunction", {enter});
  graph.output(relu);
  EXPECT_FALSE(graph.eliminate_dead_code());
  EXPECT_EQ(graph.size(), 5u);
}

TEST(DeadCodeOfTorchFx, F_206_a_function_marked_with_an_effect_stays) {
  auto build = [] {
    auto graph = std::make_unique<Graph>();
    Node& x = graph->placeholder("x");
    graph->call_function("test.dce_effect", {x});
    graph->output(x);
    return graph;
  };
  auto before = build();
  EXPECT_TRUE(before->eliminate_dead_code());
  has_side_effect(*Function::get("test.dce_effect"));
  auto after = build();
  EXPECT_FALSE(after->eliminate_dead_code());
  EXPECT_EQ(after->size(), 3u);
}

// Bodies of higher-order operators: GraphModules that a get_attr node reads.
TEST(DeadCodeOfTorchFx, G_058_graphs_that_get_attr_reads_are_swept_too) {
  auto inner = std::make_shared<Graph>();
  Node& a = inner->placeholder("a");
  inner->call_function("torch.relu", {a});
  inner->call_function("torch.tanh", {a});
  inner->output(a);
  auto body = std::make_shared<GraphModule>(inner);
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_submodule("body", body);
  Node& x = graph->placeholder("x");
  graph->output(graph->call_function("my_lib::map", {graph->get_attr("body"), x}));
  EXPECT_TRUE(
      graph->eliminate_dead_code([](const Node& node) { return node.calls("torch.relu"); }));
  EXPECT_EQ(names(*inner), (Names{"a", "output"})) << "the caller's predicate is not passed on";
  EXPECT_FALSE(graph->eliminate_dead_code());
  module.recompile();
  EXPECT_FALSE(body->needs_recompile());
}

}  // namespace
}  // namespace fx
