#include "fx/analysis/memory.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/capture/symbolic_trace.h"
#include "fx/passes/shape_prop.h"

namespace fx {
namespace {

MemoryReport report_of(GraphModule& module, const Values& inputs) {
  ShapeProp(module).propagate(inputs);
  return memory_report(module.graph());
}

// A chain holds two values at a time: what is read and what is made.
TEST(Memory, S0_28_peak_scales_with_the_batch) {
  auto module = symbolic_trace([](Proxy x) {
    for (int i = 0; i < 50; ++i) x = x + 1;
    return x;
  });
  const MemoryReport small = report_of(*module, {torch::randn({2, 8})});
  EXPECT_EQ(small.peak_bytes, 2 * 2 * 8 * 4);
  EXPECT_EQ(small.total_bytes, 50 * 2 * 8 * 4);
  EXPECT_EQ(small.unknown, 0u);
  const MemoryReport large = report_of(*module, {torch::randn({20, 8})});
  EXPECT_EQ(large.peak_bytes, 10 * small.peak_bytes);
  ASSERT_EQ(large.rows.size(), 52u);
  EXPECT_EQ(large.rows[0].allocated, 0) << "an input is there before";
  EXPECT_EQ(large.rows[0].live_values, 1u);
  EXPECT_EQ(large.rows[25].live_values, 2u);
  EXPECT_EQ(large.rows[25].live_bytes, large.peak_bytes);
}

TEST(Memory, ViewsShareAndResultsStay) {
  auto module = symbolic_trace([](Proxy x) {
    Proxy a = x * 2;  // 96 bytes, alive to the end through its view
    Proxy v = a.t();  // a view
    Proxy b = x + 1;  // 96 bytes, dies at c
    Proxy c = b * 3;  // 96 bytes
    return std::vector<Proxy>{v, c};
  });
  const MemoryReport report = report_of(*module, {torch::randn({4, 6})});
  EXPECT_EQ(report.peak_bytes, 3 * 96);
  EXPECT_EQ(report.total_bytes, 3 * 96);
  for (const MemoryRow& row : report.rows)
    if (row.node->name() == "t") {
      EXPECT_EQ(row.allocated, 0);
      EXPECT_EQ(row.live_bytes, 96);
    }
  EXPECT_NE(report.str().find("peak memory 288 bytes"), std::string::npos) << report.str();
}

TEST(Memory, UnknownWithoutMetadata) {
  auto module = symbolic_trace([](Proxy x) { return x + 1; });
  const MemoryReport report = memory_report(module->graph());
  EXPECT_EQ(report.unknown, 1u);
  EXPECT_EQ(report.peak_bytes, 0);
}

}  // namespace
}  // namespace fx
