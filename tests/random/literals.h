#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

/// What the tests that cpp_test prints are written with.
namespace fx::fuzz {

/// A tensor of these elements in row-major order.
inline at::Tensor floats(at::ScalarType dtype, const std::vector<std::int64_t>& shape,
                         const std::vector<double>& elements) {
  return at::tensor(elements, at::kDouble).reshape(shape).to(dtype).clone();
}
inline at::Tensor integers(at::ScalarType dtype, const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& elements) {
  return at::tensor(elements, at::kLong).reshape(shape).to(dtype).clone();
}

/// Gives a parameter or buffer of a submodule these elements.
inline void fill(const GraphModule& module, const std::string& path, const at::Tensor& elements) {
  const at::NoGradGuard no_grad;
  module.find_tensor(path).copy_(elements);
}

}  // namespace fx::fuzz
