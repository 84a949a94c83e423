#pragma once

#include <vector>

#include "fx/passes/joint_nodes.h"

namespace fx {

/// Which nodes of the forward must not run again in the backward, and what it weighs to keep their
/// values instead: the heuristics of torch._functorch.partitioners.
///
/// Never recomputed: what has effects (random numbers above all: the backward needs the mask that
/// the forward drew); what is not known to be cheap; what the backward would have to write to
/// memory anyway, since no kernel can take it in; results at most a quarter as large as their
/// operands; what a value is used for again behind an operator that ends kernels; and every hundred
/// nodes something in a long chain of cheap ones.
class RecomputeRules {
 public:
  /// @param aggressive recompute everything but random and compute-heavy operators.
  RecomputeRules(const Graph& joint, const JointNodes& nodes, bool aggressive);

  bool is_banned(const Node& node) const noexcept { return banned_[node.id()]; }
  /// Bytes, made heavier for values that lie far from the backward, and for those that otherwise
  /// would not reach memory.
  std::int64_t weight(const Node& node) const;

 private:
  bool is_fusible(const Node& producer, const Node& user) const;
  bool is_written_out_by_backward(const Node& node) const;
  bool shrinks(const Node& node) const;
  bool must_not_run_again(const Node& node, bool aggressive) const;
  void ban(const Node& node) {
    if (!nodes_.is_view(node)) banned_[node.id()] = true;
  }
  std::uint32_t first_unfusible_use(const std::vector<const Node*>& users,
                                    std::uint32_t last) const;
  void ban_uses_far_apart(const Graph& joint);
  void ban_long_chains(const Graph& joint);

  const JointNodes& nodes_;
  std::vector<bool> banned_;  // by node id, like the rest
  std::vector<bool> cheap_, random_;
  std::vector<std::uint32_t> position_;  // in the graph
};

}  // namespace fx
