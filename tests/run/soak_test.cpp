// Nothing grows with the number of calls. FXCPP_SOAK_CALLS chooses how many; a million and more on
// demand.
#include <gtest/gtest.h>
#include <malloc.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "fx/run/replay.h"

namespace fx {
namespace {

struct Memory {
  std::int64_t live = 0;      // bytes of the heap in use
  std::int64_t resident = 0;  // bytes of the process in memory

  static Memory now() {
    Memory memory;
    const struct mallinfo2 info = mallinfo2();
    memory.live = static_cast<std::int64_t>(info.uordblks + info.hblkhd);
    std::ifstream file("/proc/self/statm");
    std::int64_t total = 0;
    std::int64_t pages = 0;
    file >> total >> pages;
    memory.resident = pages * sysconf(_SC_PAGESIZE);
    return memory;
  }
};

std::int64_t soak_calls() {
  const char* text = std::getenv("FXCPP_SOAK_CALLS");
  return text ? std::atoll(text) : 20000;
}

// Live bytes must be what they were after a tenth of the calls; the process may keep a little more.
void expect_no_growth(const char* what, const std::function<void(std::int64_t)>& call) {
  const std::int64_t calls = soak_calls();
  for (std::int64_t i = 0; i < calls / 10; ++i) call(i);
  const Memory before = Memory::now();
  for (std::int64_t i = 0; i < calls; ++i) call(i);
  const Memory after = Memory::now();
  std::cout << what << ": " << calls << " calls, live bytes " << before.live << " -> " << after.live
            << ", resident " << before.resident << " -> " << after.resident << "\n";
  EXPECT_LE(after.live - before.live, 4096) << what;
  EXPECT_LE(after.resident - before.resident, 1 << 20) << what;
}

std::shared_ptr<GraphModule> small() {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::mul.Tensor", {x, 2});
  Node& b = graph->call_function("aten::sub.Tensor", {a, x});
  Node& max = graph->call_function("aten::max.dim", {b, 0});
  Node& values = graph->call_function("operator.getitem", {max, 0});
  graph->output(Argument::tuple({graph->call_function("aten::neg", {values}), b}));
  return std::make_shared<GraphModule>(graph);
}

TEST(Soak, plans) {
  const torch::NoGradGuard no_grad;
  const auto module = small();
  const at::Tensor inputs[] = {torch::ones({2, 3}), torch::ones({5, 1}), torch::ones({1, 7})};
  expect_no_growth("plan", [&](std::int64_t i) { (*module)(inputs[i % 3]); });
}

TEST(Soak, replays) {
  const torch::NoGradGuard no_grad;
  const Replay replay(small());
  const at::Tensor inputs[] = {torch::ones({2, 3}), torch::ones({5, 1}), torch::ones({1, 7})};
  expect_no_growth("replay", [&](std::int64_t i) { replay.run({inputs[i % 3]}); });
  EXPECT_EQ(replay.statistics().layouts, 3u);
}

TEST(Soak, a_thousand_shapes) {
  const torch::NoGradGuard no_grad;
  const Replay replay(small());
  expect_no_growth("replay of a thousand shapes", [&](std::int64_t i) {
    replay.run({torch::empty({1 + i % 10, 1 + i / 10 % 100})});
  });
  EXPECT_EQ(replay.statistics().layouts, 8u);
}

TEST(Soak, failing_calls) {
  const torch::NoGradGuard no_grad;
  const Replay replay(small());
  const at::Tensor good = torch::ones({2, 3});
  const at::Tensor bad = torch::ones({0, 3});
  replay.run({good});
  expect_no_growth("failing replays", [&](std::int64_t i) {
    if (i % 1000 == 0) {
      EXPECT_THROW(replay.run({bad}), std::exception);
    } else {
      replay.run({good});
    }
  });
}

TEST(Soak, objects_come_and_go) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::ones({64, 64});
  expect_no_growth("new replays", [&](std::int64_t i) {
    if (i % 100 != 0) return;
    const Replay replay(small());
    replay.run({x});
    replay.run({x});
  });
}

}  // namespace
}  // namespace fx
