#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <unordered_map>
#include <vector>

#include "fx/graph/node.h"

namespace fx {

/// The tensors of a capture, and the nodes that give them.
///
/// It keeps no tensor alive: what the program lets go is freed as if nobody recorded, and LibTorch
/// takes the paths that it takes for the only handle of a value. It keeps the addresses of tensors
/// and of their memory, which nobody else gets during the capture.
class KnownTensors {
 public:
  struct Entry {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  ///< when it was added; null: has none
    Node* node;
    bool requires_grad;  ///< when it was added

    bool is_alive() const noexcept { return tensor.use_count() > 0; }
  };

  /// `node` gives the tensor from now on. O(1).
  void add(const at::Tensor& tensor, Node& node);

  /// The entry of this very tensor object, or null: also where it was given other memory behind the
  /// dispatcher (set_data), which is another value. O(1).
  const Entry* find(const at::Tensor& tensor) const;

  /// The latest entry that has or had the memory of `tensor` and its geometry, or null.
  const Entry* find_alias(const at::Tensor& tensor) const;

  /// Whether any tensor that was added has or had the memory of `tensor`.
  bool knows_memory(const at::Tensor& tensor) const;

 private:
  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
  std::unordered_map<const c10::StorageImpl*, std::vector<const c10::TensorImpl*>> by_storage_;
};

/// The same elements of one memory, read the same way.
bool same_geometry(const c10::TensorImpl& a, const c10::TensorImpl& b);

}  // namespace fx
