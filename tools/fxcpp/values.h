#pragma once

#include <optional>
#include <string>

#include "fx/ops/value.h"
#include "tools/fxcpp/report.h"

namespace fx::cli {

/// What is told of a value that a model returned.
struct ValueStats {
  std::string dtype;  ///< "f32", or "int", "str" ... for values that are no tensors
  std::string shape;  ///< "[1, 10]", empty for values that are no tensors
  std::optional<double> min, max, mean;  ///< of the finite elements of real tensors
  std::int64_t nan_count = 0;
  std::int64_t inf_count = 0;
};
ValueStats stats_of(const Value& value);

/// Tensors of up to this many elements are printed whole.
inline constexpr std::int64_t kSmallTensor = 16;
bool is_small(const Value& value);

/// {"dtype", "shape", "min", "max", "mean", "nan_count", "inf_count"}, and "values" as nested lists
/// when the value is small.
Json value_json(const Value& value);

}  // namespace fx::cli
