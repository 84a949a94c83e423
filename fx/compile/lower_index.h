#pragma once

#include "fx/compile/lower_call.h"

/// What lowerings that read tensors at other indices share.
namespace fx::loops {

/// An identity index for each of `rank` dimensions.
std::vector<Affine> identity_index(std::int64_t rank);

/// Part of dimension `dim`: the indices `start`, `start + step`, ... `length` is no size yet.
Tensor part_of(TensorProgram& program, const Tensor& x, std::int64_t dim, Dim start, Dim length,
               Dim step = kOne);

/// The index in dimension `dim` of what has sizes `dims`, to broadcast to those: int64.
Num index_along(TensorProgram& program, const Dims& dims, std::size_t dim);

/// An argument that holds indices, as int64.
Num indices_of(const Call& call, const Num& index);
/// Fails like eager where an index is not in dimension `dim` of `x`. Negative ones count from the
/// end if it `wraps`.
Num index_in(const Num& x, std::int64_t dim, Num index, bool wraps);
/// Indices of several dimensions that stand together, as `index` takes them; None before and
/// behind. @throws Unsupported for others.
struct IndexList {
  std::int64_t first = 0;
  std::vector<Num> indices = {};
};
IndexList index_list(const Call& call, const Num& x);

/// Assumes a <= b in every call. @throws Unsupported when it does not hold in the example.
void assume_at_most(Shapes& shapes, Dim a, Dim b);

}  // namespace fx::loops
