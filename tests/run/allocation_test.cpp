// What a replay asks of the heap, counted in operator new and LibTorch's allocator.
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <iostream>

#include "fx/graph/graph_module.h"
#include "fx/run/replay.h"
#include "tests/base/counted_new.h"

namespace {

thread_local std::size_t buffers = 0;  // of LibTorch's CPU allocator
// How many buffers there still are before an allocation fails; negative: all that are asked for.
thread_local int buffers_left = -1;

}  // namespace

namespace fx {
namespace {

// Passes everything on to the allocator that was there.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}
  c10::DataPtr allocate(std::size_t size) override {
    ++buffers;
    if (buffers_left == 0) throw std::runtime_error("no memory left");
    if (buffers_left > 0) --buffers_left;
    return inner_->allocate(size);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    inner_->copy_data(to, from, count);
  }

 private:
  c10::Allocator* inner_;
};

class CountBuffers {
 public:
  CountBuffers() : before_(c10::GetCPUAllocator()), counting_(before_) {
    c10::SetCPUAllocator(&counting_, /*priority=*/100);
  }
  CountBuffers(const CountBuffers&) = delete;
  CountBuffers& operator=(const CountBuffers&) = delete;
  ~CountBuffers() { c10::SetCPUAllocator(before_, /*priority=*/100); }

 private:
  c10::Allocator* before_;
  CountingAllocator counting_;
};

struct Count {
  std::size_t objects;
  std::size_t buffers;
  friend bool operator==(const Count&, const Count&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Count& count) {
    return out << count.objects << " objects, " << count.buffers << " buffers";
  }
};

Count count(const std::function<void()>& body) {
  const std::size_t before = buffers;
  const std::size_t objects = count_new(body);
  return {objects, buffers - before};
}

std::shared_ptr<GraphModule> chain(int length, const char* op) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node* last = &x;
  for (int i = 0; i < length; ++i)
    last = std::string_view(op) == "aten::add.Tensor" ? &graph->call_function(op, {*last, x})
                                                      : &graph->call_function(op, {*last});
  graph->output(*last);
  return std::make_shared<GraphModule>(graph);
}

TEST(ReplayAllocations, none_but_those_of_the_result) {
  const torch::NoGradGuard no_grad;
  const CountBuffers counting;
  const at::Tensor x = torch::randn({4, 3});
  for (const char* op : {"aten::neg", "aten::sin", "aten::add.Tensor", "torch.relu", "aten::exp"}) {
    Count counts[2];
    Count plan[2];
    int at = 0;
    for (int length : {10, 300}) {
      const auto module = chain(length, op);
      const Replay replay(module);
      for (int call = 0; call < 3; ++call) replay.run({x});
      Values inputs{x};
      counts[at] = count([&] { replay.run(std::move(inputs)); });
      plan[at] = count([&] { (*module)(x); });
      ++at;
    }
    std::cout << op << ": " << counts[1].objects << " objects and " << counts[1].buffers
              << " buffers in a replay of 300 operators; " << plan[1].objects << " and "
              << plan[1].buffers << " in the plan\n";
    EXPECT_EQ(counts[0], counts[1]) << op;
    EXPECT_EQ(counts[1].buffers, 1u) << op;
    EXPECT_LE(counts[1].objects, 3u) << op;  // tensor, storage
    EXPECT_GE(plan[1].buffers, 300u) << op;
  }
}

TEST(ReplayAllocations, views_make_none_either) {
  const torch::NoGradGuard no_grad;
  const CountBuffers counting;
  Count counts[2];
  int at = 0;
  for (int length : {3, 30}) {
    auto graph = std::make_shared<Graph>();
    Node* last = &graph->placeholder("x");
    Node& w = graph->get_attr("w");
    for (int i = 0; i < length; ++i) {
      Node& product = graph->call_function("aten::mul.Tensor", {*last, w});
      Node& turned = graph->call_function("aten::t", {product});
      Node& narrow = graph->call_method("narrow", {turned, 0, 0, 4});
      Node& values = graph->call_function("aten::select.int", {narrow, 0, 1});
      last = &graph->call_function("aten::t",
                                   {graph->call_function("aten::sub.Tensor", {narrow, values})});
    }
    graph->output(graph->call_function("aten::sum", {*last}));
    const auto module = std::make_shared<GraphModule>();
    module->set_buffer("w", torch::randn({2, 4}));
    module->set_graph(graph);
    const Replay replay(module);
    const at::Tensor x = torch::randn({2, 4});
    for (int call = 0; call < 3; ++call) replay.run({x});
    EXPECT_EQ(replay.statistics().left, 0u);
    Values inputs{x};
    counts[at++] = count([&] { replay.run(std::move(inputs)); });
  }
  std::cout << counts[1].objects << " objects and " << counts[1].buffers << " buffers\n";
  EXPECT_EQ(counts[0], counts[1]);
  EXPECT_EQ(counts[1].buffers, 1u);
}

// Each allocation of tensors may fail, in the recording call and in later ones: an error, nothing
// held, and the next call is right.
TEST(ReplayAllocations, that_fail) {
  const torch::NoGradGuard no_grad;
  const CountBuffers counting;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::exp", {x});
  Node& b = graph->call_function("aten::mm", {a, a});
  Node& kept = graph->call_function("aten::neg", {b});
  graph->output(Argument::tuple({kept, graph->call_function("aten::sum", {b})}));
  const auto module = std::make_shared<GraphModule>(graph);
  const at::Tensor in = torch::rand({4, 4});
  const auto values = elements((*module)(in));
  const auto run_with = [&](const Replay& replay, int left) {
    buffers_left = left;
    bool failed = false;
    try {
      replay.run({in});
    } catch (const std::exception&) {
      failed = true;
    }
    buffers_left = -1;
    EXPECT_EQ(in.use_count(), 1);
    const Values found = elements(replay.run({in}));
    EXPECT_TRUE(at::equal(found[0].toTensor(), values[0].toTensor()));
    EXPECT_TRUE(at::equal(found[1].toTensor(), values[1].toTensor()));
    return failed;
  };
  int in_recording = 0;
  while (run_with(Replay(module), in_recording)) ASSERT_LT(++in_recording, 100);
  EXPECT_GE(in_recording, 4);
  const Replay replay(module);
  replay.run({in});
  int in_replay = 0;
  while (run_with(replay, in_replay)) ASSERT_LT(++in_replay, 100);
  EXPECT_EQ(in_replay, 2);  // the results
}

TEST(ReplayAllocations, time_of_a_chain) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({4});
  for (const char* op : {"aten::neg", "aten::add.Tensor"}) {
    const auto module = chain(1000, op);
    const Replay replay(module);
    const auto best = [&](auto&& body) {
      double least = 1e9;
      for (int run = 0; run < 50; ++run) {
        const auto start = std::chrono::steady_clock::now();
        body();
        least = std::min(least, std::chrono::duration<double, std::micro>(
                                    std::chrono::steady_clock::now() - start)
                                    .count());
      }
      return least / 1000;
    };
    replay.run({x});
    const double plan = best([&] { (*module)(x); });
    const double replayed = best([&] { replay.run({x}); });
    std::cout << op << " on 4 floats, us an operator: plan " << plan << ", replay " << replayed
              << "\n";
    EXPECT_LT(replayed, 1.3 * plan);  // the machine may be busy
  }
}

}  // namespace
}  // namespace fx
