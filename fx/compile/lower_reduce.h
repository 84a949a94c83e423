#pragma once

#include <cstdint>
#include <vector>

#include "fx/compile/lower_call.h"

/// Reductions that several operators are made of.
namespace fx::loops {

/// The argument `dim` of a reduction, wrapped and sorted; all if it is not there, None or empty.
std::vector<std::int64_t> reduced_dims(const Call& call, const Num& x);

/// The mean of floats over `dims`, which stay with size 1. NaN where there is nothing.
Num mean_of(const Num& x, const std::vector<std::int64_t>& dims);

/// Without the dimensions `dims` of size 1, unless keepdim.
Num without_dims(const Num& x, const std::vector<std::int64_t>& dims, bool keepdim);

/// The p-norm of floats.
Num vector_norm(const Num& x, double p, const std::vector<std::int64_t>& dims, bool keepdim);

}  // namespace fx::loops
