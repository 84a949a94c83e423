#include "fx/compile/kernel_call.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "fx/base/error.h"
#include "fx/compile/buffer_pool.h"
#include "fx/compile/parallel.h"

namespace fx::loops {
namespace {

// Where it pays to make four times as much code: the processor sees so many instructions at once
// that one vector after the other waits for its own results.
constexpr std::int64_t kManyElements = 1 << 15;
constexpr std::int64_t kLongLane = 256;
constexpr std::size_t kMuchWork = 32;
constexpr std::size_t kTooMuchWork = 120;

// Scratch rows of this thread; grows, and is given back with the thread.
char* scratch_memory(std::size_t bytes) {
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<char, Free> memory;
  thread_local std::size_t size = 0;
  if (bytes > size) {
    size = (std::max(bytes, size * 2) + 63) / 64 * 64;
    memory.reset(static_cast<char*>(std::aligned_alloc(64, size)));
    if (!memory) {
      size = 0;
      throw std::bad_alloc();
    }
  }
  return memory.get();
}

}  // namespace

at::Tensor Kernel::Call::make_output(std::size_t index, c10::DeviceType device) const {
  const std::vector<Dim>& roots = kernel_.output_roots_[index];
  Sizes sizes;
  for (Dim root : roots) sizes.push_back(size_of(root));
  Sizes strides(sizes.size(), 0);
  std::int64_t step = 1;
  const DimOrder& order = kernel_.orders_[index];
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step *= std::max<std::int64_t>(sizes[order[i]], 1);
  }
  const c10::ScalarType type = kernel_.outputs_[index].type;
  if (device == at::kCPU) return empty_from_pool(sizes, strides, type);
  return at::empty_strided(sizes, strides, at::TensorOptions(type).device(device));
}

// Of a number 1: its steps are those of a pointer to bytes.
std::int64_t Kernel::Call::element_size(std::size_t operand) const {
  const NestOperand& o = nest_.operands[operand];
  return o.is_index() ? 1 : static_cast<std::int64_t>(c10::elementSize(o.type));
}

// In bytes.
std::int64_t Kernel::Call::distance(std::size_t operand,
                                    std::span<const NestOperand::Step> steps) const {
  std::int64_t elements = 0;
  for (const NestOperand::Step& step : steps)
    elements += size_of(step.step) * (tensors_[operand] ? tensors_[operand]->stride(step.dim) : 1);
  return elements * element_size(operand);
}

void Kernel::Call::collect_axes(std::size_t begin, std::size_t end, Axes& axes) const {
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t axis = kernel_.axis_order_[i];
    const std::int64_t size = size_of(kernel_.axis_roots_[axis]);
    Axis made{size, {}};
    for (std::size_t k = 0; k < nest_.operands.size(); ++k)
      made.strides.push_back(distance(k, nest_.operands[k].steps_of_axis[axis]));
    axes.push_back(std::move(made));
  }
  collapse(axes);
}

// Joins neighbours that all operands step through as through one.
void Kernel::Call::collapse(Axes& axes) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (out > 0) {
      Axis& outer = axes[out - 1];
      const Axis& inner = axes[i];
      bool joins = true;
      for (std::size_t k = 0; joins && k < outer.strides.size(); ++k)
        joins = outer.strides[k] == inner.strides[k] * inner.size;
      if (joins) {
        outer.size *= inner.size;
        outer.strides = inner.strides;
        continue;
      }
    }
    if (out != i) axes[out] = std::move(axes[i]);
    ++out;
  }
  axes.resize(out);
}

// Whether another element is read or written at the next index.
bool Kernel::Call::moves(std::size_t operand, const Axis& axis) const {
  const auto& sources = kernel_.index_sources_[operand];
  return axis.strides[operand] != 0 ||
         std::any_of(sources.begin(), sources.end(),
                     [&](std::size_t source) { return axis.strides[source] != 0; });
}

// What the elements of a row cost with lanes along this axis: of each operand one instruction where
// they are adjacent, about eight where they have to be picked.
int Kernel::Call::lane_cost(const Axis& lanes, const Axis& reduced) const {
  int cost = 0;
  for (std::size_t k = 0; k < nest_.operands.size(); ++k) {
    if (nest_.operands[k].is_index() || !moves(k, reduced) || !moves(k, lanes)) continue;
    const auto& sources = kernel_.index_sources_[k];
    const bool adjacent = lanes.strides[k] == element_size(k) &&
                          std::none_of(sources.begin(), sources.end(), [&](std::size_t source) {
                            return lanes.strides[source] != 0;
                          });
    cost += adjacent ? 1 : 8;
  }
  return cost;
}

