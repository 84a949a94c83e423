#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <utility>
#include <vector>

namespace fx {

/// Puts the default random generators of the CPU and of `devices` back to where they were when the
/// guard was made.
class RngGuard {
 public:
  explicit RngGuard(const std::vector<c10::Device>& devices = {});
  ~RngGuard() { restore(); }
  RngGuard(const RngGuard&) = delete;
  RngGuard& operator=(const RngGuard&) = delete;

  /// Puts them back now. Takes no memory, so that it works where that has run out.
  void restore();

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

}  // namespace fx
