#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>

#include "fx/capture/symbolic_trace.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/text.h"
#include "fx/interpret/compare.h"
#include "tests/graph/graphs.h"

namespace fx {

/// A module of the graph in text form, without the version line and without attributes.
inline std::shared_ptr<GraphModule> parse_module(std::string_view text) {
  return std::make_shared<GraphModule>(parse_text("fx 1\n" + std::string(text)));
}

/// torch.cat and torch.stack of proxies, for patterns.
inline Proxy cat(const std::vector<Proxy>& items) {
  return record_call("torch.cat", {TraceArg(items)});
}
inline Proxy stack(const std::vector<Proxy>& items) {
  return record_call("torch.stack", {TraceArg(items)});
}

/// The number of call_function or call_method nodes of that target.
inline std::size_t count_calls(const Graph& graph, std::string_view target) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes())
    count += (node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod) &&
             node.target().str() == target;
  return count;
}

/// Compares two values up to rounding.
#define EXPECT_VALUES_EQ(expected, actual) \
  EXPECT_EQ(::fx::compare_values(expected, actual, {.rtol = 1e-5, .atol = 1e-6}), "")
#define ASSERT_VALUES_EQ(expected, actual) \
  ASSERT_EQ(::fx::compare_values(expected, actual, {.rtol = 1e-5, .atol = 1e-6}), "")

}  // namespace fx
