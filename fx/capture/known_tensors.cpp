#include "fx/capture/known_tensors.h"

#include <ranges>

namespace fx {
namespace {

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

bool same_geometry(const c10::TensorImpl& a, const c10::TensorImpl& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset() && a.dtype() == b.dtype() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

void KnownTensors::add(const at::Tensor& tensor, Node& node) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::StorageImpl* storage = storage_of(tensor);
  Entry entry{decltype(Entry::tensor)(tensor.getIntrusivePtr()),
              storage ? tensor.storage().getWeakStorageImpl()
                      : c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(nullptr),
              &node, tensor.requires_grad()};
  entries_.insert_or_assign(impl, std::move(entry));
  if (storage) by_storage_[storage].push_back(impl);
}

const KnownTensors::Entry* KnownTensors::find(const at::Tensor& tensor) const {
  const auto found = entries_.find(tensor.unsafeGetTensorImpl());
  if (found == entries_.end()) return nullptr;
  const Entry& entry = found->second;
  return entry.storage._unsafe_get_target() == storage_of(tensor) ? &entry : nullptr;
}

const KnownTensors::Entry* KnownTensors::find_alias(const at::Tensor& tensor) const {
  const auto found = by_storage_.find(storage_of(tensor));
  if (found == by_storage_.end()) return nullptr;
  for (const c10::TensorImpl* impl : found->second | std::views::reverse) {
    const Entry& entry = entries_.at(impl);
    // A tensor that was freed has its sizes still: weak references keep the object, not its memory.
    if (entry.storage._unsafe_get_target() == found->first &&
        same_geometry(*impl, *tensor.unsafeGetTensorImpl()))
      return &entry;
  }
  return nullptr;
}

bool KnownTensors::knows_memory(const at::Tensor& tensor) const {
  return by_storage_.contains(storage_of(tensor));
}

}  // namespace fx
