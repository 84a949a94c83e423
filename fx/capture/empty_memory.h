#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>

#include "fx/graph/node.h"

namespace fx {

/// The memory of tensors from `empty` that no recorded operator has written yet. A program can fill
/// it through a pointer, unseen by the dispatcher; so that this is noticed, new memory is filled
/// with a pattern, and whoever is about to use it asks whether the pattern is still there.
class EmptyMemory {
 public:
  /// Fills the memory of `tensor`, which `maker` gives, with the pattern. O(bytes).
  void add(const at::Tensor& tensor, Node& maker);

  /// The node that made the memory of `tensor`, if somebody filled it since; else null. O(bytes)
  /// for memory that was added, else O(1).
  Node* maker_if_filled(const at::Tensor& tensor) const;

  /// A recorded operator writes to it: what it holds from now on is the graph's business.
  void forget(const at::Tensor& tensor);

 private:
  std::unordered_map<const c10::StorageImpl*, Node*> makers_;
};

}  // namespace fx
