#include "fx/capture/empty_memory.h"

#include <algorithm>
#include <cstring>

namespace fx {
namespace {

constexpr unsigned char kPattern = 0xA5;

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

void EmptyMemory::add(const at::Tensor& tensor, Node& maker) {
  if (!tensor.has_storage() || !tensor.is_cpu() || tensor.storage().nbytes() == 0) return;
  std::memset(tensor.storage().mutable_data(), kPattern, tensor.storage().nbytes());
  makers_[storage_of(tensor)] = &maker;
}

Node* EmptyMemory::maker_if_filled(const at::Tensor& tensor) const {
  if (makers_.empty()) return nullptr;
  const auto found = makers_.find(storage_of(tensor));
  if (found == makers_.end()) return nullptr;
  const auto* bytes = static_cast<const unsigned char*>(found->first->data());
  const bool intact = std::all_of(bytes, bytes + found->first->nbytes(),
                                  [](unsigned char byte) { return byte == kPattern; });
  return intact ? nullptr : found->second;
}

void EmptyMemory::forget(const at::Tensor& tensor) {
  if (!makers_.empty()) makers_.erase(storage_of(tensor));
}

}  // namespace fx
