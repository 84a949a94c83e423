// The C++ of README.md. scripts/doc_snippets.py compares it: each block there has to be made of the
// regions that one of these lines names.
// README: include, first
// README: include, net, capture
// README: compile
// README: shapes, watch

// [include]
#include <fx/fx.h>
// [end]
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "tests/docs/page.h"

// [net]
namespace nn = fx::nn;  // torch::nn's modules, visible to the tracer

struct Net : torch::nn::Module {
  nn::Linear fc = register_module("fc", nn::Linear(784, 10));
  auto forward(auto x) { return log_softmax(relu(fc(x)), 1); }
};
// [end]

// [shapes]
struct Shapes : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  fx::Value run_node(fx::Node& n) override {
    fx::Value v = fx::Interpreter::run_node(n);
    std::cout << n.name() << ": " << fx::describe(v) << "\n";
    return v;
  }
};
// [end]

namespace fx::docs_test {
namespace {

TEST(Readme, S4_66_the_quick_start_calls_a_graph_module) {
  // A model under the name that README.md uses.
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("fxcpp_readme_" + std::to_string(getpid()));
  fs::create_directory(folder);
  fs::create_symlink(FXCPP_SOURCE_DIR "/models/digits.pt2", folder / "resnet50.pt2");
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  const at::Tensor x = torch::ones({4, 1, 8, 8});
  Capture captured;
  // [first]
  auto gm = fx::load("resnet50.pt2");  // a file that Python's torch.export.save wrote
  gm->graph().print_tabular();

  for (fx::Node& n : gm->graph().nodes())  // editing while iterating is safe
    if (n.calls("aten::relu")) {
      auto at = gm->graph().inserting_after(n);
      fx::Node& g = gm->graph().call_function("aten::gelu", {n.arg(0)});
      n.replace_all_uses_with(g);
      gm->graph().erase_node(n);
    }
  gm->graph().lint();
  gm->recompile();
  at::Tensor y = (*gm)(x).toTensor();
  // [end]
  fs::current_path(before);
  fs::remove_all(folder);
  EXPECT_NE(captured.text().find("aten::relu"), std::string::npos);
  EXPECT_TRUE(gm->graph().find_calls("aten::relu").empty());
  EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{4, 10}));
}

TEST(Readme, S3_31_the_examples_run) {
  Capture captured;
  // [capture]
  auto gm = fx::symbolic_trace(std::make_shared<Net>());
  std::cout << gm->graph();
  fx::PassManager("cse,dce").run(*gm);
  // [end]
  EXPECT_NE(captured.text().find("%log_softmax"), std::string::npos);
  at::Tensor x = torch::randn({2, 784});
  Capture explained;
  // [compile]
  auto fast = fx::compile(gm);  // or fx::compile(net), of any torch::nn code
  torch::NoGradGuard no_grad;
  at::Tensor y = fast(x).toTensor();  // any batch size, any thread
  std::cout << fast.explain();
  // [end]
  EXPECT_TRUE(torch::allclose(y, (*gm)(x).toTensor()));
  EXPECT_NE(explained.text().find("log_softmax"), std::string::npos);
  Capture watched;
  // [watch]
  Shapes(*gm).run({x});
  // [end]
  EXPECT_EQ(watched.text(),
            "x: Tensor f32[2, 784]\nfc: Tensor f32[2, 10]\nrelu: Tensor f32[2, 10]\n"
            "log_softmax: Tensor f32[2, 10]\noutput: Tensor f32[2, 10]\n");
}

}  // namespace
}  // namespace fx::docs_test
