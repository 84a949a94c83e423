#pragma once

#include <functional>

#include "fx/graph/graph_module.h"

namespace fx {

/// The graph that a higher-order operator is given as a value, or null for other values.
std::shared_ptr<GraphModule> graph_of_value(const Value& value);

/// A value for the place of `graph` among the arguments of a higher-order operator: where the
/// operator runs the graph, `run` is called with the graph and its operands.
Value graph_stand_in(std::shared_ptr<GraphModule> graph,
                     std::function<Value(GraphModule&, Values)> run);

}  // namespace fx
