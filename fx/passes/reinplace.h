#pragma once

#include "fx/passes/pass.h"

namespace fx {

struct ReinplaceOptions {
  /// Take the shapes of the example inputs as those of every run: views that lie on the same memory
  /// there count as equal, also if they were made in different ways.
  bool static_shapes = false;
};

/// Lets operators work in place where nobody could tell (torch.fx.passes.reinplace): `b = add(a,
/// 1)` becomes `b = add_(a, 1)` if nothing reads the memory of `a` afterwards. Meant for graphs of
/// aten operators without writes, as make_fx captures functional code.
///
/// The memory must have been made by an operator of the graph, not be an input, an attribute or a
/// view of one, and be no longer read through any of its views. Operands and result must have the
/// same dtype, shape and strides, the operand's elements must not overlap, and no other argument
/// may share its memory. Where in doubt the node stays as it is. Autograd keeps values as well: in
/// training mode nothing that requires gradients is written to.
///
/// `s = select_scatter(a, v, dim, index)`, slice_scatter, diagonal_scatter and as_strided_scatter
/// turn into writes to `a`: into nothing if `v` is that very view of `a`, written to before, else
/// into `copy_(select(a, dim, index), v)`.
///
/// The module is run on `example_inputs` once, without a trace, to see shapes and strides. With
/// inputs of other shapes an operator that broadcasts its operand may fail instead of making a
/// larger result. O(nodes * uses of what may share memory). rewrites: nodes changed or removed.
/// @throws RunError when the module fails on the inputs.
PassResult reinplace(GraphModule& module, const Values& example_inputs,
                     const ReinplaceOptions& options = {});

}  // namespace fx
