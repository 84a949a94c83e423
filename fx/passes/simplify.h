#pragma once

#include <span>
#include <string_view>

#include "fx/passes/pass.h"

namespace fx {

/// A rule of simplify().
struct SimplifyRule {
  std::string_view name;
  std::string_view rewrite;  ///< what becomes what
  std::string_view reason;   ///< why every bit stays what it was
};

/// All of them, in the order in which they are tried.
std::span<const SimplifyRule> simplify_rules();

struct SimplifyOptions {
  /// Takes dtypes, shapes, strides and need of gradients that shape_prop has left as those of every
  /// run. Without that only what the graph itself says counts: the dtypes of conversions and
  /// comparisons.
  bool use_metadata = true;
};

/// Rewrites calls of calls by exact rules (simplify_rules()): double negations, what is done twice,
/// divisions by powers of two, conversions that lose nothing, views of views. Results keep their
/// bits (but for those of NaNs), dtypes, strides and gradients. A call stays where its memory or
/// that of its arguments is written to, and a value in new memory is not replaced by its argument
/// where it is returned. A call that would raise an error may be among those that are not needed
/// any more, as with dce. Also in nested GraphModules. O(nodes) for each time that a rewrite makes
/// another one possible. rules: the rewrites by rule.
PassResult simplify(GraphModule& module, const SimplifyOptions& options = {});

}  // namespace fx
