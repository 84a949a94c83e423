#pragma once

#include "fx/interpret/interpreter.h"
#include "fx/passes/pass.h"

namespace fx {

/// Runs a module on example inputs and records what each node gives: meta "tensor_meta"
/// (set_tensor_meta: a TensorMeta for a tensor, a NestedTensorMeta for sequences with tensors) and
/// "type" (std::string, as fx::describe shows without shapes: "Tensor", "int", "tuple").
/// torch.fx.passes.shape_prop.ShapeProp.
///
///     ShapeProp(gm).propagate({x});
///
/// Nothing but the metadata changes: buffers that the graph writes to, written inputs and the
/// random generators are what they were (Isolation).
///
/// Graphs that higher-order operators are given are run the same way, and their nodes annotated by
/// their last run: of cond, the branch that was taken.
class ShapeProp : public Interpreter {
 public:
  explicit ShapeProp(GraphModule& module) : Interpreter(module), target_(module) {}

  /// Runs the module and returns its result.
  /// @throws RunError as Interpreter::run; the message starts with "ShapeProp error for: node=...".
  Value propagate(Values inputs);

  void record_value(Node& node, const Value& value) override;
  Value call_function(const Target& target, Values args, KwValues kwargs) override;

 private:
  GraphModule& target_;
};

/// propagate() as a pass: changes metadata only, so it reports no change. rewrites: nodes with a
/// new tensor_meta.
PassResult shape_prop(GraphModule& module, const Values& example_inputs);

}  // namespace fx
