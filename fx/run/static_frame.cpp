#include "fx/run/static_frame.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>

#include "fx/ops/value_tensors.h"
#include "fx/run/step_runner.h"

namespace fx {
namespace {

constexpr std::size_t kAlignment = 64;  // as LibTorch's own allocator

struct Arena {
  explicit Arena(std::size_t bytes)
      : memory(static_cast<char*>(std::aligned_alloc(
            kAlignment,
            (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment))) {
    if (!memory) throw std::bad_alloc();
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { std::free(memory); }

  char* memory;
};

// A storage of this part of the arena, which it holds. It cannot grow: no operator is meant to.
c10::Storage storage_in(const std::shared_ptr<Arena>& arena, std::size_t offset,
                        std::size_t bytes) {
  c10::DataPtr data(
      arena->memory + offset, new std::shared_ptr<Arena>(arena),
      [](void* context) { delete static_cast<std::shared_ptr<Arena>*>(context); },
      c10::Device(c10::DeviceType::CPU));
  return c10::Storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                      std::move(data), /*allocator=*/nullptr, /*resizable=*/false);
}

std::size_t use_count(const c10::intrusive_ptr_target* object) {
  return c10::raw::intrusive_ptr::use_count(const_cast<c10::intrusive_ptr_target*>(object));
}

}  // namespace

StaticFrame::StaticFrame(const Executable& executable, const StaticLayout& layout,
                         const GraphModule& module) {
  frame_.slots.resize(executable.plan().num_slots());
  transposed_.resize(layout.num_transposed);
  // The same tensors, whatever mode the thread is in.
  const c10::InferenceMode no_inference(false);
  make_tensors(layout);
  make_values(executable, layout, module);
  watch();
}

void StaticFrame::make_tensors(const StaticLayout& layout) {
  size_ = layout.memory.arena_size;
  const auto arena = std::make_shared<Arena>(size_);
  begin_ = arena->memory;
  tensors_.reserve(layout.tensors.size());
  for (const StaticTensor& wanted : layout.tensors) {
    const TensorSpec& spec = wanted.spec;
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
        storage_in(arena, wanted.offset, spec.nbytes()), c10::DispatchKeySet(c10::DispatchKey::CPU),
        c10::scalarTypeToTypeMeta(spec.dtype));
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(spec.sizes, spec.strides);
    tensors_.push_back(std::move(tensor));
  }
}

// In the order of the plan, so that each view finds what it is a view of in its slot.
void StaticFrame::make_values(const Executable& executable, const StaticLayout& layout,
                              const GraphModule& module) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  StepRunner runner(module, module.constants(), frame_);
  const std::vector<Step>& steps = executable.plan().steps();
  values_.resize(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StaticStep& step = layout.steps[i];
    switch (step.kind) {
      case StaticStep::Kind::kOrdinary:
        continue;
      case StaticStep::Kind::kConstant:
        values_[i] = runner.evaluate(steps[i], executable.path_of(i));
        break;
      case StaticStep::Kind::kOut:
      case StaticStep::Kind::kKernel:
        if (step.is_tuple) {
          const auto results = tensors(step.first, step.count);
          values_[i] = c10::ivalue::Tuple::create(Values(results.begin(), results.end()));
        } else {
          values_[i] = tensors_[step.first];
        }
        break;
    }
    runner.finish(steps[i], values_[i]);
  }
  clear();
}

void StaticFrame::watch() {
  std::vector<const c10::intrusive_ptr_target*> objects;
  for (const at::Tensor& tensor : tensors_) {
    objects.push_back(tensor.unsafeGetTensorImpl());
    objects.push_back(tensor.storage().unsafeGetStorageImpl());
  }
  for (const Value& value : values_) {
    for_each_tensor(
        value, [&](const at::Tensor& tensor) { objects.push_back(tensor.unsafeGetTensorImpl()); });
    if (!value.isNone() && !value.isTensor())
      watched_lists_.emplace_back(&value, value.use_count());
  }
  std::sort(objects.begin(), objects.end(), std::less<>());
  objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
  for (const c10::intrusive_ptr_target* object : objects)
    watched_.push_back({object, use_count(object)});
}

const at::Tensor& StaticFrame::transposed(std::size_t index, const at::Tensor& matrix) {
  at::Tensor& known = transposed_[index];
  const bool same = known.defined() && known.storage().is_alias_of(matrix.storage()) &&
                    known.storage_offset() == matrix.storage_offset() &&
                    known.scalar_type() == matrix.scalar_type() &&
                    known.size(0) == matrix.size(1) && known.size(1) == matrix.size(0) &&
                    known.stride(0) == matrix.stride(1) && known.stride(1) == matrix.stride(0);
  if (!same) known = matrix.t();
  return known;
}

bool StaticFrame::holds(const at::Tensor& tensor) const {
  if (!tensor.defined() || !tensor.has_storage()) return false;
  const auto* data = static_cast<const char*>(tensor.storage().data());
  return data && !std::less<>()(data, begin_) && std::less<>()(data, begin_ + size_);
}

void StaticFrame::clear() {
  const Value none;
  std::fill(frame_.slots.begin(), frame_.slots.end(), none);
  frame_.stack.clear();
}

bool StaticFrame::intact() const {
  for (const Watched& watched : watched_)
    if (use_count(watched.object) != watched.uses) return false;
  return std::all_of(watched_lists_.begin(), watched_lists_.end(),
                     [](const auto& list) { return list.first->use_count() == list.second; });
}

StaticFramePool::~StaticFramePool() {
  for (Place& place : places_) delete place.frame.load(std::memory_order_acquire);
}

std::size_t StaticFramePool::place_of_thread() noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t place = threads.fetch_add(1, std::memory_order_relaxed) % kPlaces;
  return place;
}

std::unique_ptr<StaticFrame> StaticFramePool::take() noexcept {
  const std::size_t mine = place_of_thread();
  for (std::size_t i = 0; i < kPlaces; ++i) {
    std::atomic<StaticFrame*>& place = places_[(mine + i) % kPlaces].frame;
    if (!place.load(std::memory_order_relaxed)) continue;
    if (StaticFrame* found = place.exchange(nullptr, std::memory_order_acquire))
      return std::unique_ptr<StaticFrame>(found);
  }
  return nullptr;
}

void StaticFramePool::give(std::unique_ptr<StaticFrame> frame) noexcept {
  const std::size_t mine = place_of_thread();
  for (std::size_t i = 0; i < kPlaces; ++i) {
    StaticFrame* none = nullptr;
    if (!places_[(mine + i) % kPlaces].frame.compare_exchange_strong(
            none, frame.get(), std::memory_order_release, std::memory_order_relaxed))
      continue;
    frame.release();
    return;
  }
}

std::size_t StaticFramePool::size() const noexcept {
  std::size_t count = 0;
  for (const Place& place : places_) count += place.frame.load(std::memory_order_relaxed) ? 1 : 0;
  return count;
}

}  // namespace fx
