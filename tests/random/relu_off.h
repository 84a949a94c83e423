#pragma once

#include "tests/random/oracles.h"

namespace fx::fuzz {

/// A pass with a fault on purpose: relu gives 0.001 too much.
inline CheckedPass relu_off() {
  return {Pass("relu_off", [](GraphModule& module) {
    // Once for each relu: a second run has nothing to do.
    constexpr const char* kDone = "relu_off";
    PassResult result;
    for (Node* node : module.graph().nodes().to_vector()) {
      const bool is_call = node->op() == Opcode::kCallFunction || node->op() == Opcode::kCallMethod;
      if (!is_call || !node->target().str().ends_with("relu") || node->meta().contains(kDone))
        continue;
      node->meta().set(kDone, true);
      const InsertPointGuard guard = module.graph().inserting_after(*node);
      Node& more = module.graph().call_function("aten::add.Scalar", {*node, 1e-3});
      node->replace_all_uses_with(more, [&](const Node& user) { return &user != &more; });
      ++result.rewrites;
    }
    result.changed = result.rewrites > 0;
    return result;
  })};
}

}  // namespace fx::fuzz
