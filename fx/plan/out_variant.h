#pragma once

#include <ATen/core/stack.h>

#include <cstdint>
#include <vector>

#include "fx/ops/op_info.h"
#include "fx/ops/value.h"

namespace fx {

/// How to compute an operator's results into tensors that exist: some arguments of the operator,
/// then `extra`, then the tensors.
struct OutVariant {
  struct Arg {
    std::uint32_t index = 0;  ///< of the operator's argument
    bool transposed = false;  ///< its t()
  };

  const Overload* overload = nullptr;  ///< null when there is none
  bool all_args = true;                ///< every argument as it stands; else `args`
  std::vector<Arg> args;
  Values extra;
};

/// The overload of the same operator with the same arguments and an `out` for each result, as far
/// as it is another entry to the same code: both have a kernel for the CPU. (Others are made from
/// the operator and a copy, or by another formula.) For a few operators that only call another one
/// (relu, softmax, matmul and linear of matrices) that of the other one. None for operators that
/// write, draw random numbers, or give results whose sizes depend on values. O(overloads).
/// @param arguments a stack of the operator: what it calls may depend on dimensions.
OutVariant find_out_variant(const Overload& functional, const torch::jit::Stack& arguments);

}  // namespace fx