// The axis of the lanes, and how each operand moves along it.
bool Kernel::Call::choose_shape() {
  const std::size_t count = nest_.operands.size();
  const Axis nothing{1, Sizes(count, 0)};
  reduce_ = nothing;
  lane_ = nothing;
  collect_axes(0, nest_.num_kept, kept_);
  if (nest_.has_rows()) {
    Axes reduced;
    collect_axes(nest_.num_kept, nest_.axes.size(), reduced);
    if (reduced.empty() || reduced.size() > 2) return false;
    const Axis& inner = reduced.back();
    // Lanes of a scatter must be along an axis on which places differ.
    if (nest_.scatters && (kept_.empty() || reduced.size() > 1)) return false;
    shape_.lanes_reduced = !nest_.scatters && (kept_.empty() || lane_cost(inner, inner) <=
                                                                    lane_cost(kept_.back(), inner));
    shape_.outer_reduced = reduced.size() == 2;
    if (shape_.outer_reduced && !shape_.lanes_reduced) {
      // There is code for two reduced axes only with lanes along them: worth it if any is adjacent.
      for (std::size_t k = 0; k < count; ++k)
        shape_.lanes_reduced |=
            !nest_.operands[k].is_index() && inner.strides[k] == element_size(k);
      if (!shape_.lanes_reduced) return false;
    }
    if (shape_.lanes_reduced) {
      lane_ = inner;
      if (shape_.outer_reduced) reduce_ = reduced[0];
    } else {
      reduce_ = reduced[0];
      lane_ = kept_.back();
      kept_.pop_back();
    }
  } else if (!kept_.empty()) {
    lane_ = kept_.back();
    kept_.pop_back();
  }
  for (std::size_t k = 0; k < count; ++k)
    shape_.lane_strides.push_back(lane_.strides[k] == 0                 ? LaneStride::kZero
                                  : lane_.strides[k] == element_size(k) ? LaneStride::kUnit
                                                                        : LaneStride::kAny);
  for (std::size_t k = 0; k < count && !kept_.empty() && reduce_.size == 1; ++k) {
    const std::int64_t bytes = lane_.size * element_size(k);
    const std::int64_t outer = kept_.back().strides[k];
    shape_.rows_apart |= nest_.operands[k].input >= 0 && outer != 0 && outer != bytes &&
                         shape_.lane_strides[k] == LaneStride::kUnit;
  }
  std::int64_t elements = nest_.has_rows() ? 0 : lane_.size;
  for (const Axis& axis : kept_) elements *= axis.size;
  shape_.interleaved = elements >= kManyElements && lane_.size >= kLongLane &&
                       kernel_.work_ >= kMuchWork && kernel_.work_ <= kTooMuchWork;
  split_ = has_phases(nest_, shape_) && worth_splitting();
  return true;
}

// Everything up to the machine code. False when the inputs do not fit.
bool Kernel::Call::bind(std::span<const at::Tensor> inputs,
                        c10::SmallVectorImpl<at::Tensor>& outputs) {
  sizes_.resize(kernel_.program_.shapes().symbols().size());
  if (inputs.size() != kernel_.input_dims_.size() || !kernel_.bind_sizes(inputs, sizes_))
    return false;
  for (Dim root : kernel_.axis_roots_) empty_ |= size_of(root) == 0;
  if (empty_ && nest_.has_rows()) return false;
  const c10::DeviceType device = inputs.empty() ? at::kCPU : inputs[0].device().type();
  if (!nest_.scatters) {
    outputs.clear();
    for (std::size_t i = 0; i < kernel_.outputs_.size(); ++i)
      outputs.push_back(make_output(i, device));
  }
  if (empty_) return true;
  for (const NestOperand& operand : nest_.operands) {
    tensors_.push_back(operand.is_index()   ? nullptr
                       : operand.input >= 0 ? &inputs[static_cast<std::size_t>(operand.input)]
                                            : &outputs[static_cast<std::size_t>(operand.output)]);
    // Nothing to read beside something to compute: of a concatenation, or an index out of range.
    if (tensors_.back() && tensors_.back()->numel() == 0) return false;
  }
  if (!choose_shape()) return false;
  code_ = kernel_.code_for(shape_);
  return code_ != nullptr;
}

bool Kernel::Call::prepare(std::span<const at::Tensor> inputs,
                           c10::SmallVectorImpl<at::Tensor>& outputs) {
  return bind(inputs, outputs);
}

bool Kernel::Call::run(std::span<const at::Tensor> inputs,
                       c10::SmallVectorImpl<at::Tensor>& outputs) {
  if (!bind(inputs, outputs)) return false;
  if (empty_) return true;
  for (std::size_t k = 0; k < tensors_.size(); ++k) {
    const NestOperand& operand = nest_.operands[k];
    void* first = tensors_[k] ? const_cast<void*>(tensors_[k]->const_data_ptr()) : nullptr;
    pointers_.push_back(moved(static_cast<char*>(first), distance(k, operand.offset)));
    for (std::size_t i = 0; i < kMaxGathered; ++i)
      gathered_.push_back(i < operand.gathered.size() ? distance(k, {&operand.gathered[i], 1}) : 0);
  }
  for (const Dims& factors : kernel_.extent_roots_) {
    std::int64_t product = 1;
    for (Dim root : factors) product *= size_of(root);
    extents_.push_back(product);
  }
  return run_all() == 0;
}

