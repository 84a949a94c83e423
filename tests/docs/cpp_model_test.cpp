// The snippets of docs/guide/cpp_model.md.

#include <fx/fx.h>
#include <fx/passes/functionalize.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

// [model]
// Stock LibTorch: nothing in it knows of fxcpp.
struct Classifier : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    x = norm(conv(x)).relu_();
    x = x.mean({2, 3});
    return head(x);
  }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 4, 3));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(4));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(4, 2));
};
// [end]

TEST(CppModel, captured_and_run) {
  Page page("guide/cpp_model.md");
  Capture captured;
  // [capture]
  auto net = std::make_shared<Classifier>();
  net->eval();
  auto gm = fx::make_fx(net, {torch::rand({1, 3, 8, 8})});
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("capture", captured.text());
  // [run]
  torch::Tensor x = torch::rand({1, 3, 8, 8});
  torch::Tensor y = (*gm)(x).toTensor();
  // [end]
  EXPECT_TRUE(torch::equal(y, net->forward(x)));
  const std::string path =
      (std::filesystem::temp_directory_path() / "fxcpp_docs_classifier.pt2").string();
  // [save]
  fx::save_pt2(*gm, path,
               {.example_inputs = {x}});  // for torch.export.load in Python, and for fx::load
  // [end]
  EXPECT_TRUE(torch::allclose((*fx::load(path))(x).toTensor(), y));
  std::filesystem::remove(path);
}

TEST(CppModel, trained) {
  Page page("guide/cpp_model.md");
  Capture captured;
  torch::manual_seed(0);
  // [train]
  auto net = std::make_shared<Classifier>();
  torch::Tensor x = torch::rand({4, 3, 8, 8}), labels = torch::tensor({0, 1, 1, 0});
  auto gm = fx::make_fx(net, {x});  // in train mode
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    torch::cross_entropy_loss((*gm)(x).toTensor(), labels).backward();
    optimizer.step();
  }
  std::cout << "batches seen: " << net->norm->num_batches_tracked.item<int>() << "\n";
  // [end]
  page.expect_output("train", captured.text());
}

TEST(CppModel, assumptions) {
  Page page("guide/cpp_model.md");
  Capture captured;
  // [assumptions]
  auto program = [](const torch::Tensor& x) { return x.max().item<float>() > 1 ? x / x.max() : x; };
  auto gm = fx::make_fx(program, {torch::tensor({2.0f, 4.0f})});
  for (const fx::Assumption& assumption : *gm->meta().get<fx::Assumptions>("assumptions"))
    std::cout << fx::assumption_kind_name(assumption.kind) << ": " << assumption.text << "\n";
  try {
    (*gm)(torch::tensor({0.5f, 0.25f}));
  } catch (const fx::RunError& error) {
    std::cout << error.text().substr(0, error.text().find('\n')) << "\n";
  }
  // [end]
  page.expect_output("assumptions", captured.text());
}

TEST(CppModel, guards) {
  Page page("guide/cpp_model.md");
  Capture captured;
  auto program = [](const torch::Tensor& x) { return x.max().item<float>() > 1 ? x / x.max() : x; };
  // [guards]
  fx::Captured model = fx::capture_with_guards(program);
  torch::Tensor y = model(torch::tensor({2.0f, 4.0f})).toTensor();  // the first call captures
  y = model(torch::tensor({4.0f, 1.0f})).toTensor();                // the same graph
  y = model(torch::tensor({0.5f, 0.25f})).toTensor();  // another maximum: captured again
  y = model(torch::ones({3})).toTensor();              // another size, too
  std::cout << model.graphs().size() << " graphs\n";
  // [end]
  page.expect_output("guards", captured.text());
}

TEST(CppModel, sizes) {
  Page page("guide/cpp_model.md");
  Capture captured;
  // [sizes]
  torch::nn::GRU gru(torch::nn::GRUOptions(4, 8).batch_first(true));
  auto program = [&](torch::Tensor x) { return std::get<0>(gru(x)).sum(1) / x.size(1); };
  auto gm = fx::make_fx(program, {torch::rand({2, 5, 4})},
                        {.dynamic = {{"x", {{0, "batch"}, {1, {"time", 2, 100}}}}}});
  std::cout << gm->input_guards()[0].str() << "\n";
  for (const fx::Assumption& assumption : *gm->meta().get<fx::Assumptions>("assumptions"))
    if (assumption.kind == fx::Assumption::Kind::kSize) std::cout << assumption.text << "\n";
  for (const fx::Node* zeros : gm->graph().find_calls("aten::zeros"))
    std::cout << zeros->format_node() << "\n";
  std::cout << (*gm)(torch::rand({7, 30, 4})).toTensor().sizes() << "\n";
  // [end]
  page.expect_output("sizes", captured.text());
}

TEST(CppModel, functional) {
  Page page("guide/cpp_model.md");
  Capture captured;
  // [functionalize]
  auto gm = fx::make_fx(
      [](torch::Tensor x) {
        x[0].mul_(2);
        return x + 1;
      },
      {torch::ones({2})});
  fx::functionalize(*gm, {torch::ones({2})});
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("functionalize", captured.text());
}

}  // namespace
}  // namespace fx::docs_test
