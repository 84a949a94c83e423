#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fx/compile/lower_op.h"
#include "fx/graph/node.h"

/// From nodes of a graph to tensor expressions.
namespace fx::loops {

/// What is known of a node's value: a tensor expression, or a tuple of such.
struct NodeExpr {
  bool is_tuple = false;
  std::vector<Tensor> tensors = {};
};

/// Lowers the nodes of one graph, one after the other, into one program.
class NodeLowering {
 public:
  TensorProgram& program() noexcept { return program_; }
  const TensorProgram& program() const noexcept { return program_; }

  /// The value of `node` is a tensor that the program reads. @throws Unsupported for its dtype.
  Tensor add_input(const Node& node, c10::ScalarType type, std::span<const std::int64_t> sizes);
  /// The value of `node` is these results of an operator that is not lowered.
  void set(const Node& node, NodeExpr expr);
  /// Lowers a call. @throws Unsupported saying why there is no way.
  const NodeExpr& lower(const Node& node);
  /// Null for a node that was neither lowered nor set.
  const NodeExpr* find(const Node& node) const;

 private:
  Value stand_in(const Tensor& tensor);
  Value read(const Node& node);
  LowerArg argument(const Value& value) const;

  TensorProgram program_;
  std::unordered_map<const Node*, NodeExpr> exprs_;
  std::unordered_map<const Node*, Value> values_;    // stand-ins: tensors of one element, expanded
  std::unordered_map<const void*, Tensor> tensors_;  // by TensorImpl of a stand-in
  std::vector<at::Tensor> keep_alive_;
};

/// The operator that a call of a graph means for these values, and its arguments as a stack.
/// @throws Unsupported when it is none; RunError when the values do not fit it.
const Overload& resolve_call(const Node& node, Values args, KwValues kwargs,
                             torch::jit::Stack& stack);

}  // namespace fx::loops
