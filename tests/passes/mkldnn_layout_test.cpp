// optimize_for_inference (torch.fx.experimental.optimization) and the regions of MKL-DNN's layout.
// Expected values come from the module as it was.
#include "fx/passes/mkldnn_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/pass_manager.h"
#include "fx/passes/shape_prop.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// conv, norm, relu, pool; twice; a sum in between, dropout, and a linear layer behind a flatten.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    norm1->eval();
    norm2->eval();
  }
  Proxy forward(Proxy x) {
    x = pool(relu(norm1(conv1(x))));
    Proxy y = relu(norm2(conv2(x)));
    y = dropout(y + y);
    return linear(torch::flatten(static_cast<at::Tensor>(average(y)), 1));
  }
  nn::Conv2d conv1 =
      register_module("conv1", nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)));
  nn::BatchNorm2d norm1 = register_module("norm1", nn::BatchNorm2d(8));
  nn::ReLU relu = register_module("relu", nn::ReLU());
  nn::MaxPool2d pool = register_module("pool", nn::MaxPool2d(2));
  nn::Conv2d conv2 =
      register_module("conv2", nn::Conv2d(torch::nn::Conv2dOptions(8, 6, 3).groups(2).bias(false)));
  nn::BatchNorm2d norm2 = register_module("norm2", nn::BatchNorm2d(6));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.5));
  nn::AdaptiveAvgPool2d average =
      register_module("average", nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions(1)));
  nn::Linear linear = register_module("linear", nn::Linear(6, 5));
};
FX_MODULE(Net);

struct Fixture {
  Fixture() {
    torch::manual_seed(0);
    x = torch::randn({2, 3, 20, 24});
    Net net;
    for (at::Tensor buffer : net->buffers())
      if (buffer.is_floating_point()) buffer.uniform_(0.5, 1.5);
    net->eval();
    module = symbolic_trace(net);
    wanted = (*module)(x).toTensor();
  }

  std::size_t count(std::string_view target) const {
    std::size_t found = 0;
    for (const Node& node : module->graph().nodes()) found += node.target() == target;
    return found;
  }

  void expect_same() {
    module->graph().lint();
    module->recompile();
    const at::Tensor found = (*module)(x).toTensor();
    EXPECT_EQ(found.layout(), at::kStrided);
    EXPECT_TRUE(torch::allclose(found, wanted, 1e-4, 1e-5)) << (found - wanted).abs().max();
    EXPECT_TRUE(torch::equal(Interpreter(*module).run({x}).toTensor(), found));
  }

  torch::NoGradGuard no_grad;
  at::Tensor x;
  std::shared_ptr<GraphModule> module;
  at::Tensor wanted;
};

Names names_of(const std::vector<Node*>& nodes) { return names(nodes); }

TEST(MkldnnLayout, X_007_regions) {
  Fixture f;
  ShapeProp(*f.module).propagate({f.x});
  const std::vector<MkldnnRegion> regions = mkldnn_regions(*f.module);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(names_of(regions[0].nodes),
            (Names{"conv1", "norm1", "relu", "pool", "conv2", "norm2", "relu_1", "add"}))
      << "dropout is no operator of MKL-DNN";
  EXPECT_EQ(names_of(regions[0].inputs), (Names{"x"}));
  EXPECT_EQ(names_of(regions[0].outputs), (Names{"add"}));
  EXPECT_EQ(names_of(regions[1].nodes), (Names{"linear"}));
  EXPECT_EQ(names_of(regions[1].inputs), (Names{"flatten_using_ints"}));
}

TEST(MkldnnLayout, X_007_optimize_for_inference) {
  Fixture f;
  const PassResult result = optimize_for_inference(*f.module);
  EXPECT_TRUE(result.changed);
  // The norms are folded away, the dropout is gone, and what is left from conv1 to the pooling
  // behind the sum is one region; the linear layer alone is not worth it.
  EXPECT_EQ(f.count("norm1") + f.count("norm2") + f.count("dropout"), 0u);
  EXPECT_EQ(f.count("aten::mkldnn_convolution"), 2u);
  EXPECT_EQ(f.count("to_mkldnn"), 1u);
  EXPECT_EQ(f.count("to_dense"), 1u);
  EXPECT_EQ(f.count("linear"), 1u);
  f.expect_same();
}

