// torch.fx's own tests of passes over traced programs: common subexpressions (test_cse_pass.py,
// test_common_passes.py), shapes (test_fx.py).
#include <torch/torch.h>

#include <random>

#include "fx/capture/make_fx.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/module_call.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/cse.h"
#include "fx/passes/pattern_matcher.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/split_module.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using Program = std::function<at::Tensor(at::Tensor)>;

// Captures, merges, and gives how many nodes went; checks what test_cse_pass.py checks of each.
std::int64_t merged(const Program& program, const CseOptions& options = {}) {
  const at::Tensor example = torch::randn({2, 2});
  auto module = make_fx([&](at::Tensor x) { return program(x); }, {example});
  const at::Tensor x = torch::randn({2, 2});
  torch::manual_seed(7);
  const at::Tensor before = (*module)(x.clone()).toTensor();
  const auto size = static_cast<std::int64_t>(module->graph().size());
  const PassResult result = cse(*module, options);
  module->graph().lint({.strict = true});
  module->recompile();
  torch::manual_seed(7);
  EXPECT_TRUE(torch::equal((*module)(x.clone()).toTensor(), before));
  const std::int64_t removed = size - static_cast<std::int64_t>(module->graph().size());
  EXPECT_EQ(result.changed, removed > 0);
  EXPECT_EQ(result.rewrites, removed);
  EXPECT_FALSE(cse(*module, options).changed) << "nothing is left to merge";
  return removed;
}

TEST(CseOfTorchFx, R_058_nodes_removed) {
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x + 1, b = x + a;
              a = x;
              at::Tensor d = x + a;
              return b + d;
            }),
            0);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x + 1, b = a.cos();
              return b + x;
            }),
            0);
  EXPECT_EQ(merged([](at::Tensor x) { return x; }), 0);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x.sum(1), b = x.sum(1), c = x.sum(), d = x.sum();
              return a + b + c + d;
            }),
            2);
  EXPECT_EQ(merged([](at::Tensor x) {
              const std::vector<std::int64_t> both{0, 1};
              at::Tensor a = x.sum(both), b = x.sum(both), c = x.sum(1), d = x.sum(1);
              return a + b + c + d;
            }),
            2);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x.cos(), b = x.cos(), c = a + a, d = b + b;
              return c + d;
            }),
            2);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x.cos().sin(), b = x.cos().sin(), c = a + a, d = b + b;
              return c + d;
            }),
            3);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x.sum(1), b = x.sum(1, false), c = x.sum(1, false), d = x.sum(1);
              return a + b + c + d;
            }),
            3);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x.sum(1), b = x.sum(1, true), c = x.sum(1, true), d = x.sum(1);
              return a + b + c + d;
            }),
            2);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x.sum(), b = x.sum(), c = x.sum(), d = x.sum();
              return a + b + c + d;
            }),
            3);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = torch::cat({x, x}), b = torch::cat({x, x});
              return a + b;
            }),
            1);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = at::ones_like(x), b = at::ones_like(x);
              return a + b;
            }),
            1);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = torch::rand_like(x), b = torch::rand_like(x);
              return a + b;
            }),
            0);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = torch::randn({4}), b = torch::randn({4});
              return (a + b).sum() + x;
            }),
            0);
  EXPECT_EQ(merged([](at::Tensor x) {
              at::Tensor a = x + 1, b = x + 1;
              return a + b;
            }),
            1);
}

TEST(CseOfTorchFx, R_058_random_programs) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    EXPECT_GE(merged([&](at::Tensor x) {
                random.seed(seed);
                std::vector<at::Tensor> values{x};
                for (int i = 0; i < 100; ++i) {
                  const at::Tensor& a = values[random() % values.size()];
                  const at::Tensor& b = values[random() % values.size()];
                  switch (random() % 4) {
                    case 0:
                      values.push_back((a + b) * 0.5);
                      break;
                    case 1:
                      values.push_back(torch::sin(a));
                      break;
                    case 2:
                      values.push_back(torch::cat({a, b}).slice(0, 0, 2));
                      break;
                    default:
                      values.push_back(torch::tanh(b));
                  }
                }
                return values.back();
              }),
              0)
        << seed;
  }
}

