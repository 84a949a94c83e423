// Which module a node of a captured program belongs to, and names after modules.
#include "fx/capture/module_scopes.h"

#include <torch/torch.h>

#include "fx/capture/make_fx.h"
#include "fx/capture/tracer.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;

struct BlockImpl : torch::nn::Module {
  Tensor forward(Tensor x) { return torch::relu(norm(conv(x))); }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(2, 2, 1));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(2));
};
TORCH_MODULE(Block);

struct Net : torch::nn::Module {
  Tensor forward(Tensor x) {
    x = torch::tanh(blocks->forward(x * 2)).mean({2, 3});
    return head(head(x).sin());
  }
  torch::nn::Sequential blocks = register_module("blocks", torch::nn::Sequential(Block(), Block()));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(2, 2));
};

std::string scope_of(const Graph& graph, std::string_view call, std::size_t index = 0) {
  const auto* stack = graph.find_calls(call).at(index)->meta().get<ModuleStack>("nn_module_stack");
  std::string text;
  if (stack)
    for (const auto& [path, name] : *stack) text += path + ":" + name + " ";
  return text;
}

TEST(ModuleScopes, nodes_belong_to_the_owner_of_what_they_read) {
  auto net = std::make_shared<Net>();
  net->eval();
  auto gm = make_fx(net, {torch::ones({1, 2, 3, 3})});
  const Graph& graph = gm->graph();
  const std::string blocks = "blocks:torch.nn.Sequential ";
  EXPECT_THAT(scope_of(graph, "aten::conv2d", 1), testing::StartsWith(blocks + "blocks.1:"));
  EXPECT_THAT(scope_of(graph, "aten::conv2d", 1),
              testing::HasSubstr(" blocks.1.conv:torch.nn.Conv2d"));
  EXPECT_THAT(scope_of(graph, "aten::batch_norm"),
              testing::HasSubstr(" blocks.0.norm:torch.nn.BatchNorm2d"));
  EXPECT_EQ(scope_of(graph, "aten::relu"), blocks) << "between two blocks";
  EXPECT_EQ(scope_of(graph, "aten::mul"), "") << "before all modules";
  EXPECT_EQ(scope_of(graph, "aten::tanh"), "") << "between blocks and head";
  EXPECT_THAT(scope_of(graph, "aten::addmm"), testing::StartsWith("head:torch.nn.Linear"));
  EXPECT_THAT(scope_of(graph, "aten::t"), testing::StartsWith("head:torch.nn.Linear"));
  EXPECT_EQ(scope_of(graph, "aten::sin"), "") << "between two calls of one layer";
}

TEST(ModuleScopes, errors_name_the_module) {
  auto net = std::make_shared<Net>();
  auto gm = make_fx(net, {torch::ones({1, 2, 3, 3})});
  gm->set_input_guards({});
  EXPECT_FX_ERROR((*gm)(torch::ones({1, 5, 3, 3})), RunError, kNodeFailed,
                  "Module: blocks.0.conv (");
}

TEST(ModuleScopes, names_follow_modules_on_request) {
  auto net = std::make_shared<Net>();
  auto gm = make_fx(net, {torch::ones({1, 2, 3, 3})});
  name_by_module(gm->graph());
  gm->graph().lint({.strict = true});
  EXPECT_NE(gm->graph().find_node("blocks_0_conv_conv2d"), nullptr) << gm->graph();
  EXPECT_NE(gm->graph().find_node("blocks_1_norm_batch_norm"), nullptr);
  EXPECT_NE(gm->graph().find_node("head_addmm"), nullptr);
  EXPECT_NE(gm->graph().find_node("head_addmm_1"), nullptr);
}

TEST(ModuleScopes, results_in_parts_and_programs_without_modules) {
  torch::nn::LSTM lstm(2, 2);
  struct Holder : torch::nn::Module {
    Tensor forward(Tensor x) { return std::get<0>(lstm(x)); }
    torch::nn::LSTM lstm = register_module("lstm", torch::nn::LSTM(2, 2));
  };
  auto gm = make_fx(std::make_shared<Holder>(), {torch::ones({3, 1, 2})});
  EXPECT_THAT(scope_of(gm->graph(), "operator.getitem"), testing::StartsWith("lstm:torch.nn.LSTM"));
  gm = make_fx([](Tensor x) { return x + 1; }, {torch::ones({2})});
  EXPECT_EQ(scope_of(gm->graph(), "aten::add"), "");
}

}  // namespace
}  // namespace fx
