#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "fx/ops/rng_guard.h"

namespace fx {

/// While it lives, runs of a program leave no trace in its module and in the random generators:
/// parameters and buffers get their contents back at the end. What the program keeps elsewhere
/// stays, and so do sparse ones. Costs a copy of all parameters and buffers, or of buffers alone.
class ProgramIsolation {
 public:
  enum class Of : std::uint8_t { kParametersAndBuffers, kBuffers };
  explicit ProgramIsolation(const torch::nn::Module& root, Of what = Of::kParametersAndBuffers);
  ProgramIsolation(const ProgramIsolation&) = delete;
  ProgramIsolation& operator=(const ProgramIsolation&) = delete;
  ~ProgramIsolation() { restore(); }

  /// Puts everything back now, for another run from the same state.
  void restore();

 private:
  std::optional<RngGuard> generators_;
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;  // tensor, contents
};

/// Inputs for a run whose writes nobody is to see: copies that share memory as the inputs do.
/// In-place operators may write to those that were values, not to leaves that require gradients.
std::vector<at::Tensor> copies_for_run(const std::vector<at::Tensor>& inputs);

}  // namespace fx
