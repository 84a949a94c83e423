// The snippets of docs/guide/compile.md.

#include <fx/fx.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

namespace nn = fx::nn;

TEST(CompilePage, S4_93_one_call_more) {
  torch::manual_seed(0);
  Page page("guide/compile.md");
  Capture captured;
  // [compile]
  torch::nn::Sequential net(torch::nn::Linear(10, 5), torch::nn::ReLU(), torch::nn::Linear(5, 2));
  auto gm = fx::symbolic_trace(net);
  auto fast = fx::compile(gm, {.mode = "reduce-overhead"});

  torch::NoGradGuard no_grad;
  at::Tensor x = torch::randn({1, 10});
  at::Tensor y = fast(x).toTensor();
  std::cout << y.sizes() << "\n";
  if (torch::allclose(y, net->forward(x))) std::cout << "Outputs match.\n";
  for (int i = 0; i < 5; ++i) fast(x);
  std::cout << "compiled " << fast.num_compilations() << " time\n";
  // [end]
  page.expect_output("compile", captured.text());
}

TEST(CompilePage, S0_83_code_that_nobody_traced) {
  torch::manual_seed(0);
  Page page("guide/compile.md");
  Capture captured;
  // [program]
  auto program = [](at::Tensor x) { return x * 2 + 1; };
  auto fast = fx::compile(program);
  at::Tensor y = fast(torch::randn({5})).toTensor();
  std::cout << y.sizes() << "\n";
  // [end]
  EXPECT_TRUE(torch::allclose(
      y, torch::tensor({4.081992, 0.413142, -3.357579, 2.136863, -1.169045}), 1e-6, 1e-6));
  page.expect_output("program", captured.text());
}

TEST(CompilePage, S0_01_four_routes) {
  Page page("guide/compile.md");
  Capture captured;
  // [routes]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) + 1; });
  at::Tensor x = torch::tensor({-2.0, 3.0});

  std::cout << (*gm)(x).toTensor().sum().item<double>() << "\n";  // 1. call it

  struct Twice : fx::Interpreter {  // 2. run it your way, node by node
    using fx::Interpreter::Interpreter;
    fx::Value run_node(fx::Node& node) override {
      fx::Value value = fx::Interpreter::run_node(node);
      return node.calls("torch.relu") ? fx::Value(value.toTensor() * 2) : value;
    }
  };
  std::cout << Twice(*gm).run({x}).toTensor().sum().item<double>() << "\n";

  for (fx::Node& node : gm->graph().nodes())  // 3. change it
    if (node.calls("operator.add")) node.update_arg(1, 100);
  gm->recompile();
  std::cout << (*gm)(x).toTensor().sum().item<double>() << "\n";

  auto fast = fx::compile(gm);  // 4. compile it
  std::cout << fast(x).toTensor().sum().item<double>() << "\n";
  // [end]
  page.expect_output("routes", captured.text());
}

TEST(CompilePage, S0_82_hooks_on_nodes_need_the_interpreter) {
  Page page("guide/compile.md");
  Capture captured;
  // [opt_out]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) + 1; });
  auto slow = fx::compile(gm, {.backend = "interpret"});  // same interface, node by node

  fx::Interpreter interpreter(*gm);  // and with hooks
  auto handle = interpreter.register_node_post_hook(
      [](fx::Node& node, const fx::Value&) { std::cout << node.name() << "\n"; });
  at::Tensor y = interpreter.run({torch::ones({2})}).toTensor();
  std::cout << torch::equal(y, slow(torch::ones({2})).toTensor()) << "\n";
  // [end]
  page.expect_output("opt_out", captured.text());
}

