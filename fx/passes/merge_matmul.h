#pragma once

#include "fx/passes/pass.h"

namespace fx {

/// Merges matrix products with the same right-hand side into one: `a @ c` and `b @ c` become the
/// rows of `cat([a, b]) @ c` (torch.fx.experimental.merge_matmul). Looks at aten::mm, and at
/// torch.matmul, aten::matmul, operator.matmul and the method matmul where shape_prop saw matrices;
/// right-hand sides are equal when they are the same node or the same attribute.
///
/// Only products that do not depend on each other, by values or by effects, and whose operands and
/// results nothing writes to. The result of a product is then a part of the merged one's memory.
/// The sum of each element is the same one, but its terms may be added in another order. Works in
/// place, on one module; nodes behind move where they have to wait. O(products of one kind *
/// nodes). rewrites: products merged.
PassResult merge_matmul(GraphModule& module);

}  // namespace fx
