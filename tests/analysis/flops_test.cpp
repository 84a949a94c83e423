// Figures by hand, those that torch.utils.flop_counter gives (FlopCounterMode, torch 2.15).

#include "fx/analysis/flops.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "fx/capture/make_fx.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/passes/fake_tensor_prop.h"
#include "fx/passes/shape_prop.h"

namespace fx {
namespace {

namespace nn = torch::nn;

FlopCount flops_of(GraphModule& module, const Values& inputs) {
  ShapeProp(module).propagate(inputs);
  return count_flops(module);
}

template <typename Program>
FlopCount captured(Program&& program, std::vector<at::Tensor> inputs) {
  auto module = make_fx(std::forward<Program>(program), inputs);
  return flops_of(*module, Values(inputs.begin(), inputs.end()));
}

TEST(Flops, ProductsConvolutionsAndAttention) {
  const at::NoGradGuard no_grad;
  const auto r = [](at::IntArrayRef sizes) { return at::rand(sizes); };
  using T = const at::Tensor&;
  EXPECT_EQ(captured([](T a, T b) { return at::mm(a, b); }, {r({3, 4}), r({4, 5})}).total,
            2u * 3 * 4 * 5);
  EXPECT_EQ(captured([](T a, T b) { return at::bmm(a, b); }, {r({7, 3, 4}), r({7, 4, 5})}).total,
            7u * 2 * 3 * 4 * 5);
  EXPECT_EQ(captured([](T a, T b) { return at::matmul(a, b); }, {r({7, 3, 4}), r({4})}).total,
            7u * 2 * 3 * 4);
  EXPECT_EQ(
      captured([](T c, T a, T b) { return at::addmm(c, a, b); }, {r({5}), r({3, 4}), r({4, 5})})
          .total,
      2u * 3 * 4 * 5);
  EXPECT_EQ(captured([](T x, T w) { return at::linear(x, w); }, {r({2, 3, 4}), r({6, 4})}).total,
            2u * 2 * 3 * 4 * 6);
  // 2 groups of 3 input channels, 6 x 6 places of 8 output channels.
  EXPECT_EQ(captured(
                [](T x, T w) {
                  return at::conv2d(x, w, at::Tensor(), at::IntArrayRef({1, 1}),
                                    at::IntArrayRef({0, 0}), at::IntArrayRef({1, 1}), 2);
                },
                {r({2, 6, 8, 8}), r({8, 3, 3, 3})})
                .total,
            2u * 2 * 8 * 6 * 6 * 3 * 3 * 3);
  EXPECT_EQ(
      captured([](T x, T w) { return at::conv_transpose1d(x, w); }, {r({2, 6, 8}), r({6, 5, 3})})
          .total,
      2u * 2 * 6 * 8 * 5 * 3);
  EXPECT_EQ(captured([](T q, T k, T v) { return at::scaled_dot_product_attention(q, k, v); },
                     {r({2, 3, 5, 8}), r({2, 3, 7, 8}), r({2, 3, 7, 4})})
                .total,
            2u * 2 * 3 * 5 * 7 * 8 + 2u * 2 * 3 * 5 * 7 * 4);
  EXPECT_EQ(captured([](T x) { return at::relu(x) + 1; }, {r({9})}).total, 0u);
}

TEST(Flops, OperatorsAreSortedAndUnknownSizesCounted) {
  const at::NoGradGuard no_grad;
  auto module =
      make_fx([](const at::Tensor& a, const at::Tensor& b) { return at::linear(at::mm(a, b), a); },
              {at::rand({4, 4}), at::rand({4, 4})});
  FlopCount count = flops_of(*module, {at::rand({4, 4}), at::rand({4, 4})});
  ASSERT_EQ(count.operators.size(), 2u);
  EXPECT_EQ(count.operators[0], (std::pair<std::string, std::uint64_t>("aten::linear", 128)));
  EXPECT_EQ(count.total, 256u);
  count = count_flops(*module, [](const Node&) { return std::nullopt; });
  EXPECT_EQ(count.total, 0u);
  EXPECT_EQ(count.unknown, 2u);
}

TEST(Flops, ModulesAndGraphsInModules) {
  const at::NoGradGuard no_grad;
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(3, 8, 3)), nn::ReLU(), nn::Flatten(),
                     nn::Linear(8 * 4 * 4, 10));
  auto module = symbolic_trace(*net);
  const FlopCount count = flops_of(*module, {at::rand({2, 3, 6, 6})});
  EXPECT_EQ(count.total, 2u * 2 * 8 * 16 * 27 + 2u * 2 * 128 * 10);
  EXPECT_EQ(count.unknown, 0u);
}

/// What `program` records of one square input, as a graph that gives a tuple.
template <typename Program>
std::shared_ptr<GraphModule> body(Program program) {
  auto module = make_fx([program](const at::Tensor& x) { return std::make_tuple(program(x)); },
                        {at::rand({4, 4})});
  return module;
}

/// `target` of those graphs and operands of the input [4, 4].
std::shared_ptr<GraphModule> around(const std::string& target,
                                    const std::vector<std::shared_ptr<GraphModule>>& graphs,
                                    const std::function<Args(Graph&, Node&, Args)>& args) {
  auto graph = std::make_shared<Graph>();
  auto module = std::make_shared<GraphModule>(graph);
  Node& x = graph->placeholder("x");
  Args attributes;
  for (const auto& nested : graphs) {
    const std::string name = "graph_" + std::to_string(attributes.size());
    module->set_submodule(name, nested);
    attributes.emplace_back(graph->get_attr(name));
  }
  Node& result =
      graph->call_function("torch.ops.higher_order." + target, args(*graph, x, attributes));
  graph->output(graph->call_function("operator.getitem", {result, 0}));
  module->recompile();
  return module;
}

TEST(Flops, BranchesCountOnceAndMapsEachStep) {
  const at::NoGradGuard no_grad;
  const auto once = body([](const at::Tensor& a) { return at::mm(a, a); });
  const auto twice = body([](const at::Tensor& a) { return at::mm(at::mm(a, a), a); });
  auto cond = around("cond", {once, twice}, [](Graph& g, Node& x, const Args& graphs) {
    Node& positive = g.call_function("aten::gt.Scalar", {g.call_function("aten::sum", {x}), 0});
    return Args{positive, graphs[0], graphs[1], Argument::tuple({x})};
  });
  FakeTensorProp(*cond).propagate({at::rand({4, 4})});
  EXPECT_EQ(count_flops(*cond).total, 2u * 2 * 64) << "of the more expensive branch";
  EXPECT_FALSE(count_flops(*cond).has_loops);
  // Values decide: the branch that does not run has no sizes.
  for (Node& node : twice->graph().nodes()) node.meta().erase("tensor_meta");
  for (Node& node : once->graph().nodes()) node.meta().erase("tensor_meta");
  ShapeProp(*cond).propagate({at::rand({4, 4})});
  EXPECT_EQ(count_flops(*cond).total, 2u * 64);

  const auto row = body([](const at::Tensor& a) { return at::mm(a, a); });
  auto map = around("map_impl", {row}, [](Graph& g, Node& x, const Args& graphs) {
    Node& rows = g.call_function("aten::expand", {x, Argument::list({5, 4, 4})});
    return Args{graphs[0], Argument::list({rows}), Argument::list({})};
  });
  EXPECT_EQ(flops_of(*map, {at::rand({4, 4})}).total, 5u * 2 * 64);
}

}  // namespace
}  // namespace fx
