#pragma once

#include <ATen/core/stack.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "fx/ops/value.h"

namespace fx {

/// The working memory of one run: values by slot, and the stack of operator calls.
struct Frame {
  Values slots;
  torch::jit::Stack stack;
};

/// Borrows a frame from the pool of this thread, so that calls need no lock and no allocation once
/// warm. A run inside a run gets another one. All values are gone when it is given back.
class FrameLease {
 public:
  explicit FrameLease(std::size_t num_slots) {
    auto& free = pool();
    if (free.empty()) {
      frame_ = std::make_unique<Frame>();
    } else {
      frame_ = std::move(free.back());
      free.pop_back();
    }
    if (frame_->slots.size() < num_slots) frame_->slots.resize(num_slots);
    num_slots_ = num_slots;
  }
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  ~FrameLease() {
    for (std::size_t i = 0; i < num_slots_; ++i) frame_->slots[i] = Value();
    frame_->stack.clear();
    pool().push_back(std::move(frame_));
  }

  Frame& operator*() const noexcept { return *frame_; }
  Frame* operator->() const noexcept { return frame_.get(); }

 private:
  static std::vector<std::unique_ptr<Frame>>& pool() {
    thread_local std::vector<std::unique_ptr<Frame>> frames;
    return frames;
  }

  std::unique_ptr<Frame> frame_;
  std::size_t num_slots_;
};

}  // namespace fx
