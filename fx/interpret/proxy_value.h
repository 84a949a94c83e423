#pragma once

#include <ATen/core/ivalue.h>

#include "fx/graph/node.h"
#include "fx/ops/value.h"

namespace fx {

/// A run-time value that stands for a node of a graph that is being built.
struct ProxyValue : torch::CustomClassHolder {
  explicit ProxyValue(Node& n) : node(n) {}
  Node& node;
};

Value make_proxy_value(Node& node);

/// The node that `value` stands for, or null for an ordinary value.
Node* proxy_node(const Value& value);

/// A run-time value that stands for a dtype, layout or memory format and remembers which.
struct ArgumentValue : torch::CustomClassHolder {
  explicit ArgumentValue(Argument a) : argument(std::move(a)) {}
  Argument argument;
};

}  // namespace fx
