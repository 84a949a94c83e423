#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "fx/run/executable.h"
#include "fx/run/frame.h"
#include "fx/run/static_layout.h"

namespace fx {

/// The working memory of a replay: slots and stack, one arena, and the tensors in it.
///
/// Each tensor has a storage of its own, which holds the arena: whoever got hold of one keeps the
/// memory alive, and intact() tells, so that such a frame is not used again.
class StaticFrame {
 public:
  StaticFrame(const Executable& executable, const StaticLayout& layout, const GraphModule& module);
  StaticFrame(const StaticFrame&) = delete;
  StaticFrame& operator=(const StaticFrame&) = delete;

  Frame& frame() noexcept { return frame_; }
  const at::Tensor& tensor(std::size_t index) const { return tensors_[index]; }
  std::span<const at::Tensor> tensors(std::size_t first, std::size_t count) const {
    return std::span(tensors_).subspan(first, count);
  }
  /// The value of a static step.
  const Value& value(std::size_t step) const { return values_[step]; }
  /// t() of a matrix that is likely the one it was in the last run: then it is made only once. The
  /// memory of the matrix lives at least until the next call.
  const at::Tensor& transposed(std::size_t index, const at::Tensor& matrix);
  /// Room for the arguments of a call.
  torch::jit::Stack& arranged() noexcept { return arranged_; }
  /// Whether the tensor lies in the arena.
  bool holds(const at::Tensor& tensor) const;

  /// Drops the values of a run.
  void clear();
  /// Whether nobody else holds anything of the frame, with cleared slots. O(static tensors).
  bool intact() const;

 private:
  struct Watched {
    const c10::intrusive_ptr_target* object;
    std::size_t uses;
  };

  void make_tensors(const StaticLayout& layout);
  void make_values(const Executable& executable, const StaticLayout& layout,
                   const GraphModule& module);
  void watch();

  Frame frame_;
  torch::jit::Stack arranged_;
  std::vector<at::Tensor> transposed_;
  char* begin_ = nullptr;
  std::size_t size_ = 0;
  std::vector<at::Tensor> tensors_;
  Values values_;                 // by step; None of ordinary ones
  std::vector<Watched> watched_;  // tensors and storages
  std::vector<std::pair<const Value*, std::size_t>> watched_lists_;
};

/// Frames of one layout that wait for the next run, without a lock: a thread looks first where it
/// left its last one. They go with the pool.
class StaticFramePool {
 public:
  ~StaticFramePool();

  /// Null when none is free.
  std::unique_ptr<StaticFrame> take() noexcept;
  /// Keeps the frame, or destroys it if there are many.
  void give(std::unique_ptr<StaticFrame> frame) noexcept;
  /// Frames that wait.
  std::size_t size() const noexcept;

 private:
  static constexpr std::size_t kPlaces = 32;
  struct alignas(64) Place {
    std::atomic<StaticFrame*> frame{nullptr};
  };
  static std::size_t place_of_thread() noexcept;

  std::array<Place, kPlaces> places_;
};

}  // namespace fx
