#include <cmath>

#include "fx/compile/lower_table.h"

/// Comparisons, choices and bounds, and functions of three tensors.
namespace fx::loops {
namespace {

Tensors compare(const Call& call, Op op) {
  const Operand a = call.operand("self");
  const Operand b = call.operand("other");
  const c10::ScalarType type = call.result_type({a, b});
  return {call.read(a, type).apply(op, call.read(b, type)).tensor()};
}

Num condition_of(const Call& call, const char* argument) {
  const Num condition = call.tensor(argument);
  if (is_bool(condition.type())) return condition;
  call.unsupported(std::string(argument) + " is not of bools");
}

Num bounded(const Call& call, Num x, const char* argument, c10::ScalarType type, bool below) {
  if (!call.has(argument)) return x;
  const Operand value = call.operand(argument);
  const Num bound = value.wrapped ? call.checked_number(argument, type) : call.read(value, type);
  if (is_bool(type) && value.wrapped) call.unsupported("bounds of bools");
  // One that does not fit is an error or no bound.
  if (value.wrapped && type == c10::ScalarType::Byte &&
      (value.tensor || value.number.toDouble() < 0))
    call.unsupported(std::string(argument) + " does not fit");
  if (!is_floating(type) || !value.wrapped) return below ? maximum(x, bound) : minimum(x, bound);
  // Of two zeros x is the result, but where the bound is NaN, all is NaN.
  const Num y = below ? at_least(x, bound) : at_most(x, bound);
  const bool never_nan =
      value.tensor ? !is_floating(value.type) : !std::isnan(value.number.toDouble());
  return never_nan ? y : select(is_nan(bound), bound, y);
}

Tensors clamp(const Call& call) {
  const Operand self = call.operand("self");
  const Operand min = call.has("min") ? call.operand("min") : self;
  const Operand max = call.has("max") ? call.operand("max") : self;
  if (!call.has("min") && !call.has("max")) call.unsupported("no bounds");
  const c10::ScalarType type = call.result_type({self, min, max});
  if (is_bool(type) && call.has("min") && call.has("max")) call.unsupported("bounds of bools");
  const Num low = bounded(call, call.read(self, type), "min", type, true);
  return result(bounded(call, low, "max", type, false), type);
}

/// Three tensors of one dtype.
struct Triple {
  c10::ScalarType type;
  Num a;
  Num b;
  Num c;
};

Triple read_triple(const Call& call, const char* first, const char* second, const char* third) {
  const Operand a = call.operand(first);
  const Operand b = call.operand(second);
  const Operand c = call.operand(third);
  const c10::ScalarType type = call.result_type({a, b, c});
  return {type, call.read(a, type), call.read(b, type), call.read(c, type)};
}

/// Between start and end. From the nearer end, so that weight 1 gives `end`.
Num lerp(const Num& start, const Num& end, const Num& weight) {
  const Num difference = end - start;
  return select(abs(weight) < 0.5, fma(weight, difference, start),
                fma(weight - 1.0, difference, end));
}

}  // namespace

Tensors lower_eq(const Call& call) { return compare(call, Op::kEq); }
Tensors lower_ne(const Call& call) { return compare(call, Op::kNe); }
Tensors lower_lt(const Call& call) { return compare(call, Op::kLt); }
Tensors lower_le(const Call& call) { return compare(call, Op::kLe); }
Tensors lower_gt(const Call& call) { return compare(call, Op::kGt); }
Tensors lower_ge(const Call& call) { return compare(call, Op::kGe); }

Tensors lower_where(const Call& call) {
  const Operand a = call.operand("self");
  const Operand b = call.operand("other");
  const c10::ScalarType type = call.result_type({a, b}, /*numbers_only=*/true);
  const Num condition = condition_of(call, "condition");
  // Nothing is computed: the values need not be widened.
  const auto value = [&](const Operand& operand, const char* argument) {
    // Scalars of the schema have to fit.
    if (call.is_scalar(argument)) return call.checked_number(argument, type).cast(type);
    return operand.tensor ? Num(call.program(), *operand.tensor).cast(type)
                          : call.number(type, operand.number);
  };
  return {select(condition, value(a, "self"), value(b, "other")).tensor()};
}

Tensors lower_masked_fill(const Call& call) {
  const Num x = call.tensor("self");
  if (call.operand("value").dim() != 0) call.unsupported("value has dimensions");
  const Num value = call.checked_number("value", x.type()).cast(x.type());
  return {select(condition_of(call, "mask"), value, x).tensor()};
}

Tensors lower_clamp(const Call& call) { return clamp(call); }

Tensors lower_hardtanh(const Call& call) {
  const Num x = call.tensor("self");
  if (is_bool(x.type())) call.unsupported("hardtanh of bools");
  const c10::Scalar low = call.scalar("min_val");
  const c10::Scalar high = call.scalar("max_val");
  if (!is_floating(x.type())) {
    if (x.type() == c10::ScalarType::Byte && (low.toLong() < 0 || high.toLong() < 0))
      call.unsupported("negative bounds of unsigned integers");
    return result(minimum(maximum(x, call.checked_number("min_val", x.type())),
                          call.checked_number("max_val", x.type())),
                  x.type());
  }
  if (std::isnan(low.toDouble()) || std::isnan(high.toDouble())) call.unsupported("NaN as bound");
  const Num wide = x.cast(opmath(x.type()));
  return result(at_most(at_least(wide, call.checked_number("min_val", x.type())),
                        call.checked_number("max_val", x.type())),
                x.type());
}

Tensors lower_relu(const Call& call) {
  const Num x = call.tensor("self");
  if (is_bool(x.type())) call.unsupported("relu of bools");
  const Num wide = x.cast(opmath(x.type()));
  return result(at_least(wide, wide.number(0)), x.type());
}

Tensors lower_relu6(const Call& call) {
  const Num x = call.tensor("self");
  if (is_bool(x.type())) call.unsupported("relu6 of bools");
  const Num wide = x.cast(opmath(x.type()));
  return result(at_most(at_least(wide, wide.number(0)), wide.number(6)), x.type());
}

Tensors lower_lerp(const Call& call) {
  const Operand start = call.operand("self");
  const Operand end = call.operand("end");
  const Operand weight = call.operand("weight");
  if (start.type != end.type || (!weight.wrapped && weight.type != start.type))
    call.unsupported("lerp of different dtypes");
  if (!is_floating(start.type)) call.unsupported("lerp of integers");
  const Num factor = weight.wrapped ? call.checked_number("weight", opmath(start.type))
                                    : call.read(weight, start.type);
  return result(lerp(call.read(start, start.type), call.read(end, start.type), factor), start.type);
}

Tensors lower_addcmul(const Call& call) {
  const Triple t = read_triple(call, "self", "tensor1", "tensor2");
  if (is_bool(t.type)) call.unsupported("addcmul of bools");
  const Num value = call.checked_number("value", opmath(t.type));
  if (!is_floating(t.type)) return result(t.a + value * t.b * t.c, t.type);
  return result(fma(value * t.b, t.c, t.a), t.type);
}

Tensors lower_addcdiv(const Call& call) {
  const Triple t = read_triple(call, "self", "tensor1", "tensor2");
  if (!is_floating(t.type) ||
      (!is_floating(call.operand("tensor1").type) && !is_floating(call.operand("tensor2").type)))
    call.unsupported("addcdiv of integers");
  const Num value = call.checked_number("value", opmath(t.type));
  return result(t.a + value * t.b / t.c, t.type);
}

}  // namespace fx::loops
