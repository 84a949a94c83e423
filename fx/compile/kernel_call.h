#pragma once

#include <c10/util/SmallVector.h>

#include "fx/compile/kernel.h"

namespace fx::loops {

/// Work (elements times operations) below which another thread costs more than it saves.
constexpr std::int64_t kGrain = 1 << 17;

/// Where a guard is false an address may be outside of its tensor, and that of an index is a
/// number: arithmetic on integers, not on pointers.
inline char* moved(char* pointer, std::int64_t bytes) {
  return reinterpret_cast<char*>(reinterpret_cast<std::intptr_t>(pointer) + bytes);
}

/// One call of a kernel: checks sizes, makes the outputs (of a scatter: takes them), brings the
/// axes into the form of the machine code (lanes, rows, and loops around them), and runs it on all
/// threads that are worth it.
class Kernel::Call {
 public:
  explicit Call(const Kernel& kernel, std::span<const std::int64_t> scalars = {})
      : kernel_(kernel), nest_(kernel.nest_), scalars_(scalars) {}

  bool prepare(std::span<const at::Tensor> inputs, c10::SmallVectorImpl<at::Tensor>& outputs);
  bool run(std::span<const at::Tensor> inputs, c10::SmallVectorImpl<at::Tensor>& outputs);

 private:
  // Calls of usual kernels ask nothing of the heap but their results.
  using Sizes = c10::SmallVector<std::int64_t, 16>;
  // One axis of the iteration, with the byte step of each operand.
  struct Axis {
    std::int64_t size;
    Sizes strides;
  };
  using Axes = c10::SmallVector<Axis, 4>;

  at::Tensor make_output(std::size_t index, c10::DeviceType device) const;
  bool bind(std::span<const at::Tensor> inputs, c10::SmallVectorImpl<at::Tensor>& outputs);
  std::int64_t size_of(Dim root) const { return sizes_[static_cast<std::size_t>(root)]; }
  std::int64_t element_size(std::size_t operand) const;
  std::int64_t distance(std::size_t operand, std::span<const NestOperand::Step> steps) const;
  void collect_axes(std::size_t begin, std::size_t end, Axes& axes) const;
  static void collapse(Axes& axes);
  bool moves(std::size_t operand, const Axis& axis) const;
  int lane_cost(const Axis& lanes, const Axis& reduced) const;
  bool choose_shape();
  OperandStrides strides_of(std::size_t operand) const;
  void find_row(std::int64_t row, c10::SmallVectorImpl<char*>& pointers) const;
  const Axis& cut_axis() const;
  bool worth_splitting() const;
  std::int32_t run_split();
  std::int32_t run_all();
  std::int32_t run_rows(std::int64_t begin, std::int64_t end, std::int64_t lane_begin,
                        std::int64_t lane_end) const;

  const Kernel& kernel_;
  const Nest& nest_;
  std::span<const std::int64_t> scalars_;
  c10::SmallVector<std::int64_t, 48> sizes_;                    // by symbol
  Sizes extents_;                                               // by extent of the nest
  c10::SmallVector<const at::Tensor*, 16> tensors_;             // by operand; null for an index
  c10::SmallVector<char*, 16> pointers_;                        // by operand; of an index its value
  c10::SmallVector<std::int64_t, 16 * kMaxGathered> gathered_;  // by operand and gathered dimension
  Axes kept_;  // outermost first; without the lanes' axis once chosen
  Axis lane_;
  Axis reduce_;
  KernelShape shape_;
  const KernelCode* code_ = nullptr;
  bool split_ = false;  // few long rows, in parts
  bool empty_ = false;  // nothing to compute
};

}  // namespace fx::loops
