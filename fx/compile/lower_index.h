#pragma once

#include "fx/compile/lower_call.h"

/// What lowerings that read tensors at other indices share.
namespace fx::loops {

/// An identity index for each of `rank` dimensions.
std::vector<Affine> identity_index(std::int64_t rank);

/// Part of dimension `dim`: the indices `start`, `start + step`, ... `length` is no size yet.
Tensor part_of(TensorProgram& program, const Tensor& x, std::int64_t dim, Dim start, Dim length,
               Dim step = kOne);

/// Assumes a <= b in every call. @throws Unsupported when it does not hold in the example.
void assume_at_most(Shapes& shapes, Dim a, Dim b);

}  // namespace fx::loops
