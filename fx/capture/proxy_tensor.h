#pragma once

#include <ATen/core/Tensor.h>

#include "fx/capture/proxy.h"

namespace fx {

/// A tensor without values that stands for `proxy`. Its only dispatch key has a boxed fallback that
/// records every operator called on it. Asking it for sizes, strides, storage or data throws
/// TraceError kConcreteValue.
at::Tensor make_proxy_tensor(const Proxy& proxy);

/// The proxy behind a proxy tensor, or null for any other tensor.
const Proxy* find_proxy(const at::Tensor& tensor) noexcept;

}  // namespace fx