TEST(MkldnnLayout, X_007_switches_of_the_pass_config) {
  Fixture f;
  optimize_for_inference(*f.module, {.conv_bn_fuse = false, .mkldnn_layout = false});
  EXPECT_EQ(f.count("norm1"), 1u);
  EXPECT_EQ(f.count("dropout"), 0u);
  EXPECT_EQ(f.count("to_mkldnn"), 0u);
  f.expect_same();
  optimize_for_inference(*f.module, {.conv_bn_fuse = false, .remove_dropout = false});
  EXPECT_EQ(f.count("aten::batch_norm"), 2u);
  EXPECT_EQ(f.count("to_mkldnn"), 1u);
  f.expect_same();
}

TEST(MkldnnLayout, X_007_use_mkl_length) {
  Fixture f;
  EXPECT_FALSE(use_mkldnn_layout(*f.module, mkldnn_longer_than(100)).changed);
  EXPECT_EQ(f.count("to_mkldnn"), 0u);
  const PassResult all = use_mkldnn_layout(*f.module);
  EXPECT_EQ(all.rewrites, 2);
  EXPECT_EQ(f.count("aten::mkldnn_linear"), 1u);
  EXPECT_EQ(f.count("to_mkldnn"), 2u);
  EXPECT_EQ(f.count("to_dense"), 2u);
  f.expect_same();
  EXPECT_FALSE(use_mkldnn_layout(*f.module).changed) << "nothing is left to convert";
}

// Which way is faster depends on the machine; the answer is used, the result is the same, and the
// heuristic sees each region once with its shapes known.
TEST(MkldnnLayout, X_007_gen_mkl_autotuner) {
  Fixture f;
  std::vector<bool> answers;
  const MkldnnHeuristic tuner = mkldnn_autotuner({f.x}, 2, 1);
  optimize_for_inference(*f.module,
                         {.heuristic = [&](const GraphModule& module, const MkldnnRegion& region) {
                           answers.push_back(tuner(module, region));
                           for (const Node* node : region.nodes)
                             EXPECT_NE(tensor_meta(*node), nullptr) << node->name();
                           return answers.back();
                         }});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(f.count("to_mkldnn"), static_cast<std::size_t>(answers[0] + answers[1]));
  f.expect_same();
}

// The sum of values of different shapes, or of shapes that are not known, is left to dense tensors.
TEST(MkldnnLayout, X_007_sums_need_equal_shapes) {
  torch::NoGradGuard no_grad;
  struct Wide : torch::nn::Module {
    torch::nn::Conv2d a =
        register_module("a", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 1)));
    torch::nn::Conv2d b =
        register_module("b", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 1, 1)));
  } root;
  root.eval();
  const auto module_of = [&](const char* left, const char* right) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& a = graph->call_module(left, {x});
    Node& b = graph->call_module(right, {x});
    graph->output(graph->call_function("operator.add", {a, b}));
    return std::make_shared<GraphModule>(root, graph);
  };
  const at::Tensor x = torch::randn({1, 3, 5, 5});
  for (const bool same : {true, false})
    for (const bool known : {true, false}) {
      const auto module = module_of("a", same ? "a" : "b");
      const at::Tensor wanted = (*module)(x).toTensor();
      if (known) ShapeProp(*module).propagate({x});
      use_mkldnn_layout(*module);
      module->recompile();
      EXPECT_TRUE(torch::allclose((*module)(x).toTensor(), wanted, 1e-5, 1e-6));
      const Node& add =
          *module->graph().find_nodes(Opcode::kCallFunction, Target::function("operator.add"))[0];
      EXPECT_EQ(add.all_input_nodes()[0]->target() == "to_dense", !(same && known));
    }
}

// What is written to stays dense: a copy in another layout would not see the write.
TEST(MkldnnLayout, X_007_writes_stay_out) {
  torch::NoGradGuard no_grad;
  struct Root : torch::nn::Module {
    torch::nn::Conv2d conv =
        register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 3, 1)));
  } root;
  root.eval();
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->call_module("conv", {x});
  graph->call_method("add_", {y, 1});
  Node& z = graph->call_function("torch.relu", {y});
  graph->output(z);
  GraphModule module(root, graph);
  const at::Tensor in = torch::randn({1, 3, 4, 4});
  const at::Tensor wanted = module(in).toTensor();
  EXPECT_FALSE(use_mkldnn_layout(module).changed);
  EXPECT_TRUE(torch::equal(module(in).toTensor(), wanted));
}

