#pragma once

#include "fx/passes/pass.h"

namespace fx {

struct DceOptions {
  /// Whether drawing random numbers counts as an effect; false also removes unused random nodes,
  /// which changes what later ones draw.
  bool impure_random = true;
};

/// Dead code elimination: removes nodes without users and without effects (Node::is_impure), here
/// and in all nested GraphModules. Placeholders stay. O(nodes). rewrites: nodes removed.
PassResult dce(GraphModule& module, const DceOptions& options = {});

}  // namespace fx
