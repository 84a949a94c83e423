#pragma once

#include <cstdint>
#include <vector>

#include "fx/plan/plan.h"

namespace fx {

/// How long the memory of a step's result is needed.
struct ResultLifetime {
  /// The memory is made by this run and nobody sees it after step `last`: the result and what may
  /// be a view of it are no part of the output, nothing writes to them, and they reach no code that
  /// could keep them (wrapped functions, operators outside of aten, modules of other classes than
  /// torch::nn's and KernelModule).
  bool is_private = false;
  /// The last step that reads the result or what may share memory with it; at least the step
  /// itself.
  std::uint32_t last = 0;
  /// The set of AliasAnalysis: results of other sets share no memory with it.
  std::uint32_t set = 0;
};

/// By step of `plan`, which must be the plan of `graph` as it stands. Conservative, by
/// AliasAnalysis. O(nodes + arguments).
std::vector<ResultLifetime> result_lifetimes(const Plan& plan, const Graph& graph);

}  // namespace fx
