#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "fx/graph/graph_module.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

constexpr int kThreads = 8;

// Runs `work(thread)` on all threads at once and reports what any of them threw.
template <typename Work>
void on_all_threads(Work&& work) {
  std::atomic<int> ready{0};
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      try {
        work(t);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(t)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

std::shared_ptr<GraphModule> shared_module() {
  register_wrapped_function("thread_test_scale", [](Values args, KwValues) -> Value {
    return args[0].toTensor() * args[1].toScalar();
  });
  auto inner = std::make_shared<Graph>();
  Node& a = inner->placeholder("a");
  inner->output(inner->call_function("torch.relu", {a}));
  auto graph = std::make_shared<Graph>();
  auto gm = std::make_shared<GraphModule>(graph);
  gm->set_parameter("weight", torch::eye(4));
  gm->set_submodule("block", std::make_shared<GraphModule>(inner));
  gm->set_submodule("linear", torch::nn::Linear(4, 4).ptr());
  Node& x = graph->placeholder("x");
  Node& n = graph->placeholder("n");
  Node& weight = graph->get_attr("weight");
  Node& product = graph->call_function("operator.matmul", {x, weight});
  Node& relu = graph->call_module("block", {product});
  Node& linear = graph->call_module("linear", {relu});
  Node& scaled = graph->call_function("thread_test_scale", {linear, n});
  Node& view = graph->call_method("view", {scaled, -1});
  Node& parts = graph->call_function("torch.chunk", {view, 2});
  Node& first = graph->call_function("operator.getitem", {parts, 0});
  graph->output(Argument::tuple({first, Argument::list({1, n}), view}));
  gm->recompile();
  return gm;
}

TEST(Threads, F62_eight_threads_run_one_graph_module) {
  auto gm = shared_module();
  torch::NoGradGuard no_grad;
  // The wanted results, one thread at a time.
  std::vector<Value> inputs;
  std::vector<std::string> wanted;
  for (int t = 0; t < kThreads; ++t) {
    torch::manual_seed(t);
    inputs.emplace_back(torch::randn({t + 1, 4}));
    wanted.push_back(to_string(gm->forward({inputs.back(), t})));
  }
  on_all_threads([&](int t) {
    torch::NoGradGuard guard;
    const auto at = static_cast<std::size_t>(t);
    for (int i = 0; i < 200; ++i)
      if (to_string(gm->forward({inputs[at], t})) != wanted[at])
        throw std::runtime_error("another result in run " + std::to_string(i));
  });
}

TEST(Threads, errors_in_one_thread_leave_the_others_alone) {
  auto gm = shared_module();
  on_all_threads([&](int t) {
    torch::NoGradGuard guard;
    const at::Tensor good = torch::ones({2, 4}), bad = torch::ones({2, 3});
    for (int i = 0; i < 100; ++i) {
      if (t % 2 == 0) {
        gm->forward({good, 1});
        continue;
      }
      try {
        gm->forward({bad, 1});
        throw std::logic_error("a run with a wrong shape did not fail");
      } catch (const RunError& error) {
        if (error.code() != ErrorCode::kNodeFailed) throw;
      }
    }
  });
}

TEST(Threads, an_interpreter_each_on_one_graph) {
  auto gm = shared_module();
  torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({2, 4});
  const std::string wanted = to_string(gm->forward({x, 2}));
  on_all_threads([&](int) {
    torch::NoGradGuard guard;
    Interpreter interpreter(*gm);
    for (int i = 0; i < 50; ++i)
      if (to_string(interpreter.run({x, 2})) != wanted)
        throw std::runtime_error("another result in run " + std::to_string(i));
  });
}

TEST(Threads, functions_and_module_types_may_be_registered_meanwhile) {
  auto gm = shared_module();
  on_all_threads([&](int t) {
    torch::NoGradGuard guard;
    const at::Tensor x = torch::ones({2, 4});
    for (int i = 0; i < 50; ++i) {
      if (t == 0)
        register_wrapped_function("thread_test_scale", [](Values args, KwValues) -> Value {
          return args[0].toTensor() * args[1].toScalar();
        });
      gm->forward({x, 1});
    }
  });
}

}  // namespace
}  // namespace fx
