#pragma once

#include <c10/util/FunctionRef.h>

#include "fx/graph/node.h"
#include "fx/ops/value.h"

/// Arguments of nodes as run-time values, and back.
namespace fx {

/// Gives the value of a node that occurs in an argument.
using NodeReader = c10::function_ref<Value(Node&)>;

/// The run-time value of `argument`: numbers, strings, none and devices stay what they are; dtypes,
/// layouts and memory formats become ints; slices and Ellipsis capsules. A list whose elements are
/// all ints, all floats, all bools or all tensors becomes LibTorch's list of that type, so that
/// operators take it without a conversion. O(size).
Value value_of(const Argument& argument, NodeReader read);

/// The same, with `enumerated` giving the value of dtypes, layouts and memory formats, of which an
/// int does not say that it is one.
using EnumReader = c10::function_ref<Value(const Argument&)>;
Value value_of(const Argument& argument, NodeReader read, EnumReader enumerated);

/// The value of an argument without nodes. @throws InternalError if there is one.
Value value_of(const Argument& argument);

/// A list value of `items`, typed as value_of does.
Value make_list(Values items);

/// Turns a value that no Argument can hold (a tensor, a capsule) into an argument, or throws.
using ValueConverter = c10::function_ref<Argument(const Value&)>;

/// The inverse of value_of for everything but dtypes, layouts and memory formats, which come back
/// as ints. `convert` is called for tensors and unknown kinds, nested ones too.
Argument argument_of(const Value& value, ValueConverter convert);

}  // namespace fx
