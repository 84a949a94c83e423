#include <string>

#include "fx/base/text.h"
#include "fx/compile/nest.h"

namespace fx::loops {
namespace {

std::string value_name(ValueId id) { return "%" + std::to_string(id); }

std::string number_text(const c10::Scalar& number) {
  if (number.isFloatingPoint()) return float_repr(number.toDouble());
  if (number.isBoolean()) return number.toBool() ? "true" : "false";
  return std::to_string(number.toLong());
}

std::string operand_text(const Nest& nest, std::size_t index) {
  const NestOperand& operand = nest.operands[index];
  return operand.input >= 0 ? "in" + std::to_string(operand.input)
                            : "out" + std::to_string(operand.output);
}

std::string indices_text(const Nest& nest, const NestOperand& operand) {
  std::string out;
  for (std::size_t axis = 0; axis < nest.axes.size(); ++axis)
    if (!operand.dims_of_axis[axis].empty()) {
      const bool kept = axis < nest.num_kept;
      out += (out.empty() ? "" : ", ");
      out += kept ? "k" : "r";
      out += std::to_string(kept ? axis : axis - nest.num_kept);
    }
  return "[" + out + "]";
}

std::string step_text(const Nest& nest, const NestStep& step) {
  const auto index = static_cast<std::size_t>(step.index);
  switch (step.kind) {
    case NestStep::Kind::kKeep:
      return "keep " + value_name(step.index);
    case NestStep::Kind::kReload:
      return value_name(step.index) + " = reload";
    case NestStep::Kind::kReduce: {
      const NestReduction& r = nest.reductions[index];
      return "@" + std::to_string(index) + " = " + std::string(to_string(r.reduce)) + " " +
             value_name(r.input);
    }
    case NestStep::Kind::kStore: {
      const NestStore& s = nest.stores[index];
      const auto at = static_cast<std::size_t>(s.operand);
      return operand_text(nest, at) + indices_text(nest, nest.operands[at]) + " = " +
             value_name(s.value);
    }
    case NestStep::Kind::kCompute:
      break;
  }
  const NestValue& v = nest.values[index];
  std::string out = value_name(step.index) + ": " + std::string(type_name(v.type)) + " = ";
  switch (v.op) {
    case Op::kConstant:
      return out + number_text(v.number);
    case Op::kLoad: {
      const auto at = static_cast<std::size_t>(v.index);
      return out + operand_text(nest, at) + indices_text(nest, nest.operands[at]);
    }
    case Op::kReduced:
      return out + "@" + std::to_string(v.index);
    case Op::kScalar:
    case Op::kExtent:
      return out + std::string(to_string(v.op)) + " " + std::to_string(v.index);
    default:
      break;
  }
  out += to_string(v.op);
  for (std::size_t a = 0; a < v.args.size() && v.args[a] >= 0; ++a)
    out += (a ? ", " : " ") + value_name(v.args[a]);
  return out;
}

}  // namespace

std::string Nest::str(const Shapes& shapes) const {
  std::string out = "nest " + name + "(";
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const bool kept = axis < num_kept;
    out += axis == 0 ? "" : axis == num_kept ? " | " : ", ";
    out += (kept ? "k" : "r") + std::to_string(kept ? axis : axis - num_kept) + " < " +
           shapes.str(axes[axis]);
  }
  out += ")\n";
  const auto steps = [&](const std::vector<NestStep>& list, const char* indent) {
    for (const NestStep& step : list) out += indent + step_text(*this, step) + "\n";
  };
  for (std::size_t s = 0; s < rows.size(); ++s) {
    steps(rows[s], "  ");
    if (s < loops.size()) {
      out += has_reductions() ? "  loop\n" : "  all\n";
      steps(loops[s], "    ");
    }
  }
  return out;
}

}  // namespace fx::loops
