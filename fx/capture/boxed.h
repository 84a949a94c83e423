#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

#include "fx/capture/trace_arg.h"
#include "fx/ops/function.h"
#include "fx/ops/value.h"

namespace fx {

/// A boxed operator call as a graph will show it.
struct BoxedCall {
  const Function* function = nullptr;
  TraceArgs args;
  KwTraceArgs kwargs;
};

/// Reads a call off the dispatcher's stack: positional arguments without trailing defaults,
/// keyword-only ones by name. Tensors stay tensors; dtypes, layouts and memory formats, which the
/// stack holds as ints, get their kind back from the schema.
/// @throws TraceError kBadArgument for what a graph cannot hold (generators, streams, storages).
BoxedCall boxed_call(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args);

/// A result of a run as what a capture records: tensors, numbers, strings, devices, and tuples,
/// lists and dicts of them.
/// @throws TraceError kBadArgument for other values.
TraceArg to_trace_arg(const Value& value);

/// The argument that return value `index` is, when the operator writes to it and gives it back
/// ("Tensor(a!) self ... -> Tensor(a!)").
std::optional<std::size_t> written_argument(const c10::FunctionSchema& schema, std::size_t index);

}  // namespace fx
