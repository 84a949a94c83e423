#pragma once

#include "fx/ops/function.h"
#include "fx/ops/value.h"

namespace fx {

/// Implementation of a built-in ("operator.add", "builtins.getattr", "math.sqrt", "torch.tensor").
using Builtin = Value (*)(Values& args, KwValues& kwargs);

/// Null when there is no such built-in. O(log n).
Builtin find_builtin(std::string_view name);

/// All names, sorted.
std::vector<std::string_view> builtin_names();

/// The torch function that stands for a built-in as soon as its operands are tensors: "torch.add"
/// for "operator.add". Null when there is none. With other operands the built-in itself decides.
const Function* tensor_function_of(std::string_view name);

/// Python's getattr on a tensor: shape, dtype, device, ndim, T, mT, H, real, imag, grad, data,
/// requires_grad, is_leaf, layout.
/// @throws RunError kWrongType naming the attribute.
Value get_attribute(const Value& object, std::string_view name);

/// Python's object[index]: tensors by int, slice, None, Ellipsis, bool, tensor or a tuple of them;
/// lists and tuples by int and slice; dicts by key.
Value get_item(const Value& object, const Value& index);

/// Python's object[index] = value, for tensors.
/// @throws RunError kWrongType for other objects.
void set_item(const Value& object, const Value& index, const Value& value);

}  // namespace fx
