#include "fx/compile/lower_call.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/item.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

/// The integer modulo the range of `type`.
std::int64_t modulo(std::int64_t value, c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Byte:
      return static_cast<std::uint8_t>(value);
    case c10::ScalarType::Char:
      return static_cast<std::int8_t>(value);
    case c10::ScalarType::Short:
      return static_cast<std::int16_t>(value);
    case c10::ScalarType::Int:
      return static_cast<std::int32_t>(value);
    default:
      return value;
  }
}

double nearest(double value, c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return static_cast<float>(value);
    case c10::ScalarType::Half:
      return static_cast<float>(c10::Half(static_cast<float>(value)));
    case c10::ScalarType::BFloat16:
      return static_cast<float>(c10::BFloat16(static_cast<float>(value)));
    default:
      return value;
  }
}

template <typename T>
bool fits_in(const c10::Scalar& value) {
  if (value.isBoolean()) return true;
  if (value.isFloatingPoint()) return !c10::overflows<T, double>(value.toDouble());
  return !c10::overflows<T, std::int64_t>(value.toLong());
}

bool fits(const c10::Scalar& value, c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Byte:
      return fits_in<std::uint8_t>(value);
    case c10::ScalarType::Char:
      return fits_in<std::int8_t>(value);
    case c10::ScalarType::Short:
      return fits_in<std::int16_t>(value);
    case c10::ScalarType::Int:
      return fits_in<std::int32_t>(value);
    case c10::ScalarType::Long:
      return fits_in<std::int64_t>(value);
    case c10::ScalarType::Half:
      return fits_in<c10::Half>(value);
    case c10::ScalarType::BFloat16:
      return fits_in<c10::BFloat16>(value);
    case c10::ScalarType::Float:
      return fits_in<float>(value);
    default:
      return true;
  }
}

c10::ScalarType promote(c10::ScalarType a, c10::ScalarType b) {
  if (a == c10::ScalarType::Undefined) return b;
  if (b == c10::ScalarType::Undefined) return a;
  return c10::promoteTypes(a, b);
}

/// What tensors with dimensions (`higher`), then those without, then numbers have to say: the lower
/// ones only count if they are of a higher category.
c10::ScalarType combine(c10::ScalarType higher, c10::ScalarType lower) {
  if (is_floating(higher)) return higher;
  if (higher == c10::ScalarType::Bool || is_floating(lower)) return promote(higher, lower);
  return higher == c10::ScalarType::Undefined ? lower : higher;
}

}  // namespace

Num Num::number(TensorProgram& program, c10::ScalarType type, const c10::Scalar& value) {
  if (value.isComplex()) throw Unsupported("a complex number");
  c10::Scalar canonical;
  if (is_bool(type))
    canonical = value.isFloatingPoint() ? value.toDouble() != 0 : value.toLong() != 0;
  else if (is_floating(type))
    canonical = nearest(
        value.isFloatingPoint() ? value.toDouble() : static_cast<double>(value.toLong()), type);
  else if (value.isFloatingPoint() && fits(value, c10::ScalarType::Long))
    canonical = modulo(static_cast<std::int64_t>(value.toDouble()), type);
  else if (value.isFloatingPoint())
    throw Unsupported("a number out of the range of int64");
  else
    canonical = modulo(value.toLong(), type);
  return {program, program.constant(type, canonical)};
}

c10::ScalarType opmath(c10::ScalarType type) {
  return c10::isReducedFloatingType(type) ? c10::ScalarType::Float : type;
}

c10::ScalarType float_type(c10::ScalarType type) {
  return is_floating(type) ? type : c10::get_default_dtype_as_scalartype();
}

std::string name_of(const Overload& overload) {
  const c10::OperatorName& full = overload.handle.operator_name();
  return full.overload_name.empty() ? full.name : full.name + "." + full.overload_name;
}

Call::Call(TensorProgram& program, const Overload& overload, std::span<const LowerArg> args)
    : program_(&program), overload_(&overload), args_(args), name_(name_of(overload)) {}

void Call::unsupported(const std::string& reason) const { throw Unsupported(reason); }

const LowerArg* Call::find(std::string_view argument) const {
  for (std::size_t i = 0; i < args_.size() && i < overload_->rules.size(); ++i) {
    if (overload_->rules[i].name != argument) continue;
    const LowerArg& arg = args_[i];
    const bool none = !arg.tensor && arg.items.empty() && arg.constant.isNone();
    return none ? nullptr : &arg;
  }
  return nullptr;
}

bool Call::is_scalar(std::string_view argument) const {
  return std::any_of(overload_->rules.begin(), overload_->rules.end(), [&](const ArgRule& rule) {
    return rule.name == argument && rule.conversion == Conversion::kScalar;
  });
}

const LowerArg& Call::get(std::string_view argument) const {
  const LowerArg* arg = find(argument);
  if (arg == nullptr) unsupported("no " + std::string(argument));
  return *arg;
}

const Value& Call::constant(std::string_view argument) const {
  const LowerArg& arg = get(argument);
  if (arg.tensor || !arg.items.empty()) unsupported(std::string(argument) + " is not constant");
  return arg.constant;
}

bool Call::flag(std::string_view argument) const {
  const Value& value = constant(argument);
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt() != 0;
  unsupported(std::string(argument) + " is no bool");
}

bool Call::flag(std::string_view argument, bool otherwise) const {
  return has(argument) ? flag(argument) : otherwise;
}

std::int64_t Call::integer(std::string_view argument) const {
  const Value& value = constant(argument);
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return value.toBool() ? 1 : 0;
  unsupported(std::string(argument) + " is no int");
}

std::int64_t Call::integer(std::string_view argument, std::int64_t otherwise) const {
  return has(argument) ? integer(argument) : otherwise;
}

