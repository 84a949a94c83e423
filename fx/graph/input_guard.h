#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fx/ops/value.h"

namespace fx {

/// What a captured program took for granted of one tensor input. Running the graph on anything else
/// might compute something else without notice, so calls are checked.
struct InputGuard {
  /// One extent: a fixed size, a symbol with bounds, or (neither) anything.
  struct Dim {
    std::optional<std::int64_t> size;
    std::string symbol;  ///< equal symbols must have equal extents
    std::optional<std::int64_t> min, max;

    friend bool operator==(const Dim&, const Dim&) = default;
  };

  std::string input;  ///< target of the placeholder
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<Dim> dims;

  /// "f32[s0, 3, 224, 224]".
  std::string str() const;
  friend bool operator==(const InputGuard&, const InputGuard&) = default;
};

/// The guard that `tensor` itself fulfils: its dtype and exact shape.
InputGuard exact_guard(std::string input, const at::Tensor& tensor);

/// Checks flat inputs against guards; an input without a guard, and a guard whose input is missing
/// (arity is checked elsewhere), pass. `names` are the placeholders' targets in order.
/// @throws RunError kWrongType (no tensor, other dtype), kShapeMismatch naming input, dimension,
/// what was
///   found and what was wanted. O(inputs * dims).
void check_inputs(const std::vector<InputGuard>& guards, const std::vector<std::string>& names,
                  const Values& args, const KwValues& kwargs);

}  // namespace fx
