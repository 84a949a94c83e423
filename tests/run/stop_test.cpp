#include "fx/ops/stop.h"

#include <torch/torch.h>

#include <chrono>
#include <thread>

#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "fx/run/replay.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// A chain of calls; the one at `stops_at` asks for a stop.
struct Stopping {
  Stopping() {
    register_wrapped_function("stop_test_step", [](Values args, KwValues) -> Value {
      ++current->calls;
      if (current->calls == current->stops_at) current->source.request_stop();
      return args[0].toTensor() + 1;
    });
    current = this;
  }
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;
  ~Stopping() { current = nullptr; }

  static std::shared_ptr<Graph> chain(int length) {
    auto graph = std::make_shared<Graph>();
    Node* last = &graph->placeholder("x");
    for (int i = 0; i < length; ++i) {
      last = &graph->call_function("stop_test_step", {*last});
      last = &graph->call_function("aten::neg", {graph->call_function("aten::neg", {*last})});
    }
    graph->output(*last);
    return graph;
  }

  int calls = 0;
  int stops_at = 0;
  std::stop_source source;
  static Stopping* current;
};
Stopping* Stopping::current = nullptr;

template <typename Run>
void expect_stops_everywhere(Run&& run) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::zeros({2});
  for (int stops_at = 1; stops_at < 6; ++stops_at) {
    Stopping stopping;
    stopping.stops_at = stops_at;
    {
      const StopScope scope(stopping.source.get_token());
      EXPECT_FX_ERROR(run(x), RunError, kCancelled, "While executing %neg");
    }
    EXPECT_EQ(stopping.calls, stops_at);
    EXPECT_EQ(x.use_count(), 1);
    // Without the scope it runs, though the token still says stop.
    EXPECT_TRUE(at::equal(run(x).toTensor(), torch::full({2}, 6.0f)));
    EXPECT_EQ(x.use_count(), 1);
  }
}

TEST(Stop, a_plan_stops_between_two_steps) {
  GraphModule gm(Stopping::chain(6));
  expect_stops_everywhere([&](const at::Tensor& x) { return gm(x); });
}

TEST(Stop, the_interpreter_stops_between_two_nodes) {
  GraphModule gm(Stopping::chain(6));
  expect_stops_everywhere([&](const at::Tensor& x) { return Interpreter(gm).run({x}); });
}

TEST(Stop, a_replay_stops_and_the_next_call_is_right) {
  const auto gm = std::make_shared<GraphModule>(Stopping::chain(6));
  const Replay replay(gm);
  expect_stops_everywhere([&](const at::Tensor& x) { return replay.run({x}); });
  EXPECT_GT(replay.statistics().replays, 3u);
}

TEST(Stop, graphs_inside_of_graphs_stop_and_the_code_is_kept) {
  auto outer = std::make_shared<Graph>();
  Node& x = outer->placeholder("x");
  outer->output(outer->call_module("inner", {outer->call_function("aten::neg", {x})}));
  GraphModule gm;
  gm.set_submodule("inner", std::make_shared<GraphModule>(Stopping::chain(3)));
  gm.set_graph(outer);
  Stopping stopping;
  stopping.stops_at = 2;
  const StopScope scope(stopping.source.get_token());
  EXPECT_FX_ERROR(gm(torch::zeros({2})), RunError, kCancelled, "While executing %inner");
  EXPECT_EQ(stopping.calls, 2);
}

TEST(Stop, a_request_before_the_run_stops_it_at_once) {
  GraphModule gm(Stopping::chain(3));
  Stopping stopping;
  stopping.source.request_stop();
  const StopScope scope(stopping.source.get_token());
  EXPECT_FX_ERROR(gm(torch::zeros({2})), RunError, kCancelled, "stopped on request");
  EXPECT_EQ(stopping.calls, 0);
}

TEST(Stop, scopes_inside_of_scopes_and_other_threads) {
  GraphModule gm(Stopping::chain(2));
  Stopping stopping;
  EXPECT_EQ(StopScope::current(), nullptr);
  std::stop_source outer;
  std::stop_source inner;
  {
    const StopScope a(outer.get_token());
    {
      const StopScope b(inner.get_token());
      gm(torch::zeros({2}));
      outer.request_stop();  // the inner one does not hide it
      EXPECT_FX_ERROR(gm(torch::zeros({2})), RunError, kCancelled, "");
    }
    EXPECT_EQ(StopScope::current(), &a);
    // Another thread has no part in it.
    std::thread([&] { EXPECT_NO_THROW(gm(torch::zeros({2}))); }).join();
  }
  EXPECT_EQ(StopScope::current(), nullptr);
  // A token that nobody can ask anything of never stops.
  const StopScope none{std::stop_token()};
  EXPECT_NO_THROW(gm(torch::zeros({2})));
}

TEST(Stop, another_thread_stops_a_long_run) {
  register_wrapped_function("stop_test_sleep", [](Values args, KwValues) -> Value {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::move(args[0]);
  });
  auto graph = std::make_shared<Graph>();
  Node* last = &graph->placeholder("x");
  for (int i = 0; i < 20000; ++i) last = &graph->call_function("stop_test_sleep", {*last});
  graph->output(*last);
  GraphModule gm(graph);
  std::stop_source source;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    source.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  {
    const StopScope scope(source.get_token());
    EXPECT_FX_ERROR(gm(torch::zeros({2})), RunError, kCancelled, "stopped on request");
  }
  stopper.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 10);  // of the 20 that it would take
}

}  // namespace
}  // namespace fx
