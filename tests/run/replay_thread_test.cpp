#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "fx/interpret/interpreter.h"
#include "fx/ops/stop.h"
#include "fx/run/replay.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

constexpr int kThreads = 8;
constexpr int kCalls = 400;

std::shared_ptr<GraphModule> network() {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& w = graph->get_attr("w");
  Node& a = graph->call_function("aten::mul.Tensor", {x, 2});
  Node& b = graph->call_function("aten::mm", {a, w});
  Node& t = graph->call_function("aten::t", {b});
  Node& c = graph->call_function("aten::sin", {t});
  Node& d = graph->call_function("aten::add.Tensor", {c, t});
  graph->output(Argument::tuple({graph->call_function("aten::neg", {d}), b}));
  const auto module = std::make_shared<GraphModule>();
  module->set_buffer("w", torch::eye(4) * 0.5 + 0.25);
  module->set_graph(graph);
  return module;
}

// Eight threads call one Replay with different sizes, the first calls at once; every result is kept
// and compared at the end.
TEST(ReplayThreads, different_sizes_from_the_first_call_on) {
  const auto module = network();
  for (int round = 0; round < 4; ++round) {
    const Replay replay(module);
    std::atomic<int> ready{0};
    std::vector<std::string> errors(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const torch::NoGradGuard no_grad;
        std::vector<at::Tensor> inputs;
        Values results;
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        try {
          for (int call = 0; call < kCalls; ++call) {
            inputs.push_back(torch::full({1 + (t + call) % 4, 4}, 0.01 * (t * 100 + call)));
            results.push_back(replay.run({inputs.back()}));
          }
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            const Values wanted = elements(Interpreter(*module).run({inputs[i]}));
            const Values found = elements(results[i]);
            for (std::size_t k = 0; k < 2; ++k)
              if (!torch::equal(found[k].toTensor(), wanted[k].toTensor()))
                throw std::runtime_error("another result in call " + std::to_string(i));
          }
        } catch (const std::exception& error) {
          errors[static_cast<std::size_t>(t)] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    const Replay::Statistics s = replay.statistics();
    EXPECT_EQ(s.replays + s.ordinary + s.recorded, std::uint64_t{kThreads} * kCalls);
    EXPECT_GT(s.replays, 100u);
    EXPECT_EQ(s.layouts, 4u);
    EXPECT_EQ(s.frames_lost, 0u);
    EXPECT_LE(s.frames, 4u * 32u);
  }
}

// Some are stopped, some fail, some print what there is: the others do not notice.
TEST(ReplayThreads, stops_errors_and_readers) {
  const auto module = network();
  const Replay replay(module);
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const torch::NoGradGuard no_grad;
      const at::Tensor good = torch::full({3, 4}, 1.0 + t);
      const at::Tensor bad = torch::ones({3, 5});
      const std::string wanted = to_string(Interpreter(*module).run({good}));
      std::stop_source source;
      source.request_stop();
      for (int call = 0; call < 40; ++call) {
        try {
          if (t % 4 == 1) {
            const StopScope scope(source.get_token());
            replay.run({good});
            errors[static_cast<std::size_t>(t)] = "was not stopped";
          } else if (t % 4 == 2) {
            replay.run({bad});
            errors[static_cast<std::size_t>(t)] = "did not fail";
          } else if (t % 4 == 3) {
            replay.str();
            replay.summary();
          }
        } catch (const RunError& error) {
          if (error.code() != (t % 4 == 1 ? ErrorCode::kCancelled : ErrorCode::kNodeFailed))
            errors[static_cast<std::size_t>(t)] = error.what();
        }
        if (to_string(replay.run({good})) != wanted)
          errors[static_cast<std::size_t>(t)] = "another result";
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace fx
