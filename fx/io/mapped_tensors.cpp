#include "fx/io/mapped_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "fx/base/error.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

constexpr std::size_t kMaxDims = 64;

[[noreturn]] void fail(const std::string& label, const std::string& what) {
  throw ImportError(ErrorCode::kBadWeight, label + ": " + what);
}

std::uint64_t not_negative(std::int64_t value, const std::string& label, const char* what) {
  if (value < 0)
    fail(label, std::string("a ") + what + " is negative (" + std::to_string(value) + ")");
  return static_cast<std::uint64_t>(value);
}

constexpr std::size_t kChunk = std::size_t{16} << 20;

/// `empty` with `count` elements, those of `bytes`, which are in memory once afterwards.
at::Tensor copied(const MappedFile& file, std::span<const std::byte> bytes, at::Tensor empty,
                  std::int64_t count) {
  try {
    empty.resize_({count});
  } catch (const c10::Error&) {
    throw ImportError(ErrorCode::kTooLarge,
                      shown(file.path()) + ": a record of " + std::to_string(bytes.size()) +
                          " bytes is not aligned to its elements, so that it has to be copied, and "
                          "there is no memory for that; torch.export.save aligns records");
  }
  auto* to = static_cast<std::byte*>(empty.mutable_data_ptr());
  for (std::size_t at = 0; at < bytes.size(); at += kChunk) {
    const auto part = bytes.subspan(at, std::min(kChunk, bytes.size() - at));
    std::memcpy(to + at, part.data(), part.size());
    file.forget(part);
  }
  return empty;
}

}  // namespace

void check_geometry(const TensorGeometry& geometry, std::uint64_t elements,
                    const std::string& label) {
  const auto& [sizes, strides, offset] = geometry;
  if (sizes.size() != strides.size())
    fail(label, std::to_string(sizes.size()) + " sizes and " + std::to_string(strides.size()) +
                    " strides");
  if (sizes.size() > kMaxDims) fail(label, std::to_string(sizes.size()) + " dimensions");
  const std::uint64_t start = not_negative(offset, label, "storage offset");
  std::uint64_t count = 1, last = start;
  bool overflow = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint64_t size = not_negative(sizes[i], label, "size");
    const std::uint64_t stride = not_negative(strides[i], label, "stride");
    std::uint64_t extent = 0;
    overflow = overflow ||
               __builtin_mul_overflow(count, std::max<std::uint64_t>(size, 1), &count) ||
               __builtin_mul_overflow(size == 0 ? 0 : size - 1, stride, &extent) ||
               __builtin_add_overflow(last, extent, &last);
  }
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 16;
  if (overflow || count > kMax || last > kMax) fail(label, "sizes, strides and offset overflow");
  const bool empty = std::ranges::find(sizes, 0) != sizes.end();
  const std::uint64_t needed = empty ? 0 : last + 1;
  if (needed > elements || (empty && start > elements))
    fail(label, "the tensor needs " + std::to_string(std::max(needed, last)) +
                    " elements of its record, which has " + std::to_string(elements));
}

at::Tensor flat_tensor(const std::shared_ptr<const MappedFile>& file,
                       std::span<const std::byte> bytes, at::ScalarType type) {
  const std::size_t element = at::elementSize(type);
  const auto count = static_cast<std::int64_t>(bytes.size() / element);
  at::TensorOptions options = at::TensorOptions().dtype(type);
  if (bytes.empty()) return at::empty({0}, options);
  // Complex numbers are pairs: the part is what has to be aligned.
  const std::size_t alignment = std::min<std::size_t>(element, 8);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment != 0) {
    return copied(*file, bytes, at::empty({0}, options), count);
  }
  std::byte* data = file->mutable_data() + (bytes.data() - file->bytes().data());
  // What at::from_blob does, which ends the process where there is no memory for its deleter.
  using Owner = std::shared_ptr<const MappedFile>;
  auto owner = std::make_unique<Owner>(file);
  c10::DataPtr memory(
      data, owner.get(), [](void* kept) { delete static_cast<Owner*>(kept); }, at::kCPU);
  owner.release();
  const std::size_t size = static_cast<std::size_t>(count) * element;
  c10::Storage storage(c10::Storage::use_byte_size_t(), size, std::move(memory));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), options.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(count);
  return tensor;
}

}  // namespace fx::io
