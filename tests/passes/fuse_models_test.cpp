// Whole models through the optimisations for inference.
#include "examples/resnet18.h"
#include "fx/passes/fuse_conv_bn.h"
#include "fx/passes/graph_optimizer.h"
#include "fx/passes/remove_noops.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

template <typename Module>
std::size_t count_modules(const GraphModule& gm) {
  std::size_t count = 0;
  for (const Node* node : gm.graph().find_nodes(Opcode::kCallModule))
    count += dynamic_cast<Module*>(gm.find_submodule(node->target().str()).get()) != nullptr;
  return count;
}

std::shared_ptr<GraphModule> sequential(torch::nn::Sequential model, bool training = false) {
  auto gm = symbolic_trace(*model);
  gm->train(training);
  return gm;
}

// Batch norm with statistics that are not those of a new one.
template <typename Norm>
Norm used(Norm norm) {
  norm->running_mean.uniform_(-1, 1);
  norm->running_var.uniform_(0.5, 2);
  return norm;
}

TEST(FuseModels, X_003_E_009_resnet18) {
  torch::manual_seed(4);
  resnet::ResNet18 model(10);
  for (const auto& module : model->modules())
    if (auto* norm = dynamic_cast<torch::nn::BatchNorm2dImpl*>(module.get())) {
      norm->running_mean.uniform_(-0.2, 0.2);
      norm->running_var.uniform_(0.7, 1.4);
    }
  model->eval();
  auto gm = symbolic_trace(*model);
  EXPECT_EQ(count_modules<torch::nn::BatchNorm2dImpl>(*gm), 20u);
  const at::Tensor x = torch::randn({2, 3, 32, 32});
  const torch::NoGradGuard no_grad;
  const at::Tensor expected = model->forward(x);
  EXPECT_EQ(fuse_conv_bn(*gm).rewrites, 20);
  EXPECT_EQ(count_modules<torch::nn::BatchNorm2dImpl>(*gm), 0u);
  gm->recompile();
  EXPECT_EQ(compare_values(Value(expected), gm->forward({Value(x)}), {.rtol = 1e-4, .atol = 1e-4}),
            "");
}

TEST(FuseModels, X_003_each_kind_of_layer) {
  namespace nn = torch::nn;
  torch::manual_seed(2);
  struct Case {
    nn::Sequential model;
    at::Tensor input;
  };
  std::vector<Case> cases{
      {nn::Sequential(nn::Conv1d(3, 4, 2), used(nn::BatchNorm1d(4))), torch::randn({2, 3, 5})},
      {nn::Sequential(nn::Conv2d(3, 4, 2), used(nn::BatchNorm2d(4))), torch::randn({2, 3, 5, 5})},
      {nn::Sequential(nn::Conv3d(3, 4, 2), used(nn::BatchNorm3d(4))),
       torch::randn({2, 3, 4, 4, 4})},
      {nn::Sequential(nn::Linear(3, 4), used(nn::BatchNorm1d(4))), torch::randn({6, 3})}};
  for (Case& c : cases) {
    c.model->eval();
    auto gm = sequential(c.model);
    const Value expected(c.model->forward(c.input));
    EXPECT_EQ(fuse_conv_bn(*gm, {.assume_linear_2d = true}).rewrites, 1);
    EXPECT_EQ(gm->graph().find_nodes(Opcode::kCallModule).size(), 1u);
    gm->recompile();
    EXPECT_VALUES_EQ(expected, gm->forward({Value(c.input)}));
  }
}

// Without running statistics batch norm uses those of each batch, also in eval mode.
TEST(FuseModels, E_010_no_running_statistics) {
  namespace nn = torch::nn;
  auto gm = sequential(nn::Sequential(
      nn::Conv2d(3, 4, 2), nn::BatchNorm2d(nn::BatchNorm2dOptions(4).track_running_stats(false))));
  EXPECT_FALSE(fuse_conv_bn(*gm).changed);
  EXPECT_EQ(count_modules<nn::BatchNorm2dImpl>(*gm), 1u);
}

TEST(FuseModels, E_011_mixed_dtypes) {
  namespace nn = torch::nn;
  torch::manual_seed(3);
  nn::Conv2d conv(nn::Conv2dOptions(8, 16, 3).bias(false));
  conv->to(torch::kBFloat16);
  nn::Sequential model(conv, used(nn::BatchNorm2d(16)));
  model->eval();
  auto gm = sequential(model);
  const at::Tensor x = torch::randn({2, 8, 6, 6}).to(torch::kBFloat16);
  const torch::NoGradGuard no_grad;
  const at::Tensor expected = model->forward(x);
  EXPECT_EQ(fuse_conv_bn(*gm).rewrites, 1);
  EXPECT_EQ(count_modules<nn::BatchNorm2dImpl>(*gm), 0u);
  gm->recompile();
  const at::Tensor fused = gm->forward({Value(x)}).toTensor();
  EXPECT_EQ(fused.scalar_type(), expected.scalar_type());
  // One rounding of the weights to 8 bits of mantissa, of 72 products.
  EXPECT_TRUE(torch::allclose(expected.to(torch::kFloat), fused.to(torch::kFloat), 0.05, 0.05));
}

TEST(FuseModels, X_004_dropout_becomes_its_input) {
  namespace nn = torch::nn;
  const nn::Sequential model(nn::Linear(3, 3), nn::Dropout(0.5), nn::ReLU());
  auto gm = sequential(model);
  EXPECT_EQ(remove_dropout(*gm).rewrites, 1);
  EXPECT_EQ(count_modules<nn::DropoutImpl>(*gm), 0u);
  gm->recompile();
  const at::Tensor x = torch::randn({2, 3});
  const at::Tensor linear = model->ptr<nn::LinearImpl>(0)->forward(x);
  EXPECT_VALUES_EQ(Value(linear.relu()), gm->forward({Value(x)}));
  auto training = sequential(model, /*training=*/true);
  EXPECT_FALSE(remove_dropout(*training).changed);
}

TEST(FuseModels, E_035_optimized_for_inference) {
  namespace nn = torch::nn;
  torch::manual_seed(5);
  const torch::NoGradGuard no_grad;
  nn::Sequential small(nn::Conv2d(3, 8, 3), used(nn::BatchNorm2d(8)), nn::ReLU(),
                       nn::Dropout2d(0.3), nn::AdaptiveAvgPool2d(2), nn::Flatten(),
                       nn::Linear(32, 5), nn::LogSoftmax(1));
  small->eval();
  const at::Tensor x = torch::randn({2, 3, 9, 9});
  const auto gm = sequential(small);
  const auto optimized = optimize_for_inference(*gm);
  EXPECT_VALUES_EQ(Value(small->forward(x)), optimized->forward({Value(x)}));
  EXPECT_EQ(count_modules<nn::BatchNorm2dImpl>(*optimized), 0u);
  EXPECT_EQ(count_modules<nn::Dropout2dImpl>(*optimized), 0u);
  EXPECT_EQ(count_modules<nn::BatchNorm2dImpl>(*gm), 1u);  // the original stays
  resnet::ResNet18 resnet(10);
  resnet->eval();
  const at::Tensor image = torch::randn({1, 3, 32, 32});
  EXPECT_EQ(
      compare_values(Value(resnet->forward(image)),
                     optimize_for_inference(*symbolic_trace(*resnet))->forward({Value(image)}),
                     {.rtol = 1e-4, .atol = 1e-4}),
      "");
}

}  // namespace
}  // namespace fx
