#pragma once

#include <torch/nn/module.h>

#include <span>

#include "fx/ops/value.h"

namespace fx {

/// A module that computes tensors from tensors and does nothing else: its results are fresh, its
/// inputs stay as they are, and nothing of a call is kept. So what runs graphs may choose the
/// memory of the results.
class KernelModule : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;

  /// What a call with `inputs` gives, written to `results`: tensors with sizes, strides and dtypes
  /// of an earlier call's results, which overlap nothing else. False when the call has to be made
  /// the ordinary way; `results` then hold anything.
  virtual bool call_into(std::span<const Value> inputs, std::span<const at::Tensor> results) = 0;
};

}  // namespace fx
