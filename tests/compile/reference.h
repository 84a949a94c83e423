#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "fx/compile/tensor_expr.h"

/// What a tensor program means, in plain ATen calls, one a expression. The oracle of whatever makes
/// kernels of programs: slow, and right.
namespace fx::loops {

struct ReferenceResult {
  std::vector<at::Tensor> outputs;
  /// A divisor was zero: the outputs mean nothing, eager reports an error.
  bool tripped = false;
};

/// Whether inputs of these sizes are what the shapes of the program assume.
bool fits(const TensorProgram& program, std::span<const at::Tensor> inputs);

/// @param inputs of the dtypes and sizes of the program's inputs.
/// @param scalars the numbers that the call passes.
ReferenceResult evaluate(const TensorProgram& program, std::span<const Tensor> outputs,
                         std::span<const at::Tensor> inputs,
                         std::span<const c10::Scalar> scalars = {});

}  // namespace fx::loops
