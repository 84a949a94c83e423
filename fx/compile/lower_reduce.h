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

struct Normalized {
  Num value;  ///< (x - mean) * inverse
  Num mean;
  Num inverse;  ///< 1 / sqrt(variance + eps)
};
/// Floats with mean 0 and variance 1 over `dims`, which mean and inverse have with size 1.
Normalized normalize(const Num& x, const std::vector<std::int64_t>& dims, double eps);

/// The dtype of statistics, which parameters share: that of the input, or float where parameters of
/// half and bfloat16 inputs are. @throws Unsupported for other combinations.
c10::ScalarType parameter_type(const Call& call, c10::ScalarType type,
                               std::initializer_list<const char*> parameters);

/// The p-norm of floats.
Num vector_norm(const Num& x, double p, const std::vector<std::int64_t>& dims, bool keepdim);

}  // namespace fx::loops