TEST(CompilePage, calls_of_the_same_sizes) {
  Page page("guide/compile.md");
  Capture captured;
  // [reduce_overhead]
  auto step = [](at::Tensor x, at::Tensor w) {
    return torch::mm(torch::mm(x, w).softmax(-1), w).sum();
  };
  auto fast = fx::compile(step, {.backend = "plan", .mode = "reduce-overhead"});
  torch::NoGradGuard no_grad;
  at::Tensor x = torch::ones({2, 4}), w = torch::eye(4);
  at::Tensor first = fast(x, w).toTensor(), second = fast(x * 2, w).toTensor();
  std::cout << first.item<double>() << " " << second.item<double>() << "\n";
  std::cout << fast.stage("plan");
  // [end]
  page.expect_output("reduce_overhead", captured.text());
}

TEST(CompilePage, stopping_a_run) {
  Page page("guide/compile.md");
  Capture captured;
  // [stop]
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  std::stop_source stop;
  {
    fx::StopScope scope(stop.get_token());
    stop.request_stop();  // from any thread, at any time
    try {
      (*gm)(torch::ones({2}));
    } catch (const fx::RunError& error) {
      std::cout << (error.code() == fx::ErrorCode::kCancelled) << "\n";
    }
  }
  std::cout << (*gm)(torch::ones({2})).toTensor().sum().item<double>() << "\n";
  // [end]
  page.expect_output("stop", captured.text());
}

TEST(CompilePage, explain) {
  Page page("guide/compile.md");
  Capture captured;
  // [explain]
  auto attention = [](at::Tensor q, at::Tensor k, at::Tensor v) {
    at::Tensor scores = torch::matmul(q, k.transpose(-2, -1)) / 8.0;
    return torch::matmul(torch::softmax(scores + 0.5, -1), v);
  };
  auto fast = fx::compile(attention);
  torch::NoGradGuard no_grad;
  at::Tensor t = torch::randn({2, 16, 64});
  fast(t, t, t);
  std::cout << fast.stage("fused");
  std::cout << fast.stage("loops");
  // [end]
  page.expect_output("explain", captured.text());
  EXPECT_NE(fast.explain().find("kernel_0: 1 calls of machine code"), std::string::npos)
      << fast.explain();
}

TEST(CompilePage, wrong) {
  Page page("guide/compile.md");
  Capture captured;
  // [wrong]
  torch::manual_seed(0);
  auto gm = fx::symbolic_trace([](fx::Proxy x) {
    fx::Proxy y = (x * 2 + 1).relu();
    y = (y.matmul(y) * 1e-3).exp() + 1;
    return (y.matmul(y) * 2 + 1).relu();
  });
  fx::Values inputs{torch::rand({64, 64})};
  auto same = fx::find_wrong_kernel(*gm, inputs, {}, {.rtol = 1e-5, .atol = 1e-5});
  std::cout << (same ? "a kernel is wrong" : "all kernels agree") << "\n";
  // To the last bit the exponential is not eager's.
  auto found = fx::find_wrong_kernel(*gm, inputs, {}, {.rtol = 0, .atol = 0});
  std::cout << "kernel_" << *found->index << "\n" << found->operators << "\n";
  // [end]
  page.expect_output("wrong", captured.text());
}

TEST(CompilePage, S0_78_a_backend) {
  Page page("guide/compile.md");
  Capture captured;
  // [backend]
  fx::register_backend("counting", [](const std::shared_ptr<fx::GraphModule>& gm,
                                      const fx::Values& inputs, const fx::CompileOptions&) {
    std::cout << gm->graph().size() << " nodes, " << inputs.size() << " input\n";
    fx::PassManager("cse,dce").run(*gm);
    return fx::CompiledFunction([gm](fx::Values args, fx::KwValues kwargs) {
      return gm->forward(std::move(args), std::move(kwargs));
    });
  });
  auto fast = fx::compile([](at::Tensor x) { return torch::relu(x) + torch::relu(x); },
                          {.backend = "counting"});
  fast(torch::ones({3}));
  fast(torch::ones({3}));
  std::cout << fast(torch::ones({3})).toTensor().sum().item<double>() << "\n";
  // [end]
  page.expect_output("backend", captured.text());
}

}  // namespace
}  // namespace fx::docs_test