// As documented: what becomes of NaN, and operators that MKL-DNN has not for all sizes.
TEST(MkldnnLayout, X_007_nan_and_operators_that_are_not_there) {
  torch::NoGradGuard no_grad;
  const auto converted = [](auto pool) {
    nn::Sequential net(nn::Conv2d(torch::nn::Conv2dOptions(1, 1, 1)), pool);
    net->eval();
    const auto module = symbolic_trace(net);
    const at::Tensor x = torch::randn({1, 1, 9, 9});
    const at::Tensor wanted = (*module)(x).toTensor();
    const std::size_t nodes = mkldnn_regions(*module).at(0).nodes.size();
    use_mkldnn_layout(*module);
    module->recompile();
    EXPECT_TRUE(torch::allclose((*module)(x).toTensor(), wanted, 1e-5, 1e-6));
    return nodes == 2;
  };
  using torch::nn::AdaptiveAvgPool2dOptions, torch::nn::MaxPool2dOptions;
  EXPECT_TRUE(converted(nn::AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions(1))));
  EXPECT_FALSE(converted(nn::AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions(2))));
  EXPECT_TRUE(converted(nn::MaxPool2d(MaxPool2dOptions(3).stride(2).padding(1).ceil_mode(true))));
  EXPECT_FALSE(converted(nn::MaxPool2d(MaxPool2dOptions(2).dilation(2))));
  EXPECT_TRUE(converted(nn::AvgPool2d(torch::nn::AvgPool2dOptions(2).padding(1))));
  EXPECT_FALSE(converted(nn::AvgPool2d(torch::nn::AvgPool2dOptions(2).divisor_override(3))));
  EXPECT_TRUE(converted(nn::Sigmoid()));
  EXPECT_TRUE(converted(nn::ReLU()));
  nn::Sequential in_place(nn::Conv2d(torch::nn::Conv2dOptions(1, 1, 1)),
                          nn::ReLU(torch::nn::ReLUOptions(true)));
  in_place->eval();
  EXPECT_TRUE(mkldnn_regions(*symbolic_trace(in_place)).empty()) << "it writes to what conv made";

  Fixture f;
  use_mkldnn_layout(*f.module);
  f.module->recompile();
  const at::Tensor nan = torch::full_like(f.x, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE((*f.module)(nan).toTensor().isfinite().all().item<bool>());
  EXPECT_TRUE(Fixture().module->forward({nan}).toTensor().isnan().all().item<bool>());
}

TEST(MkldnnLayout, X_007_what_is_left_alone) {
  Fixture training;
  training.module->train();
  EXPECT_FALSE(use_mkldnn_layout(*training.module).changed);
  Fixture doubles;
  doubles.module->to(torch::kDouble);
  EXPECT_FALSE(use_mkldnn_layout(*doubles.module).changed);
}

// Copies and further passes of a converted module: its constants have no strides and no storage.
TEST(MkldnnLayout, X_007_a_converted_module_is_a_module) {
  Fixture f;
  optimize_for_inference(*f.module);
  f.module->recompile();
  const auto copy = f.module->deep_copy();
  EXPECT_TRUE(torch::allclose((*copy)(f.x).toTensor(), f.wanted, 1e-4, 1e-5));
  PassManager manager("cse, constant_fold, dce, remove_noops, fuse_conv_bn");
  manager.run(*f.module);
  f.expect_same();
  ShapeProp(*f.module).propagate({f.x});
  for (const Node* node : f.module->graph().find_nodes(Opcode::kCallMethod)) {
    const TensorMeta* meta = tensor_meta(*node);
    ASSERT_NE(meta, nullptr) << node->name();
    EXPECT_EQ(meta->layout, node->target() == "to_mkldnn" ? at::kMkldnn : at::kStrided);
  }
  EXPECT_EQ(copy->state_dict().size(), f.module->state_dict().size());
}

}  // namespace
}  // namespace fx
