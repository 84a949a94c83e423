#pragma once

#include <ATen/core/Tensor.h>

#include "fx/ops/value.h"

namespace fx {

/// Calls `fn` with each tensor of a value, also undefined ones: itself, or in lists, tuples and
/// dicts.
template <typename Fn>
void for_each_tensor(const Value& value, Fn&& fn) {
  if (value.isTensor()) {
    fn(value.toTensor());
  } else if (value.isTuple()) {
    for (const Value& item : value.toTupleRef().elements()) for_each_tensor(item, fn);
  } else if (is_sequence(value)) {
    for (const Value& item : elements(value)) for_each_tensor(item, fn);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) for_each_tensor(item.value(), fn);
  }
}

}  // namespace fx