double Call::real(std::string_view argument) const {
  const c10::Scalar value = scalar(argument);
  return value.toDouble();
}

double Call::real(std::string_view argument, double otherwise) const {
  return has(argument) ? real(argument) : otherwise;
}

c10::Scalar Call::scalar(std::string_view argument) const {
  const Operand value = operand(argument);
  if (value.tensor) unsupported(std::string(argument) + " is not constant");
  return value.number;
}

std::string Call::text(std::string_view argument) const {
  const Value& value = constant(argument);
  if (!value.isString()) unsupported(std::string(argument) + " is no string");
  return value.toStringRef();
}

std::vector<std::int64_t> Call::ints(std::string_view argument) const {
  const Value& value = constant(argument);
  if (value.isInt()) return {value.toInt()};
  if (!is_sequence(value)) unsupported(std::string(argument) + " is no list of ints");
  std::vector<std::int64_t> out;
  for (const Value& element : elements(value)) {
    if (!element.isInt()) unsupported(std::string(argument) + " is no list of ints");
    out.push_back(element.toInt());
  }
  return out;
}

std::optional<c10::ScalarType> Call::dtype(std::string_view argument) const {
  if (!has(argument)) return std::nullopt;
  const auto type = static_cast<c10::ScalarType>(integer(argument));
  if (!is_loop_type(type)) unsupported(std::string("dtype ") + c10::toString(type));
  return type;
}

Operand Call::operand(std::string_view argument) const {
  const LowerArg& arg = get(argument);
  if (arg.tensor) return {.tensor = arg.tensor, .type = arg.tensor->type, .wrapped = arg.is_number};
  if (!arg.items.empty()) unsupported(std::string(argument) + " is a list");
  const Value& value = arg.constant;
  if (value.isBool())
    return {.number = value.toBool(), .type = c10::ScalarType::Bool, .wrapped = true};
  if (value.isInt())
    return {.number = value.toInt(), .type = c10::ScalarType::Long, .wrapped = true};
  if (value.isDouble())
    return {.number = value.toDouble(), .type = c10::ScalarType::Double, .wrapped = true};
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || tensor.dim() != 0 || !is_loop_type(tensor.scalar_type()) ||
        tensor.layout() != at::kStrided || !tensor.device().is_cpu())
      unsupported(std::string(argument) + " is a constant tensor");
    return {.number = tensor.item(),
            .type = tensor.scalar_type(),
            .wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number()};
  }
  unsupported(std::string(argument) + " is neither a tensor nor a number");
}

Num Call::tensor(std::string_view argument) const {
  const Operand value = operand(argument);
  if (value.wrapped) unsupported(std::string(argument) + " is a number");
  if (value.tensor) return {*program_, *value.tensor};
  return number(value.type, value.number);
}

c10::ScalarType Call::result_type(std::initializer_list<Operand> operands,
                                  bool numbers_only) const {
  c10::ScalarType with_dims = c10::ScalarType::Undefined;
  c10::ScalarType without = c10::ScalarType::Undefined;
  c10::ScalarType numbers = c10::ScalarType::Undefined;
  for (const Operand& operand : operands) {
    if (operand.wrapped) {
      numbers = promote(numbers, is_floating(operand.type) ? c10::get_default_dtype_as_scalartype()
                                                           : operand.type);
    } else {
      c10::ScalarType& level = operand.dim() > 0 ? with_dims : without;
      level = promote(level, operand.type);
    }
  }
  if (!numbers_only && with_dims == c10::ScalarType::Undefined &&
      without == c10::ScalarType::Undefined)
    unsupported("only numbers");
  return combine(with_dims, combine(without, numbers));
}

Num Call::read(const Operand& operand, c10::ScalarType type, Precision precision) const {
  const bool exact = precision == Precision::kOpmath && operand.dim() == 0;
  const c10::ScalarType first = exact ? opmath(type) : type;
  if (!operand.tensor) return number(first, operand.number).cast(opmath(type));
  return Num(*program_, *operand.tensor).cast(first).cast(opmath(type));
}

Num Call::read_float(std::string_view argument) const {
  const Num x = tensor(argument);
  const c10::ScalarType type = float_type(x.type());
  return x.cast(type).cast(opmath(type));
}

Num Call::checked_number(std::string_view argument, c10::ScalarType type) const {
  const Operand value = operand(argument);
  if (!value.tensor) {
    if (!fits(value.number, type)) unsupported(std::string(argument) + " does not fit");
    return number(type, value.number).cast(opmath(type));
  }
  const bool always = type == c10::ScalarType::Double || is_bool(value.type) ||
                      (type == c10::ScalarType::Float && value.type != c10::ScalarType::Double) ||
                      (type == value.type && !value.wrapped) ||
                      (type == c10::ScalarType::Long && is_integral(value.type));
  if (!always) unsupported(std::string(argument) + " is not constant");
  return read(value, type);
}

std::int64_t wrap_dim(std::int64_t dim, std::int64_t rank) {
  const std::int64_t count = std::max<std::int64_t>(rank, 1);
  if (dim < -count || dim >= count) throw Unsupported("a dimension out of range");
  return dim < 0 ? dim + count : dim;
}

std::vector<std::int64_t> wrap_dims(std::vector<std::int64_t> dims, std::int64_t rank) {
  for (std::int64_t& dim : dims) dim = wrap_dim(dim, rank);
  std::sort(dims.begin(), dims.end());
  if (std::adjacent_find(dims.begin(), dims.end()) != dims.end())
    throw Unsupported("a dimension twice");
  // The dimension that a tensor without dimensions pretends to have is none.
  if (rank == 0) dims.clear();
  return dims;
}

std::vector<std::int64_t> all_dims(std::int64_t rank) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

}  // namespace fx::loops
