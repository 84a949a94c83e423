#pragma once

#include <c10/core/ScalarType.h>

namespace fx {

/// |actual - expected| <= atol + rtol * |expected|, element by element.
struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

/// torch.testing.assert_close's: f64 1e-7/1e-7, f32 1.3e-6/1e-5, f16 1e-3/1e-5, bf16 1.6e-2/1e-5,
/// complex as its parts, everything else 0/0.
constexpr Tolerance default_tolerance(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Double:
    case c10::ScalarType::ComplexDouble:
      return {1e-7, 1e-7};
    case c10::ScalarType::Float:
    case c10::ScalarType::ComplexFloat:
      return {1.3e-6, 1e-5};
    case c10::ScalarType::Half:
    case c10::ScalarType::ComplexHalf:
      return {1e-3, 1e-5};
    case c10::ScalarType::BFloat16:
      return {1.6e-2, 1e-5};
    default:
      return {};
  }
}

}  // namespace fx
