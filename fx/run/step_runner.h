#pragma once

#include <utility>

#include "fx/graph/module_path.h"
#include "fx/graph/node_error.h"
#include "fx/run/executable.h"
#include "fx/run/frame.h"

namespace fx {

/// Executes the steps of a plan, one by one, over a frame. A step is evaluate(), then finish().
class StepRunner {
 public:
  StepRunner(const GraphModule& module, const Executable::Constants& constants, Frame& frame)
      : module_(module), constants_(constants), slots_(frame.slots), stack_(frame.stack) {}

  /// The value of the step. What it reads for the last time may have left its slot.
  /// @param path of the attribute or submodule that it reads; else null
  Value evaluate(const Step& step, const ModulePath* path);
  /// Drops what dies at the step and stores its value.
  void finish(const Step& step, Value value) {
    for (Slot slot : step.releases)
      if (!slots_[slot].isNone()) slots_[slot] = Value();
    if (step.result != kNoSlot) slots_[step.result] = std::move(value);
  }

  /// Puts the arguments on the stack, or returns false with all slots as they were.
  bool fill_stack(const OperatorCall& call);
  /// Calls the operator of `call`, whose arguments are on the stack.
  Value call_operator(const Step& step, const OperatorCall& call);
  /// Says for inputs_of() whose arguments are on the stack; null for nobody's.
  void set_called(const OperatorCall* call) noexcept { called_ = call; }
  /// The attribute at a path, as it is now.
  Value read_attribute(const ModulePath& path) const;

  /// The value of an operand; what dies here is moved out.
  Value take(const Operand& operand);

  /// What the failed step has read: in the slots still, or moved to the stack.
  NamedValues inputs_of(const Step& step) const;

 private:
  Value call_generic(const Step& step);
  Value call_submodule(const Step& step, const ModulePath& path);
  std::pair<Values, KwValues> arguments(const Step& step);
  void add_inputs(const Operand& operand, std::vector<const Node*>& seen,
                  NamedValues& inputs) const;

  const GraphModule& module_;
  const Executable::Constants& constants_;
  Values& slots_;
  torch::jit::Stack& stack_;
  const OperatorCall* called_ = nullptr;
};

/// Whether the flat inputs are one for each placeholder, in order, so that store_inputs() takes
/// them as they are.
bool fits_placeholders(const InputSignature& signature, const Values& inputs,
                       const KwValues& kwargs);
/// Puts such inputs into their slots; those that nobody reads die.
void store_inputs(const Plan& plan, Values&& inputs, Values& slots);

}  // namespace fx
