#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>

namespace fx {

/// Whether operators run as they are now: no tracer, autocast or transformation in between.
inline bool plain_dispatch() {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  // Autocast is off by default, by keys that are excluded then.
  return (keys.included_.raw_repr() & ~c10::default_included_set.raw_repr()) == 0 &&
         (c10::default_excluded_set.raw_repr() & ~keys.excluded_.raw_repr()) == 0;
}

/// A tensor of numbers in the memory of the CPU and nothing special: no subclass, no conjugation or
/// negation to be done, no transformation, no tangent of forward-mode differentiation.
inline bool plain_tensor(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kPlain({c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU,
                                        c10::DispatchKey::ADInplaceOrView,
                                        c10::DispatchKey::AutocastCPU});
  return tensor.defined() && (tensor.key_set().raw_repr() & ~kPlain.raw_repr()) == 0 &&
         tensor.is_cpu() && tensor.layout() == at::kStrided &&
         !tensor._fw_grad(/*level=*/0).defined();
}

/// What operators look at in a plain tensor, but for its numbers.
struct TensorSpec {
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  bool wrapped_number = false;  ///< a Python number: weak in type promotion
  c10::SmallVector<std::int64_t, 5> sizes;
  c10::SmallVector<std::int64_t, 5> strides;

  TensorSpec() = default;
  /// Of a plain tensor.
  explicit TensorSpec(const at::Tensor& tensor)
      : dtype(tensor.scalar_type()),
        wrapped_number(tensor.unsafeGetTensorImpl()->is_wrapped_number()),
        sizes(tensor.sizes()),
        strides(tensor.strides()) {}

  bool matches(const at::Tensor& tensor) const {
    return plain_tensor(tensor) && tensor.scalar_type() == dtype && tensor.sizes() == sizes &&
           tensor.strides() == strides &&
           tensor.unsafeGetTensorImpl()->is_wrapped_number() == wrapped_number;
  }
  /// Of a dense tensor.
  std::size_t nbytes() const {
    std::size_t bytes = c10::elementSize(dtype);
    for (std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
    return bytes;
  }
};

}  // namespace fx
