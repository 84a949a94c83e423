#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/base/error.h"
#include "fx/graph/node.h"
#include "fx/ops/value.h"

/// Errors of a running node: the same text, whoever runs the graph.
namespace fx {

/// The message of the exception being handled, without advice, code and LibTorch's C++ stack.
std::string current_exception_text();

/// Values that a failing node read, under the names of their nodes.
using NamedValues = std::vector<std::pair<std::string, Value>>;

/// Call this in a handler: rethrows the exception being handled as a RunError that has it nested
/// and says where it happened:
///
///     <original text>
///
///     While executing %add : [num_users=1] = call_function[target=operator.add](args = (%x, %y),
///     ...
///       x: Tensor f32[2, 3]
///     Module: encoder.layer1
///     Original traceback: ...
///
/// The code is kNodeFailed, but kMissingInput, kMissingValue, kMissingAttr and kDeviceMismatch of
/// this graph are kept. @param note a further line, or empty.
[[noreturn]] void rethrow_for_node(const Node& node, const NamedValues& inputs,
                                   std::string_view note = {});

/// Of a graph that ends in an output node without an argument.
inline constexpr std::string_view kEmptyOutput =
    "the output node has no argument, so that there is nothing to return";

/// "Node add referenced nonexistent value x! Run Graph.lint() to diagnose such issues".
[[noreturn]] void throw_missing_value(const Node& user, const Node& value);

}  // namespace fx
