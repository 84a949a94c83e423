#pragma once

#include "fx/passes/pass.h"

namespace fx {

/// Replaces x.size() and x.shape, of all dimensions at once, by a tuple of single sizes: a number
/// where the type of x (TensorType, see type_check.h) has one, else aten::sym_size.int(x, i); and
/// items of it by the size itself. So what later crosses the border of a partition is an int, not a
/// list of them. Left alone where neither the type nor what shape_prop recorded tells the number of
/// dimensions. rewrites: nodes replaced. O(nodes + uses). torch.fx.passes.split_module's
/// _decompose_size_nodes.
PassResult decompose_sizes(GraphModule& module);

}  // namespace fx
