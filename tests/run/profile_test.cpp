#include <torch/torch.h>

#include "fx/run/plan_profiler.h"
#include "fx/run/replay.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<GraphModule> sample() {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& w = graph->get_attr("w");
  Node& mul = graph->call_function("aten::mul.Tensor", {x, w});
  Node& view = graph->call_method("view", {mul, -1});
  Node& exp = graph->call_function("aten::exp", {view});
  graph->output(graph->call_function("aten::sum", {exp}));
  const auto module = std::make_shared<GraphModule>();
  module->set_buffer("w", torch::ones({3}));
  module->set_graph(graph);
  return module;
}

void expect_rows(const PlanProfiler& profiler, std::size_t calls) {
  std::vector<std::string> names;
  std::vector<std::int64_t> read, written;
  for (const PlanProfiler::Row& row : profiler.rows()) {
    names.push_back(row.name);
    read.push_back(row.bytes_read);
    written.push_back(row.bytes_written);
    EXPECT_EQ(row.calls, calls);
    EXPECT_GT(row.total_us, 0);
    EXPECT_LE(row.min_us * static_cast<double>(calls), row.total_us * 1.001);
  }
  using Bytes = std::vector<std::int64_t>;
  EXPECT_EQ(names, (std::vector<std::string>{"w", "mul_tensor", "view", "exp", "sum_1"}));
  EXPECT_EQ(read, (Bytes{0, 24 + 12, 0, 24, 24}));
  EXPECT_EQ(written, (Bytes{0, 24, 0, 24, 4}));
}

TEST(PlanProfiler, times_and_bytes_of_each_step) {
  const torch::NoGradGuard no_grad;
  const auto module = sample();
  const at::Tensor x = torch::ones({2, 3});
  PlanProfiler profiler;
  (*module)(x);
  EXPECT_TRUE(profiler.rows().empty());
  {
    const RunObserver::Scope scope(profiler);
    EXPECT_EQ(RunObserver::current(), &profiler);
    for (int call = 0; call < 3; ++call) (*module)(x);
  }
  EXPECT_EQ(RunObserver::current(), nullptr);
  (*module)(x);
  expect_rows(profiler, 3);
  EXPECT_THAT(profiler.table(), HasSubstr("aten::mul.Tensor"));
  EXPECT_THAT(profiler.table(1e9), HasSubstr("memory copies at 1.0 GB/s"));
  profiler.reset();
  EXPECT_TRUE(profiler.rows().empty());
}

TEST(PlanProfiler, sees_replays) {
  const torch::NoGradGuard no_grad;
  const Replay replay(sample());
  const at::Tensor x = torch::ones({2, 3});
  replay.run({x});
  PlanProfiler profiler;
  {
    const RunObserver::Scope scope(profiler);
    for (int call = 0; call < 2; ++call) replay.run({x});
  }
  EXPECT_EQ(replay.statistics().replays, 2u);
  expect_rows(profiler, 2);
}

TEST(PlanProfiler, an_exception_of_an_observer_ends_the_run) {
  struct Throwing : RunObserver {
    void on_step(const StepEvent& event) override {
      if (event.step == 2) throw std::runtime_error("seen enough");
    }
  } throwing;
  const auto module = sample();
  const at::Tensor x = torch::ones({2, 3});
  {
    const RunObserver::Scope scope(throwing);
    EXPECT_FX_ERROR((*module)(x), RunError, kNodeFailed, "seen enough");
  }
  EXPECT_EQ(x.use_count(), 1);
  EXPECT_NO_THROW((*module)(x));
}

TEST(PlanProfiler, memory_bandwidth_is_plausible) {
  const double bandwidth = memory_bandwidth();
  EXPECT_GT(bandwidth, 1e8);
  EXPECT_LT(bandwidth, 1e13);
}

}  // namespace
}  // namespace fx
