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
  bool is_number = false;  ///< one that the graph computes: an expression without dimensions
};

/// Lowers the nodes of one graph, one after the other, into one program.
class NodeLowering {
 public:
  TensorProgram& program() noexcept { return program_; }
  const TensorProgram& program() const noexcept { return program_; }

  /// The value of `node` is a tensor that the program reads. @throws Unsupported for its dtype.
  Tensor add_input(const Node& node, c10::ScalarType type, std::span<const std::int64_t> sizes);
  /// The value of `node` is a number that each call passes, of type Long or Double.
  Tensor add_number(const Node& node, c10::ScalarType type);
  /// The value of `node` is these results of an operator that is not lowered.
  void set(const Node& node, NodeExpr expr);
  /// Lowers a call. @throws Unsupported saying why there is no way.
  const NodeExpr& lower(const Node& node);
  /// Null for a node that was neither lowered nor set.
  const NodeExpr* find(const Node& node) const;

 private:
  Value stand_in(const Tensor& tensor);
  Value read(const Node& node);
  LowerArg argument(const Value& value);
  const Tensor* number_of(const Value& value) const;

  TensorProgram program_;
  std::unordered_map<const Node*, NodeExpr> exprs_;
  std::unordered_map<const Node*, Value> values_;    // stand-ins: tensors of one element, expanded
  std::unordered_map<const void*, Tensor> tensors_;  // by TensorImpl of a stand-in
  std::vector<at::Tensor> keep_alive_;
  std::vector<Tensor> numbers_;    // by index of their stand-ins
  std::size_t numbers_read_ = 0;   // by the call that is being lowered, and ...
  std::size_t numbers_found_ = 0;  // ... in the arguments that it is bound to
};

/// The type of a number that `node` gives, by the "type" that ShapeProp noted: Long or Double.
/// Nothing for all else.
std::optional<c10::ScalarType> number_type(const Node& node);

/// The operator that a call of a graph means for these values, and its arguments as a stack.
/// @throws Unsupported when it is none; RunError when the values do not fit it.
const Overload& resolve_call(const Node& node, Values args, KwValues kwargs,
                             torch::jit::Stack& stack);

}  // namespace fx::loops
