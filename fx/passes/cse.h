#pragma once

#include <functional>

#include "fx/passes/pass.h"

namespace fx {

struct CseOptions {
  /// Also merges two values that are both returned. The caller then gets the same tensor twice and
  /// must not write into one of them.
  bool share_outputs = false;
  /// Calls for which this says true are not merged (torch.fx's banned_ops).
  std::function<bool(const Node&)> banned = {};
};

/// Common subexpression elimination, by value numbering: of calls that compute the same from the
/// same values, the first stays and takes over the users of the others; also in nested
/// GraphModules.
///
/// Never merged: calls with effects (random numbers too), values whose memory is written to
/// anywhere, calls between which memory that they read may have been written, and constants that
/// are equal only across types (1, 1.0 and True). Attributes are equal when they are the same
/// tensor, modules when they are the same object. Arguments are compared in the order of the
/// schema, so defaults and keywords make no difference. O(nodes + arguments). rewrites: nodes
/// removed.
PassResult cse(GraphModule& module, const CseOptions& options = {});

}  // namespace fx
