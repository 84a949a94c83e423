#pragma once

#include "fx/ops/op_info.h"
#include "fx/ops/value.h"

namespace fx {

/// How to compute an operator's results into tensors that exist: the arguments of the operator,
/// then `extra`, then the tensors.
struct OutVariant {
  const Overload* overload = nullptr;  ///< null when there is none
  Values extra;
};

/// The overload of the same operator with the same arguments and an `out` for each result, as far
/// as it is another entry to the same code: both have a kernel for the CPU. (Others are made from
/// the operator and a copy, or by another formula.) None for operators that write, draw random
/// numbers, or give results whose sizes depend on values. O(overloads).
OutVariant find_out_variant(const Overload& functional);

}  // namespace fx