OperandStrides Kernel::Call::strides_of(std::size_t operand) const {
  return {.lane = lane_.strides[operand],
          .outer = kept_.empty() ? 0 : kept_.back().strides[operand],
          .reduce = reduce_.strides[operand]};
}

// Where the operands have row `row` of all kept axes, counted as one.
void Kernel::Call::find_row(std::int64_t row, c10::SmallVectorImpl<char*>& pointers) const {
  std::copy(pointers_.begin(), pointers_.end(), pointers.begin());
  for (std::size_t axis = kept_.size(); axis-- > 0;) {
    const std::int64_t index = row % kept_[axis].size;
    row /= kept_[axis].size;
    for (std::size_t k = 0; k < pointers.size(); ++k)
      pointers[k] = moved(pointers[k], index * kept_[axis].strides[k]);
  }
}

std::int32_t Kernel::Call::run_all() {
  if (split_) return run_split();
  std::int64_t rows = 1;
  for (const Axis& axis : kept_) rows *= axis.size;
  const std::int64_t row_work =
      lane_.size * reduce_.size * static_cast<std::int64_t>(kernel_.work_);
  const std::int64_t threads = num_threads();
  if (threads <= 1 || rows * row_work < 2 * kGrain) return run_rows(0, rows, 0, lane_.size);

  std::atomic<std::int32_t> trapped{0};
  if (rows >= 4 * threads || (nest_.has_rows() && shape_.lanes_reduced)) {
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, row_work));
    parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      trapped |= run_rows(begin, end, 0, lane_.size);
    });
  } else {
    // Few long rows: their lanes are shared out, whole cache lines of them.
    constexpr std::int64_t kUnit = 64;
    const std::int64_t units = (lane_.size + kUnit - 1) / kUnit;
    const std::int64_t unit_work = std::max<std::int64_t>(1, rows * row_work / units);
    parallel_for(units, std::max<std::int64_t>(1, kGrain / unit_work),
                 [&](std::int64_t begin, std::int64_t end) {
                   trapped |= run_rows(0, rows, begin * kUnit, std::min(end * kUnit, lane_.size));
                 });
  }
  return trapped.load();
}

// Rows [begin, end) of all kept axes, counted as one, each with lanes [lane_begin, lane_end).
std::int32_t Kernel::Call::run_rows(std::int64_t begin, std::int64_t end, std::int64_t lane_begin,
                                    std::int64_t lane_end) const {
  const std::size_t count = nest_.operands.size();
  c10::SmallVector<OperandStrides, 16> strides(count);
  c10::SmallVector<char*, 16> pointers(count);
  for (std::size_t k = 0; k < count; ++k) strides[k] = strides_of(k);
  c10::SmallVector<char*, 4> scratch;
  if (!nest_.scratch.empty()) {
    // Whole vectors are written: room for one beyond the end.
    const auto elements = static_cast<std::size_t>(
        shape_.lanes_reduced ? reduce_.size * lane_.size + code_->lanes()
                             : reduce_.size * code_->lanes() * code_->columns());
    std::size_t bytes = 0;
    for (c10::ScalarType type : nest_.scratch)
      bytes += (elements * c10::elementSize(type) + 63) / 64 * 64;
    char* memory = scratch_memory(bytes);
    for (c10::ScalarType type : nest_.scratch) {
      scratch.push_back(memory);
      memory += (elements * c10::elementSize(type) + 63) / 64 * 64;
    }
  }
  KernelArgs args{.pointers = pointers.data(),
                  .strides = strides.data(),
                  .gathered = gathered_.data(),
                  .scalars = scalars_.data(),
                  .extents = extents_.data(),
                  .scratch = scratch.data(),
                  .n_lane = lane_end - lane_begin,
                  .n_outer = 0,
                  .n_reduce = reduce_.size,
                  .all_lanes = lane_.size};
  const std::int64_t inner = kept_.empty() ? 1 : kept_.back().size;
  std::int32_t trapped = 0;
  for (std::int64_t row = begin; row < end;) {
    // The innermost kept axis is the kernel's own; the ones around it are counted here.
    const std::int64_t first = row % inner;
    const std::int64_t n = std::min(end - row, inner - first);
    find_row(row, pointers);
    for (std::size_t k = 0; k < count; ++k)
      pointers[k] = moved(pointers[k], lane_begin * lane_.strides[k]);
    args.n_outer = n;
    trapped |= code_->function()(&args);
    row += n;
  }
  return trapped;
}

}  // namespace fx::loops