// Writes stay where they are, and so does what reads around them.
TEST(CseOfTorchFx, R_059_Q_005_correctness_with_writes_lists_and_factories) {
  auto keeps = [](const std::function<Value(at::Tensor, at::Tensor)>& program) {
    auto captured = [&](at::Tensor x, at::Tensor y) {
      const Value result = program(x, y);
      return result.isTensor() ? result.toTensor() : torch::stack(result.toTensorVector());
    };
    auto module = make_fx(captured, {torch::rand({2, 2}), torch::rand({2, 2})});
    const at::Tensor x = torch::rand({2, 2}), y = torch::rand({2, 2});
    const at::Tensor x1 = x.clone(), x2 = x.clone(), y1 = y.clone(), y2 = y.clone();
    const at::Tensor expected = captured(x1, y1);
    cse(*module);
    module->graph().lint({.strict = true});
    module->recompile();
    EXPECT_TRUE(torch::equal((*module)(x2, y2).toTensor(), expected));
    EXPECT_TRUE(torch::equal(x1, x2));
    EXPECT_TRUE(torch::equal(y1, y2));
  };
  auto list = [](std::vector<at::Tensor> items) { return Value(c10::List<at::Tensor>(items)); };
  keeps([](at::Tensor x, at::Tensor y) -> Value {  // TakeList
    return torch::cat({x, y, x}) + torch::cat({x, y, x});
  });
  keeps([](at::Tensor x, at::Tensor y) -> Value {  // ReturnList
    auto a = torch::split(x, 1), b = torch::split(x, 1);
    return a[0] + b[1] + y;
  });
  keeps([](at::Tensor x, at::Tensor y) -> Value {  // Mutation
    at::Tensor z = x + y;
    z.add_(1);
    at::Tensor again = x + y;
    return z * again;
  });
  keeps([&](at::Tensor x, at::Tensor y) -> Value {  // MutationInput
    at::Tensor before = x * 2;
    x.add_(y);
    at::Tensor after = x * 2;
    return list({before, after});
  });
  keeps([&](at::Tensor x, at::Tensor y) -> Value {  // twice the same write is two writes
    x.add_(y);
    x.add_(y);
    return x;
  });
  keeps([](at::Tensor x, at::Tensor y) -> Value {  // MutationMetadata
    at::Tensor z = x.clone();
    z.unsqueeze_(0);
    return z + x.clone() + y;
  });
  keeps([](at::Tensor x, at::Tensor y) -> Value {  // MutationTorchTensorCall
    at::Tensor a = torch::tensor({1.f, 2.f});
    a.mul_(2);
    return x + a + y;
  });
  keeps([](at::Tensor x, at::Tensor y) -> Value {  // FactoryFunctionCall, MutationFactory
    at::Tensor a = torch::full({2, 2}, 3.f), b = torch::full({2, 2}, 3.f);
    a.add_(1);
    return a * b + x + y;
  });
}

// torch.fx's split_module_kwargs_expansion: the dict of "**kwargs" crosses partitions.
TEST(SplitOfTorchFx, E_018_keywords_cross_partitions) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& kwargs = graph->placeholder("**kwargs");
  Node& foo = graph->call_function("operator.getitem", {kwargs, "foo"});
  Node& bar = graph->call_function("operator.getitem", {kwargs, "bar"});
  Node& sum = graph->call_function("operator.add", {x, foo});
  graph->output(graph->call_function("operator.mul", {sum, bar}));
  GraphModule module(graph);
  const at::Tensor a = torch::randn({5, 3}), b = torch::randn({5, 3}), c = torch::randn({5, 3});
  const KwValues keywords{{Symbol("foo"), b}, {Symbol("bar"), c}};
  EXPECT_TRUE(torch::equal(module.forward({a}, keywords).toTensor(), (a + b) * c));
  for (const bool keep_names : {true, false}) {
    auto split = split_module(module, [&](const Node& node) { return &node == &foo ? 0 : 1; },
                              {.keep_original_input_name = keep_names});
    split->graph().lint({.strict = true});
    EXPECT_EQ(split->graph().find_nodes(Opcode::kCallModule).size(), 2u);
    EXPECT_TRUE(torch::equal(split->forward({a}, keywords).toTensor(), (a + b) * c));
    EXPECT_TRUE(
        torch::equal(Interpreter(*split).run({a}, {.kwargs = keywords}).toTensor(), (a + b) * c));
  }
}

