// The snippets of docs/guide/tour.md.

#include <fx/fx.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

// [net]
namespace nn = fx::nn;  // torch::nn's modules, visible to the tracer

struct Net : torch::nn::Module {
  nn::Linear hidden = register_module("hidden", nn::Linear(4, 8));
  nn::Linear last = register_module("last", nn::Linear(8, 2));
  auto forward(auto x) { return last(relu(hidden(x))) * 2; }
};
// [end]

// [shapes]
struct Shapes : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  fx::Value run_node(fx::Node& node) override {
    fx::Value value = fx::Interpreter::run_node(node);
    std::cout << node.name() << ": " << fx::describe(value) << "\n";
    return value;
  }
};
// [end]

TEST(Tour, S3_32_a_net_is_captured_edited_run_and_rewritten) {
  Page page("guide/tour.md");
  Capture captured;
  torch::manual_seed(0);
  // [capture]
  auto net = std::make_shared<Net>();
  std::shared_ptr<fx::GraphModule> gm = fx::symbolic_trace(net);
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("capture", captured.text());

  Capture table;
  // [table]
  gm->graph().print_tabular();
  // [end]
  page.expect_output("table", table.text());

  Capture look;
  // [look]
  fx::Node& mul = *gm->graph().find_node("mul");
  std::cout << mul.name() << " is a " << fx::opcode_name(mul.op()) << " of " << mul.target().str()
            << " with " << fx::repr(mul.args()) << "\n";
  for (fx::Node* input : mul.all_input_nodes()) std::cout << "reads " << input->name() << "\n";
  for (fx::Node* user : mul.users()) std::cout << "is read by " << user->name() << "\n";
  // [end]
  page.expect_output("look", look.text());

  Capture run;
  // [run]
  at::Tensor x = torch::randn({3, 4});
  at::Tensor y = (*gm)(x).toTensor();
  std::cout << std::boolalpha << torch::equal(y, net->forward(x)) << "\n";
  // [end]
  page.expect_output("run", run.text());

  Capture interpret;
  // [interpret]
  Shapes(*gm).run({x});
  // [end]
  page.expect_output("interpret", interpret.text());

  Capture edit;
  // [edit]
  fx::Graph& graph = gm->graph();
  for (fx::Node& node : graph.nodes())  // editing while iterating is safe
    if (node.calls("torch.relu")) {
      auto at = graph.inserting_after(node);
      fx::Node& gelu = graph.call_function("aten::gelu", {node.arg(0)});
      node.replace_all_uses_with(gelu);
      graph.erase_node(node);
    }
  graph.lint();
  gm->recompile();
  std::cout << torch::equal((*gm)(x).toTensor(), net->last(torch::gelu(net->hidden(x))) * 2)
            << "\n";
  // [end]
  page.expect_output("edit", edit.text());

  Capture pattern;
  // [pattern]
  auto matches =
      fx::replace_pattern(*gm, [](auto x) { return x * 2; }, [](auto x) { return x + x; });
  std::cout << matches.size() << " match\n" << gm->graph() << "\n";
  // [end]
  page.expect_output("pattern", pattern.text());

  Capture passes;
  // [passes]
  auto twice = fx::symbolic_trace([](auto x) { return relu(x) + relu(x); });
  fx::PassManager("cse,dce").run(*twice);
  std::cout << twice->graph() << "\n";
  // [end]
  page.expect_output("passes", passes.text());
}

TEST(Tour, S3_32_an_exported_program_is_loaded) {
  Page page("guide/tour.md");
  const std::string models = FXCPP_SOURCE_DIR "/models";
  Capture captured;
  // [load]
  auto gm = fx::load(models + "/digits.pt2");
  at::Tensor images = fx::io::read_npy(models + "/digits_test_x.npy");
  at::Tensor labels = fx::io::read_npy(models + "/digits_test_y.npy");
  at::Tensor classes = (*gm)(images).toTensor().argmax(1);
  std::cout << (classes == labels).sum().item<int>() << " of " << labels.numel() << " right\n";
  // [end]
  page.expect_output("load", captured.text());
}

TEST(Tour, S3_32_unmodified_code_is_captured_by_its_operators) {
  Page page("guide/tour.md");
  Capture captured;
  torch::manual_seed(0);
  // [make_fx]
  torch::nn::Linear linear(4, 2);
  auto program = [&](const at::Tensor& x) { return torch::tanh(linear(x)).add_(1); };
  auto gm = fx::make_fx(program, {torch::randn({3, 4})});
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("make_fx", captured.text());
}

}  // namespace
}  // namespace fx::docs_test
