#include "fx/run/static_layout.h"

namespace fx {
namespace {

std::string text_of(const TensorSpec& spec) {
  std::string out(short_dtype_name(spec.dtype));
  out += "[";
  for (std::size_t i = 0; i < spec.sizes.size(); ++i)
    out += (i ? ", " : "") + std::to_string(spec.sizes[i]);
  return out + "]";
}

}  // namespace

bool StaticLayout::fits(const Values& flat_inputs) const {
  if (flat_inputs.size() != inputs.size()) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = flat_inputs[i];
    if (value.isTensor() != inputs[i].has_value()) return false;
    if (inputs[i] && !inputs[i]->matches(value.toTensor())) return false;
  }
  return true;
}

std::string StaticLayout::str(const Plan& plan) const {
  std::string out = "for ";
  for (std::size_t i = 0; i < inputs.size(); ++i)
    out += (i ? ", " : "") + plan.signature().parameters[i].target + ": " +
           (inputs[i] ? text_of(*inputs[i]) : std::string("any"));
  out += "\n  " + std::to_string(num_static) + " of " + std::to_string(steps.size()) +
         " steps static, " + memory.str() + "\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StaticStep& step = steps[i];
    if (step.kind == StaticStep::Kind::kOrdinary) continue;
    out += "  " + std::string(plan.steps()[i].node->name());
    if (step.kind == StaticStep::Kind::kConstant) {
      out += ": the same view in every run\n";
      continue;
    }
    out += step.kind == StaticStep::Kind::kKernel
               ? ": kernel"
               : ": " + toString(step.out.overload->handle.operator_name());
    for (std::uint32_t k = step.first; k < step.first + step.count; ++k)
      out += (k == step.first ? " -> " : ", ") + text_of(tensors[k].spec) + " at " +
             std::to_string(tensors[k].offset) + ", until " +
             std::string(plan.steps()[tensors[k].last].node->name());
    out += "\n";
  }
  return out;
}

}  // namespace fx
