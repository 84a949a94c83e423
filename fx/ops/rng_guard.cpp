#include "fx/ops/rng_guard.h"

#include <ATen/Context.h>

#include <mutex>

namespace fx {

RngGuard::RngGuard(const std::vector<c10::Device>& devices) {
  std::vector<c10::Device> all = {c10::Device(at::kCPU)};
  for (const c10::Device& device : devices)
    if (device.is_cuda()) all.push_back(device);
  for (const c10::Device& device : all) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard lock(generator.mutex());
    states_.emplace_back(generator, generator.get_state());
  }
}

void RngGuard::restore() {
  for (auto& [generator, state] : states_) {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace fx
