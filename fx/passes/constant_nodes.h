#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "fx/analysis/alias.h"
#include "fx/graph/graph_module.h"

namespace fx {

struct ConstantRules {
  /// Whether parameters that require gradients count as constants although the module is in
  /// training mode. In eval mode they always do.
  bool fold_trainable = false;
  /// Also values that are returned: callers then share them and must not write to them.
  bool fold_outputs = false;
  /// A node for which this says true is no constant, nor what depends on it. Also asked about the
  /// nodes of a nested GraphModule, which is folded as a whole or not at all.
  std::function<bool(const Node&)> skip = {};
};

/// Says of the nodes of a graph, without running it, which ones have the same value in every run.
/// Describes the graph as it was when made.
class ConstantNodes {
 public:
  ConstantNodes(const GraphModule& module, const ConstantRules& rules);

  /// Whether the value of `node` may be computed once, given that all its inputs are constants: it
  /// has no effects, reads no memory that anything writes to, and nobody asks to skip it. Returned
  /// calls are not looked at; see is_returned. O(inputs + attributes of a called module).
  bool may_fold(const Node& node) const;
  /// Whether the caller gets the value or a view of it, unless the rules allow to share that.
  bool is_returned(const Node& node) const {
    return !rules_.fold_outputs && aliases_.reaches_output(node);
  }

 private:
  bool is_trainable(const at::Tensor& tensor) const;

  const GraphModule& module_;
  const ConstantRules& rules_;
  const AliasAnalysis aliases_;
  std::unordered_set<const c10::StorageImpl*> exposed_;  // of attributes that reach the output
};

}  // namespace fx
