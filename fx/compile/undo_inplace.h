#pragma once

#include "fx/graph/graph_module.h"

namespace fx::loops {

/// Replaces in-place operators by their functional forms where nobody can tell the difference: the
/// memory was made in this graph, no view of it exists, and the functional form gives the same
/// dtype (by the "tensor_meta" of the nodes, which InputKinds holds later calls to). What a later
/// node reads of the memory becomes the result of the last operator that wrote to it. Returns how
/// many were replaced. O(nodes + uses).
///
/// C++ programs are full of them: `1 - x` is empty_like, fill_ and sub_.
std::size_t undo_inplace(GraphModule& module);

}  // namespace fx::loops
