#pragma once

#include <ATen/ATen.h>

#include <limits>
#include <utility>
#include <vector>

/// Short names for values in tests of operators.
namespace fx::loops {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

inline at::Tensor floats(std::vector<double> values, at::ScalarType type = at::kFloat) {
  return at::tensor(values, at::kDouble).to(type);
}
inline at::Tensor ints(std::vector<std::int64_t> values, at::ScalarType type = at::kLong) {
  return at::tensor(values, at::kLong).to(type);
}
inline at::Tensor bools(std::vector<std::int64_t> values) {
  return ints(std::move(values), at::kBool);
}

}  // namespace fx::loops
