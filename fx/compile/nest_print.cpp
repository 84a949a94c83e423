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

std::string axis_text(const Nest& nest, std::size_t axis) {
  const bool kept = axis < nest.num_kept;
  return (kept ? "k" : "r") + std::to_string(kept ? axis : axis - nest.num_kept);
}

// The axes that an operand moves along, outermost first, and what else its place depends on:
// "[k0, r0]", "[k0, 2 * r0 + 1]".
std::string indices_text(const Nest& nest, const Shapes& shapes, const NestOperand& operand) {
  std::string out;
  const auto separate = [&out](const char* by) { out += out.empty() ? "" : by; };
  for (std::size_t axis = 0; axis < nest.axes.size(); ++axis)
    for (const NestOperand::Step& step : operand.steps_of_axis[axis]) {
      separate(operand.is_index() ? " + " : ", ");
      if (step.step != kOne) out += shapes.str(step.step) + " * ";
      out += axis_text(nest, axis);
    }
  for (const NestOperand::Step& step : operand.offset) {
    separate(" + ");
    out += shapes.str(step.step);
    if (!operand.is_index()) out += " in " + std::to_string(step.dim);
  }
  return out;
}

// An element of an operand, and where it is in gathered dimensions.
std::string place_text(const Nest& nest, const Shapes& shapes, std::size_t at,
                       const ValueId* gathered) {
  const NestOperand& operand = nest.operands[at];
  std::string out = operand_text(nest, at) + "[" + indices_text(nest, shapes, operand) + "]";
  for (std::size_t i = 0; i < operand.gathered.size(); ++i) {
    const NestOperand::Step& step = operand.gathered[i];
    out += " at " + (step.step == kOne ? "" : shapes.str(step.step) + " * ") +
           value_name(gathered[i]) + " in " + std::to_string(step.dim);
  }
  return out;
}

std::string load_text(const Nest& nest, const Shapes& shapes, const NestValue& load) {
  const std::string out =
      place_text(nest, shapes, static_cast<std::size_t>(load.index), &load.args[1]);
  return load.args[0] < 0 ? out : out + " if " + value_name(load.args[0]);
}

std::string step_text(const Nest& nest, const Shapes& shapes, const NestStep& step) {
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
      return place_text(nest, shapes, at, s.gathered.data()) + " = " + value_name(s.value);
    }
    case NestStep::Kind::kCompute:
      break;
  }
  const NestValue& v = nest.values[index];
  std::string out = value_name(step.index) + ": " + std::string(type_name(v.type)) + " = ";
  switch (v.op) {
    case Op::kConstant:
      return out + number_text(v.number);
    case Op::kLoad:
      return out + load_text(nest, shapes, v);
    case Op::kIndex: {
      const NestOperand& operand = nest.operands[static_cast<std::size_t>(v.index)];
      return out + "index " + indices_text(nest, shapes, operand);
    }
    case Op::kReduced:
      return out + "@" + std::to_string(v.index);
    case Op::kScan: {
      const NestScan& scan = nest.scans[static_cast<std::size_t>(v.index)];
      return out + "scan " + std::string(to_string(scan.reduce)) +
             (scan.in_order ? " in order " : " ") + value_name(v.args[0]);
    }
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
    out += axis == 0 ? "" : axis == num_kept ? " | " : ", ";
    out += axis_text(*this, axis) + " < " + shapes.str(axes[axis]);
  }
  out += ")\n";
  const auto steps = [&](const std::vector<NestStep>& list, const char* indent) {
    for (const NestStep& step : list) out += indent + step_text(*this, shapes, step) + "\n";
  };
  for (std::size_t s = 0; s < rows.size(); ++s) {
    steps(rows[s], "  ");
    if (s < loops.size()) {
      out += has_rows() ? "  loop\n" : "  all\n";
      steps(loops[s], "    ");
    }
  }
  return out;
}

}  // namespace fx::loops
