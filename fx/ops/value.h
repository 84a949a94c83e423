#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/base/symbol.h"

namespace fx {

/// What flows along the edges of a graph while it runs: a tensor, number, string, list, tuple,
/// dict. Dtypes, layouts and memory formats are ints, as everywhere in LibTorch; slices and
/// Ellipsis, which IValue lacks, are capsules.
using Value = c10::IValue;
using Values = std::vector<Value>;

/// A keyword argument at run time.
struct KwValue {
  Symbol key;
  Value value;
};
using KwValues = std::vector<KwValue>;

/// The value under `key`, or null. O(size).
const Value* find(const KwValues& kwargs, std::string_view key);

/// Python's slice(start, stop, step); each an int or none.
Value make_slice(Value start, Value stop, Value step);
struct Slice {
  Value start, stop, step;
};
/// Null when `value` is no slice.
const Slice* as_slice(const Value& value);
Value make_ellipsis();
bool is_ellipsis(const Value& value);

/// Python-like text: "tensor([1., 2.])" for small tensors, "(1, 2)", "None".
std::string to_string(const Value& value);
/// "Tensor f32[2, 3]", "int", "tuple" ...: the kind, with dtype and shape for tensors.
std::string describe(const Value& value);

/// Short dtype names as the command line writes them: "f32", "i64", "bf16", "bool".
std::string_view short_dtype_name(at::ScalarType dtype);

/// The elements of a list or tuple of any element type.
/// @throws RunError kWrongType for any other kind.
Values elements(const Value& value);
bool is_sequence(const Value& value);

}  // namespace fx
