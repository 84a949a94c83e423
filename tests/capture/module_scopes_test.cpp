// Which module a node of a captured program belongs to, and names after modules.
#include "fx/capture/module_scopes.h"

#include <torch/torch.h>

#include "fx/capture/make_fx.h"
#include "fx/capture/nn.h"
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

// With holders of fx::nn the modules are those that were called, whatever they own.
struct ExactBlockImpl : torch::nn::Module {
  Tensor forward(Tensor x) {
    x = drop(act(conv(x)));
    return act(x).sigmoid();  // the same module again, then no module
  }
  nn::Conv2d conv = register_module("conv", nn::Conv2d(2, 2, 1));
  nn::ReLU act = register_module("act", nn::ReLU());
  nn::Dropout drop = register_module("drop", nn::Dropout(0.5));
};
FX_MODULE(ExactBlock);

struct Exact : torch::nn::Module {
  Exact() {
    head->weight = tied->weight;  // one parameter of two modules
  }
  Tensor forward(Tensor x) {
    x = blocks(x.exp());
    x = shared(shared(x).tanh());
    x = x.mean({2, 3}).sinh();
    x = head(tied(x).cos());
    x = torch::linear(x, tied->weight).tan();  // a parameter, and no call of its module
    return plain->forward(x).erf();
  }
  nn::Sequential blocks = register_module(
      "blocks", nn::Sequential(ExactBlock(), nn::ReLU(), nn::Dropout(0.1), nn::GELU()));
  ExactBlock shared = register_module("shared", ExactBlock());
  nn::Linear tied = register_module("tied", nn::Linear(2, 2));
  nn::Linear head = register_module("head", nn::Linear(2, 2));
  torch::nn::Sequential plain =
      register_module("plain", torch::nn::Sequential(torch::nn::Linear(2, 2), torch::nn::ELU()));
  ExactBlock again = register_module("again", shared);
};

TEST(ModuleScopes, exact_with_holders) {
  auto net = std::make_shared<Exact>();
  auto gm = make_fx(net, {torch::ones({1, 2, 3, 3})});
  const Graph& graph = gm->graph();
  auto path = [&](std::string_view call, std::size_t index = 0) {
    const auto* stack =
        graph.find_calls(call).at(index)->meta().get<ModuleStack>("nn_module_stack");
    return stack ? stack->back().first : std::string();
  };
  EXPECT_EQ(path("aten::exp"), "");
  EXPECT_EQ(path("aten::conv2d"), "blocks.0.conv");
  EXPECT_EQ(path("aten::relu"), "blocks.0.act");
  EXPECT_EQ(path("aten::dropout"), "blocks.0.drop") << "without parameters";
  EXPECT_EQ(path("aten::relu", 1), "blocks.0.act") << "called twice";
  EXPECT_EQ(path("aten::sigmoid"), "blocks.0") << "no module of its own";
  EXPECT_EQ(path("aten::relu", 2), "blocks.1");
  EXPECT_EQ(path("aten::dropout", 1), "blocks.2");
  EXPECT_EQ(path("aten::gelu"), "blocks.3");
  EXPECT_EQ(path("aten::conv2d", 1), "shared.conv") << "registered twice: the first name";
  EXPECT_EQ(path("aten::tanh"), "");
  EXPECT_EQ(path("aten::conv2d", 2), "shared.conv");
  EXPECT_EQ(path("aten::sinh"), "");
  EXPECT_EQ(path("aten::cos"), "") << "between two modules";
  EXPECT_EQ(path("aten::tan"), "");
  EXPECT_EQ(path("aten::elu"), "") << "a plain holder: the parent";
  EXPECT_EQ(path("aten::erf"), "");
  std::vector<std::string> of_products;
  for (const Node* node : graph.find_calls("aten::addmm"))
    of_products.push_back(node->meta().get<ModuleStack>("nn_module_stack")->back().first);
  EXPECT_THAT(of_products, testing::ElementsAre("tied", "head", "plain.0"))
      << "who is called, not who owns the weight";
  const auto* stack =
      graph.find_calls("aten::conv2d").at(0)->meta().get<ModuleStack>("nn_module_stack");
  ASSERT_EQ(stack->size(), 3u);
  EXPECT_EQ(stack->at(0), (std::pair<std::string, std::string>("blocks", "torch.nn.Sequential")));
  EXPECT_EQ(stack->at(1).first, "blocks.0");
}

TEST(ModuleScopes, a_module_below_two_parents_is_that_of_the_caller) {
  struct HalfImpl : torch::nn::Module {
    explicit HalfImpl(ExactBlock block) : inner(register_module("inner", block)) {}
    Tensor forward(Tensor x) { return inner(x); }
    ExactBlock inner;
  };
  struct Whole : torch::nn::Module {
    Tensor forward(Tensor x) { return right(left(x)); }
    ExactBlock block;
    fx::nn::ModuleHolder<HalfImpl> left =
        register_module("left", fx::nn::ModuleHolder<HalfImpl>(block));
    fx::nn::ModuleHolder<HalfImpl> right =
        register_module("right", fx::nn::ModuleHolder<HalfImpl>(block));
  };
  auto gm = make_fx(std::make_shared<Whole>(), {torch::ones({1, 2, 3, 3})});
  std::vector<std::string> paths;
  for (const Node* node : gm->graph().find_calls("aten::sigmoid"))
    paths.push_back(node->meta().get<ModuleStack>("nn_module_stack")->back().first);
  EXPECT_THAT(paths, testing::ElementsAre("left.inner", "right.inner"));
}

TEST(ModuleScopes, an_exception_in_a_module_leaves_no_scope) {
  struct Throws : torch::nn::Module {
    Tensor forward(Tensor x) {
      try {
        conv(x.view({2}));
      } catch (const std::exception&) {
      }
      return x.exp();
    }
    nn::Conv2d conv = register_module("conv", nn::Conv2d(2, 2, 1));
  };
  auto gm = make_fx(std::make_shared<Throws>(), {torch::ones({2})});
  EXPECT_EQ(scope_of(gm->graph(), "aten::exp"), "");
}

}  // namespace
}  // namespace fx
