#include "fx/compile/buffer_pool.h"

#include <ATen/Functions.h>
#include <ATen/core/TensorBase.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>

#include <cstdlib>
#include <list>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

namespace fx::loops {
namespace {

// Below this malloc does not go to the operating system.
constexpr std::size_t kSmall = 128 << 10;
constexpr std::size_t kPage = 4096;

class Pool {
 public:
  // Never destroyed: tensors may outlive everything else.
  static Pool& get() {
    static Pool* pool = new Pool();
    return *pool;
  }

  struct Block {
    void* memory;
    std::size_t size;
  };

  // Sizes are rounded so that nearly equal ones share blocks: at most an eighth is wasted.
  static std::size_t rounded(std::size_t size) {
    std::size_t step = kPage;
    while (step * 16 <= size) step *= 2;
    return (size + step - 1) / step * step;
  }

  Block* take(std::size_t size) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = by_size_.find(size); found != by_size_.end()) {
        const auto at = found->second;
        by_size_.erase(found);
        Block* block = *at;
        free_.erase(at);
        bytes_ -= size;
        return block;
      }
    }
    void* memory = std::aligned_alloc(kPage, size);
    if (!memory) throw std::bad_alloc();
    return new Block{memory, size};
  }

  void give(Block* block) noexcept {
    std::list<Block*> old;
    {
      const std::lock_guard lock(mutex_);
      try {
        free_.push_back(block);
        by_size_.emplace(block->size, std::prev(free_.end()));
        bytes_ += block->size;
      } catch (...) {
        if (!free_.empty() && free_.back() == block) free_.pop_back();
        old.push_back(block);
      }
      trim(old);
    }
    release(old);
  }

  void set_limit(std::size_t bytes) {
    std::list<Block*> old;
    {
      const std::lock_guard lock(mutex_);
      limit_ = bytes;
      trim(old);
    }
    release(old);
  }

  std::size_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  void trim(std::list<Block*>& old) {
    while (bytes_ > limit_ && !free_.empty()) {
      Block* block = free_.front();
      const auto [first, last] = by_size_.equal_range(block->size);
      for (auto it = first; it != last; ++it)
        if (it->second == free_.begin()) {
          by_size_.erase(it);
          break;
        }
      bytes_ -= block->size;
      old.splice(old.end(), free_, free_.begin());
    }
  }

  static void release(const std::list<Block*>& blocks) noexcept {
    for (Block* block : blocks) {
      std::free(block->memory);
      delete block;
    }
  }

  std::mutex mutex_;
  std::list<Block*> free_;  // oldest first
  std::unordered_multimap<std::size_t, std::list<Block*>::iterator> by_size_;
  std::size_t bytes_ = 0;
  std::size_t limit_ = std::size_t{256} << 20;
};

// What OfferedTensors still offers to this thread.
std::span<const at::Tensor>& offered() noexcept {
  thread_local std::span<const at::Tensor> tensors;
  return tensors;
}

}  // namespace

OfferedTensors::OfferedTensors(std::span<const at::Tensor> tensors) noexcept
    : outer_(std::exchange(offered(), tensors)) {}

OfferedTensors::~OfferedTensors() { offered() = outer_; }

at::Tensor empty_from_pool(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType type) {
  if (std::span<const at::Tensor>& tensors = offered(); !tensors.empty()) {
    const at::Tensor& next = tensors.front();
    if (next.scalar_type() == type && next.sizes() == sizes && next.strides() == strides) {
      tensors = tensors.subspan(1);
      return next;
    }
    tensors = {};  // this call makes other results: nothing of it is to be mixed up
  }
  std::size_t bytes = c10::elementSize(type);
  for (std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
  if (bytes < kSmall) return at::empty_strided(sizes, strides, at::TensorOptions(type));
  Pool::Block* block = Pool::get().take(Pool::rounded(bytes));
  c10::DataPtr data(
      block->memory, block,
      [](void* context) { Pool::get().give(static_cast<Pool::Block*>(context)); },
      c10::Device(c10::DeviceType::CPU));
  // Resizable, as any tensor: growing it moves to memory of the usual allocator.
  c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                       std::move(data), c10::GetCPUAllocator(), /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

void set_pool_limit(std::size_t bytes) { Pool::get().set_limit(bytes); }

std::size_t pool_bytes() { return Pool::get().bytes(); }

}  // namespace fx::loops
