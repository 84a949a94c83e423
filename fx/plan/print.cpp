#include "fx/plan/plan.h"

namespace fx {
namespace {

std::string joined(const std::vector<Operand>& operands) {
  std::string out;
  for (std::size_t i = 0; i < operands.size(); ++i) out += (i ? ", " : "") + to_string(operands[i]);
  return out;
}

std::string slot_name(Slot slot) { return slot == kNoSlot ? "_" : "s" + std::to_string(slot); }

std::string arguments_of(const OperatorCall& call) {
  std::string out;
  std::size_t next_patch = 0;
  for (std::size_t i = 0; i < call.stack.size(); ++i) {
    const bool patched = next_patch < call.patches.size() && call.patches[next_patch].position == i;
    if (i) out += ", ";
    out += call.overload->rules[i].name + "=" +
           (patched ? to_string(call.patches[next_patch].operand) : to_string(call.stack[i]));
    next_patch += patched;
  }
  return out;
}

std::string call_text(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kAttr:
      return "attr " + step.target.str();
    case Step::Kind::kError:
      return "error: " + step.error;
    case Step::Kind::kOperator: {
      std::string out;
      for (const OperatorCall& call : step.calls)
        out += (out.empty() ? "" : " | ") + toString(call.overload->handle.operator_name()) + "(" +
               arguments_of(call) + ")";
      return out;
    }
    default:
      break;
  }
  std::string out = step.kind == Step::Kind::kMethod   ? "method "
                    : step.kind == Step::Kind::kModule ? "module "
                                                       : "";
  out += step.target.str() + "(" + joined(step.args);
  for (const auto& [key, operand] : step.kwargs)
    out += (out.ends_with('(') ? "" : ", ") + key.str() + "=" + to_string(operand);
  return out + ")";
}

}  // namespace

std::string to_string(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kConstant:
      return to_string(operand.constant);
    case Operand::Kind::kSlot:
      return slot_name(operand.slot) + (operand.last_use ? "!" : "");
    case Operand::Kind::kList:
      return "[" + joined(operand.items) + "]";
    case Operand::Kind::kTuple:
      return "(" + joined(operand.items) + (operand.items.size() == 1 ? ",)" : ")");
    case Operand::Kind::kSlice:
      return "slice(" + joined(operand.items) + ")";
    case Operand::Kind::kDict: {
      std::string out;
      for (std::size_t i = 0; i < operand.items.size(); ++i)
        out += (i ? ", " : "") + to_string(operand.keys[i]) + ": " + to_string(operand.items[i]);
      return "{" + out + "}";
    }
  }
  return "?";
}

std::string Plan::str() const {
  std::string out = "plan: " + std::to_string(steps_.size()) + " steps, " +
                    std::to_string(num_slots_) + " slots\n";
  for (std::size_t i = 0; i < input_slots_.size(); ++i)
    out += "  " + slot_name(input_slots_[i]) + " = input " + signature_.parameters[i].target + "\n";
  for (const Step& step : steps_)
    out += "  " + slot_name(step.result) + " = " + call_text(step) + "\n";
  out +=
      "  return " + (output_error_.empty() ? to_string(output_) : "error: " + output_error_) + "\n";
  return out;
}

}  // namespace fx
