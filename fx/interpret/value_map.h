#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "fx/ops/value.h"

namespace fx {

/// What a tensor is replaced by.
using TensorMap = c10::function_ref<Value(const at::Tensor&)>;

/// The same value with every tensor in it replaced, in lists, tuples, dicts and slices too;
/// everything else stays as it is. O(size).
Value map_tensors(const Value& value, TensorMap map);

/// The same for the arguments of a call, in place: what an override of a handler wants that changes
/// the tensors it gets and leaves numbers alone.
void map_tensors(Values& args, KwValues& kwargs, TensorMap map);

/// A copy whose tensors are clones, so that in-place operators on one do not show in the other.
Value clone_tensors(const Value& value);

}  // namespace fx
