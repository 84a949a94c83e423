#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fx/ops/tolerance.h"
#include "fx/ops/value.h"
#include "tools/fxcpp/report.h"

/// Comparing tensors as torch.testing.assert_close does, and telling what would have been enough.
namespace fx::cli {

/// What the user asked for; what is absent follows the dtype.
struct ToleranceFlags {
  std::optional<double> rtol;
  std::optional<double> atol;
  Tolerance of(at::ScalarType dtype) const;
};

/// An error and where it is.
struct WorstElement {
  double value = 0;
  std::vector<std::int64_t> index;
};

struct Comparison {
  bool pass = false;
  /// Why nothing could be compared ("dtype f32 found, f64 expected"), or empty.
  std::string reason;
  Tolerance tolerance;
  std::int64_t elements = 0;
  std::int64_t mismatches = 0;
  WorstElement max_abs;
  WorstElement max_rel;  ///< relative to |expected|; inf where that is 0 and actual is not
  /// The element that is furthest outside of (or nearest to) the tolerance.
  std::vector<std::int64_t> worst_index;
  double worst_actual = 0;
  double worst_expected = 0;
  /// The smallest that would pass, the other one as it is; inf if none would.
  double needed_rtol = 0;
  double needed_atol = 0;
};

/// NaN equals NaN, and infinities of one sign are equal. Values that are no tensors have to be
/// equal. O(elements), in pieces of bounded size.
Comparison compare(const Value& actual, const Value& expected, const ToleranceFlags& tolerance);

/// "[3, 7]"; "" for a 0-d tensor.
std::string index_text(const std::vector<std::int64_t>& index);
Json comparison_json(const Comparison& comparison);
/// "element [3, 7] is 1.5, expected 1.2; 17 of 4000 elements are outside; needs --rtol 0.2 or
/// --atol 0.3".
std::string explain(const Comparison& comparison);

}  // namespace fx::cli
