// The snippets of docs/guide/training.md.

#include <fx/compile/training.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

// [model]
struct Digits : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) { return second(torch::gelu(first(x))); }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(64, 32));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(32, 10));
};
// [end]

TEST(TrainingGuide, trains) {
  Page page("guide/training.md");
  Capture captured;
  torch::manual_seed(0);
  // [train]
  auto net = std::make_shared<Digits>();
  auto loss = fx::aot_function(
      [net](torch::Tensor x, torch::Tensor labels) {
        return torch::cross_entropy_loss(net->forward(x), labels);
      },
      {.joint = {.module = net.get()}});

  torch::Tensor x = torch::rand({16, 64}), labels = torch::randint(10, {16});
  torch::optim::AdamW optimizer(net->parameters(), 0.01);
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    loss(x, labels).toTensor().backward();
    optimizer.step();
  }
  std::cout << "correct: " << net->forward(x).argmax(1).eq(labels).sum().item<int>() << "\n";
  // [end]
  page.expect_output("train", captured.text());
}

TEST(TrainingGuide, graphs) {
  Page page("guide/training.md");
  Capture captured;
  // [graphs]
  auto net = std::make_shared<Digits>();
  auto joint = fx::joint(net, {torch::rand({16, 64})});
  fx::TrainingGraphs graphs = fx::min_cut_rematerialization_partition(*joint, {.aggressive = true});
  std::cout << fx::default_partition(*joint).str() << "\n" << graphs.str() << "\n";
  std::cout << graphs.forward->graph() << "\n" << graphs.backward->graph() << "\n";
  // [end]
  page.expect_output("graphs", captured.text());
  // [function]
  fx::TrainingFunction trained(graphs);
  torch::Tensor y = trained(torch::rand({16, 64})).toTensor();
  y.square().mean().backward();
  // [end]
  EXPECT_TRUE(net->first->weight.grad().defined());
}

}  // namespace
}  // namespace fx::docs_test
