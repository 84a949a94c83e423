// What a run needs at most, as LibTorch's allocator reports it.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/torch.h>

#include "fx/analysis/memory.h"
#include "fx/graph/graph_module.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/shape_prop.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

constexpr std::int64_t kBytes = 4000;  // of a value of the chain
constexpr int kLength = 50;

// Bytes that this thread holds of LibTorch's CPU memory, and the most it held.
class PeakMemory final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                         c10::Device) override {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    allocations_ += bytes > 0;
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t live() const noexcept { return live_; }
  std::int64_t peak() const noexcept { return peak_; }
  int allocations() const noexcept { return allocations_; }

  // What `run` adds at most to what is there.
  template <typename Run>
  static std::shared_ptr<PeakMemory> of(Run&& run) {
    auto memory = std::make_shared<PeakMemory>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
    run();
    return memory;
  }

 private:
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
  int allocations_ = 0;
};

std::shared_ptr<GraphModule> pointwise_chain() {
  auto graph = std::make_shared<Graph>();
  Node* x = &graph->placeholder("x");
  for (int i = 0; i < kLength; ++i) x = &graph->call_function("aten::neg", {*x});
  graph->output(*x);
  return std::make_shared<GraphModule>(graph);
}

// The plan of a chain holds two values at a time; the run that keeps everything holds all.
TEST(PeakMemory, S4_91_a_planned_chain_needs_less_than_one_that_keeps_everything) {
  const torch::NoGradGuard no_grad;
  const auto module = pointwise_chain();
  const at::Tensor x = torch::ones({kBytes / 4});
  at::Tensor planned_result, kept_result;
  Interpreter keeping(*module, /*garbage_collect_values=*/false);

  const auto planned = PeakMemory::of([&] { planned_result = (*module)(x).toTensor(); });
  const auto kept = PeakMemory::of([&] { kept_result = keeping.run({x}).toTensor(); });
  EXPECT_TRUE(torch::equal(planned_result, x)) << "an even number of negations";
  EXPECT_TRUE(torch::equal(kept_result, x));

  EXPECT_EQ(kept->peak(), kLength * kBytes);
  EXPECT_EQ(planned->peak(), 2 * kBytes);
  EXPECT_LT(planned->peak(), kept->peak());
  EXPECT_EQ(planned->live(), kBytes) << "what is left is the result";
  EXPECT_EQ(planned->allocations(), kLength);

  // What the report says without running is what the runs need.
  ShapeProp(*module).propagate({x});
  const MemoryReport report = memory_report(module->graph());
  EXPECT_EQ(report.peak_bytes, planned->peak());
  EXPECT_EQ(report.total_bytes, kept->peak());
}

}  // namespace
}  // namespace fx
