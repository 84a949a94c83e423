#pragma once

#include <optional>
#include <string>

#include "fx/interpret/interpreter.h"

namespace fx {

/// When two values count as equal.
struct CompareOptions {
  double rtol = 1e-5;
  double atol = 1e-8;
};

/// Empty when the values agree, else why they do not: kinds, dtypes and shapes must be the same,
/// floats within the tolerance (nan agrees with nan), all else equal. O(elements).
std::string compare_values(const Value& expected, const Value& actual, CompareOptions options = {});

/// The first node whose value two interpreters do not agree on.
struct Difference {
  std::string node;
  std::string reason;
  Value expected;
  Value actual;  ///< None when the second interpreter failed there
};

/// Runs a base and a custom interpreter side by side, node by node, on clones of `inputs`. Nodes
/// are matched in order of execution and must have the same names. State of the modules is not
/// copied.
/// @throws RunError as the first interpreter; an error of the second one is a difference.
std::optional<Difference> first_difference(Interpreter& expected, Interpreter& actual,
                                           const Values& inputs, CompareOptions options = {});

}  // namespace fx