// A path that leaves a match and comes back shuts it out, whether overlaps are wanted or not.
TEST(MatcherOfTorchFx, Q_007_the_filter_of_cycles_does_not_depend_on_overlaps) {
  auto module = symbolic_trace([](auto x) {
    auto a = relu(x);
    auto m = -a;
    return a + m;
  });
  auto pattern = symbolic_trace([](auto x, auto y) {
    auto a = relu(x);
    return std::make_tuple(a + y, a);
  });
  for (const bool remove : {true, false}) {
    MatchOptions options;
    options.remove_overlapping_matches = remove;
    EXPECT_TRUE(SubgraphMatcher(pattern->graph(), options).match(module->graph()).empty());
  }
  auto fine = symbolic_trace([](auto x, auto y) { return relu(x) + y; });
  EXPECT_EQ(SubgraphMatcher(pattern->graph()).match(fine->graph()).size(), 1u);
}

// --- shapes ------------------------------------------------------------------------------------

struct GivesPairImpl : torch::nn::Module {
  std::tuple<std::int64_t, at::Tensor> forward(at::Tensor x) { return {3, x.sum()}; }
};

TEST(ShapesOfTorchFx, F_082_example_shape_prop) {
  struct Net : torch::nn::Module {
    Net() {
      register_module("linear", torch::nn::Linear(4, 3));
      register_parameter("weight", torch::ones({4}));
    }
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& sum = graph->call_function("operator.add", {x, graph->get_attr("weight")});
  Node& linear = graph->call_module("linear", {sum});
  Node& out = graph->output(graph->call_method("t", {linear}));
  GraphModule module(Net(), graph);
  const at::Tensor input = torch::rand({2, 4});
  const at::Tensor real = module(input).toTensor();
  ShapeProp(module).propagate({input});
  for (const Node& node : graph->nodes()) EXPECT_NE(tensor_meta(node), nullptr) << node.name();
  EXPECT_EQ(tensor_meta(out)->shape, real.sizes().vec());
  EXPECT_EQ(tensor_meta(out)->stride, real.strides().vec());
}

TEST(ShapesOfTorchFx, F_083_shape_prop_layout_F_085_layout_3d) {
  for (const bool deep : {false, true}) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& conv = graph->call_module("conv", {x});
    graph->output(conv);
    auto module = std::make_shared<GraphModule>(graph);
    if (deep)
      module->set_submodule(
          "conv", std::make_shared<torch::nn::Conv3dImpl>(torch::nn::Conv3dOptions(5, 5, 3)));
    else
      module->set_submodule(
          "conv", std::make_shared<torch::nn::Conv2dImpl>(torch::nn::Conv2dOptions(5, 5, 3)));
    module->recompile();
    const at::Tensor input = deep ? torch::rand({5, 5, 6, 8, 9}) : torch::rand({5, 5, 6, 8});
    const auto format = deep ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
    ShapeProp(*module).propagate({input});
    for (const Node& node : graph->nodes())
      EXPECT_EQ(tensor_meta(node)->memory_format, at::MemoryFormat::Contiguous) << node.name();
    ShapeProp(*module).propagate({input.contiguous(format)});
    EXPECT_EQ(tensor_meta(x)->memory_format, format);
  }
}

TEST(ShapesOfTorchFx, F_084_shape_prop_aggregate) {
  register_module_type<GivesPairImpl>("GivesPair", "x");
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_submodule("pair", std::make_shared<GivesPairImpl>());
  Node& called = graph->call_module("pair", {graph->placeholder("x")});
  graph->output(graph->call_function("operator.getitem", {called, 1}));
  module.recompile();
  ShapeProp(module).propagate({torch::rand({3, 4})});
  const auto* meta = called.meta().get<NestedTensorMeta>("tensor_meta");
  ASSERT_NE(meta, nullptr);
  ASSERT_EQ(meta->items()->size(), 2u);
  EXPECT_EQ((*meta->items())[0].tensor(), nullptr) << "a number has no metadata";
  EXPECT_TRUE((*meta->items())[1].tensor()->shape.empty());
}

}  // namespace
}  // namespace fx
