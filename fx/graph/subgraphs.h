#pragma once

#include <string>
#include <vector>

#include "fx/graph/graph.h"
#include "fx/ops/higher_order.h"

namespace fx {

/// The operator that `node` calls if it takes graphs, else null.
const HigherOrderOp* higher_order_of(const Node& node);

/// The arguments of `node` that are its graphs, as far as they are get_attr nodes: for cond the
/// branch for true, then the one for false. Empty for calls of anything else.
std::vector<const Node*> subgraph_nodes(const Node& node);

/// Whether a call of a higher-order operator may have effects: one of its graphs has, or is not
/// known. `node` calls one.
bool subgraphs_are_impure(const Node& node, bool impure_random);

/// Why a call of a higher-order operator cannot be right, or empty: graphs that are missing, that
/// take another number of operands than they get, that do not agree in what they return, or that
/// return an operand or one value twice, which operators that make new values do not allow.
/// O(nodes that are outputs of the graphs).
std::string subgraph_problem(const Node& node);

}  // namespace fx
