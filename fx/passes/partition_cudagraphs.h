#pragma once

#include "fx/passes/operator_support.h"

namespace fx {

/// Calls that a CUDA graph can record (torch.fx.passes.backends.cudagraphs): all tensors that go in
/// and out are on a CUDA device, as shape_prop saw them, and something is computed there: a number
/// that is read on the CPU could not be recorded.
OperatorSupport cudagraphs_support();

/// Makes submodules "fused_N" of what cudagraphs_support accepts. `module` is run on the inputs
/// first (shape_prop). Returns the calls. @throws RunError when the module fails.
std::vector<Node*> partition_cudagraphs(GraphModule& module, const Values& inputs);

}  // namespace fx
