#pragma once

#include <cstdint>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/passes/joint.h"

namespace fx {

/// What the nodes of a joint graph are needed for, and what keeping their values costs. Describes
/// the graph as it was when made; all answers are O(1).
class JointNodes {
 public:
  /// O(nodes + arguments). @throws PassError kBadPartition when the graph is none of joint(): its
  /// result depends on a tangent, it writes to something but a copy into an input or attribute, or
  /// a gradient is what the forward writes.
  explicit JointNodes(const GraphModule& joint);

  const JointSignature& signature() const noexcept { return signature_; }
  const Argument& result() const noexcept { return result_; }
  const Argument& gradients() const noexcept { return gradients_; }

  /// Computed from a tangent: can only run in the backward.
  bool is_backward(const Node& node) const noexcept { return has(node, kBackward); }
  /// The result or an effect of the forward needs it (or it is an item of what does).
  bool is_forward(const Node& node) const noexcept { return has(node, kForward); }
  /// A gradient needs it.
  bool is_for_gradient(const Node& node) const noexcept { return has(node, kForGradient); }
  bool is_tangent(const Node& node) const noexcept { return has(node, kTangent); }
  /// A gradient that no tangent is needed for, or an operand of a backward node.
  bool is_used_by_backward(const Node& node) const noexcept { return has(node, kUsedByBackward); }
  /// Shows the memory of its first argument; costs nothing to make again.
  bool is_view(const Node& node) const noexcept { return has(node, kView); }
  /// An attribute that the forward leaves as it is: the backward reads it, and nothing is kept.
  bool is_steady_attribute(const Node& node) const noexcept {
    return node.op() == Opcode::kGetAttr && !has(node, kWritten);
  }
  /// An input or attribute that the forward writes to: the backward needs a copy.
  bool is_written(const Node& node) const noexcept { return has(node, kWritten); }

  /// What has to be kept for the backward to have the value of `node`: `node` itself, or what it
  /// is a view of.
  const Node& base(const Node& node) const noexcept { return *base_[node.id()]; }
  /// Bytes of the elements; 0 where no "tensor_meta" tells.
  std::int64_t bytes(const Node& node) const noexcept { return bytes_[node.id()]; }
  /// Steps to the next use by a backward node; kFar if there is none.
  static constexpr std::int32_t kFar = 1'000'000'000;
  std::int32_t distance_to_backward(const Node& node) const noexcept {
    return distance_[node.id()];
  }

 private:
  enum Flag : std::uint8_t {
    kBackward = 1,
    kForward = 2,
    kForGradient = 4,
    kTangent = 8,
    kUsedByBackward = 16,
    kView = 32,
    kWritten = 64,
  };
  bool has(const Node& node, Flag flag) const noexcept { return (flags_[node.id()] & flag) != 0; }
  void mark(const Node& node, Flag flag) noexcept {
    flags_[node.id()] = static_cast<std::uint8_t>(flags_[node.id()] | flag);
  }
  void mark_tangents_and_views(const Graph& graph);
  void mark_needs(const Graph& graph);
  void mark_uses(const Graph& graph);

  JointSignature signature_;
  Argument result_, gradients_;
  std::vector<std::uint8_t> flags_;  // by node id, like the rest
  std::vector<const Node*> base_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::int32_t> distance_;
};

}  // namespace fx
