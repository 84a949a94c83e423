#include "fx/ops/builtins.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "fx/base/error.h"
#include "fx/ops/builtin_values.h"
#include "fx/ops/call.h"
#include "fx/ops/higher_order.h"

namespace fx {
namespace {

void check_arity(std::string_view name, const Values& args, const KwValues& kwargs,
                 std::size_t count) {
  if (args.size() == count && kwargs.empty()) return;
  throw RunError(ErrorCode::kWrongType, std::string(name) + " takes " + std::to_string(count) +
                                            " positional arguments, found " +
                                            std::to_string(args.size()) + " and " +
                                            std::to_string(kwargs.size()) + " keywords");
}

bool is_real(const Value& v) { return v.isDouble() || is_int(v); }
double as_real(const Value& v) {
  return v.isDouble() ? v.toDouble() : static_cast<double>(as_int(v));
}
bool any_tensor(const Values& args) {
  return std::any_of(args.begin(), args.end(), [](const Value& v) { return v.isTensor(); });
}

[[noreturn]] void divide_by_zero(std::string_view name) {
  throw RunError(ErrorCode::kWrongType, std::string(name) + ": division by zero");
}
[[noreturn]] void overflow(std::string_view name) {
  throw RunError(ErrorCode::kWrongType, std::string(name) + ": the result does not fit in 64 bits");
}

// Python's floor division and modulo: towards minus infinity, the remainder has the divisor's sign.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) divide_by_zero("operator.floordiv");
  if (b == -1) {
    std::int64_t negated;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &negated)) overflow("operator.floordiv");
    return negated;
  }
  const std::int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0) divide_by_zero("operator.mod");
  if (b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
double float_mod(double a, double b) {
  if (b == 0) divide_by_zero("operator.mod");
  const double r = std::fmod(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

// What an operator does on Python numbers, and on tensors: tensor_function_of(name).
template <typename IntOp, typename FloatOp>
Value binary(std::string_view name, Values& args, KwValues& kwargs, IntOp int_op,
             FloatOp float_op) {
  check_arity(name, args, kwargs, 2);
  if (any_tensor(args)) return call(*tensor_function_of(name), std::move(args));
  if (is_int(args[0]) && is_int(args[1])) return int_op(as_int(args[0]), as_int(args[1]));
  if (is_real(args[0]) && is_real(args[1])) return float_op(as_real(args[0]), as_real(args[1]));
  wrong_operands(name, args);
}

Value no_floats(double, double) {
  throw RunError(ErrorCode::kWrongType, "the operation takes ints");
}

#define FX_CHECKED(op)                                                  \
  [](std::int64_t a, std::int64_t b) -> Value {                         \
    std::int64_t r;                                                     \
    if (__builtin_##op##_overflow(a, b, &r)) overflow("operator." #op); \
    return r;                                                           \
  }

Value op_add(Values& args, KwValues& kwargs) {
  if (args.size() == 2 && is_sequence(args[0]) && is_sequence(args[1]) &&
      args[0].isTuple() == args[1].isTuple()) {
    Values joined = elements(args[0]);
    for (Value& item : elements(args[1])) joined.push_back(std::move(item));
    if (args[0].isTuple()) return c10::ivalue::Tuple::create(std::move(joined));
    c10::List<Value> list(c10::AnyType::get());
    for (Value& item : joined) list.push_back(std::move(item));
    return list;
  }
  return binary("operator.add", args, kwargs, FX_CHECKED(add),
                [](double a, double b) -> Value { return a + b; });
}
Value op_sub(Values& args, KwValues& kwargs) {
  if (args.size() == 2 && is_real(args[0]) && args[1].isTensor())
    return call(*tensor_function_of("operator.rsub"), {args[1], args[0]});
  return binary("operator.sub", args, kwargs, FX_CHECKED(sub),
                [](double a, double b) -> Value { return a - b; });
}
Value op_mul(Values& args, KwValues& kwargs) {
  return binary("operator.mul", args, kwargs, FX_CHECKED(mul),
                [](double a, double b) -> Value { return a * b; });
}
Value op_truediv(Values& args, KwValues& kwargs) {
  auto divide = [](double a, double b) -> Value {
    if (b == 0) divide_by_zero("operator.truediv");
    return a / b;
  };
  return binary(
      "operator.truediv", args, kwargs,
      [&](std::int64_t a, std::int64_t b) {
        return divide(static_cast<double>(a), static_cast<double>(b));
      },
      divide);
}
Value op_floordiv(Values& args, KwValues& kwargs) {
  return binary(
      "operator.floordiv", args, kwargs,
      [](std::int64_t a, std::int64_t b) -> Value { return floor_div(a, b); },
      [](double a, double b) -> Value {
        if (b == 0) divide_by_zero("operator.floordiv");
        return std::floor(a / b);
      });
}
Value op_mod(Values& args, KwValues& kwargs) {
  return binary(
      "operator.mod", args, kwargs,
      [](std::int64_t a, std::int64_t b) -> Value { return floor_mod(a, b); },
      [](double a, double b) -> Value { return float_mod(a, b); });
}
Value op_pow(Values& args, KwValues& kwargs) {
  return binary(
      "operator.pow", args, kwargs,
      [](std::int64_t a, std::int64_t b) -> Value {
        if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
        std::int64_t result = 1;
        for (; b > 0; b >>= 1) {
          if ((b & 1) && __builtin_mul_overflow(result, a, &result)) overflow("operator.pow");
          if (b > 1 && __builtin_mul_overflow(a, a, &a)) overflow("operator.pow");
        }
        return result;
      },
      [](double a, double b) -> Value { return std::pow(a, b); });
}
Value op_matmul(Values& args, KwValues& kwargs) {
  check_arity("operator.matmul", args, kwargs, 2);
  return call(*tensor_function_of("operator.matmul"), std::move(args));
}

std::int64_t shift_count(std::int64_t b) {
  if (b < 0) throw RunError(ErrorCode::kWrongType, "negative shift count");
  return b;
}
Value op_lshift(Values& args, KwValues& kwargs) {
  return binary(
      "operator.lshift", args, kwargs,
      [](std::int64_t a, std::int64_t b) -> Value {
        std::int64_t r = a;
        for (std::int64_t i = std::min<std::int64_t>(shift_count(b), a == 0 ? 0 : 64); i > 0; --i)
          if (__builtin_mul_overflow(r, std::int64_t{2}, &r)) overflow("operator.lshift");
        return r;
      },
      no_floats);
}
Value op_rshift(Values& args, KwValues& kwargs) {
  return binary(
      "operator.rshift", args, kwargs,
      [](std::int64_t a, std::int64_t b) -> Value {
        return a >> std::min<std::int64_t>(shift_count(b), 63);
      },
      no_floats);
}

// and, or, xor of two bools stay bools.
template <typename Op>
Value bitwise(std::string_view name, Values& args, KwValues& kwargs, Op op) {
  const bool bools = args.size() == 2 && args[0].isBool() && args[1].isBool();
  return binary(
      name, args, kwargs,
      [&](std::int64_t a, std::int64_t b) -> Value {
        return bools ? Value(op(a, b) != 0) : Value(op(a, b));
      },
      no_floats);
}
Value op_and(Values& args, KwValues& kwargs) {
  return bitwise("operator.and_", args, kwargs,
                 [](std::int64_t a, std::int64_t b) { return a & b; });
}
Value op_or(Values& args, KwValues& kwargs) {
  return bitwise("operator.or_", args, kwargs,
                 [](std::int64_t a, std::int64_t b) { return a | b; });
}
Value op_xor(Values& args, KwValues& kwargs) {
  return bitwise("operator.xor", args, kwargs,
                 [](std::int64_t a, std::int64_t b) { return a ^ b; });
}

#define FX_COMPARISON(fn, op)                                           \
  Value op_##fn(Values& args, KwValues& kwargs) {                       \
    if (args.size() == 2 && args[0].isString() && args[1].isString())   \
      return args[0].toStringRef() op args[1].toStringRef();            \
    return binary(                                                      \
        "operator." #fn, args, kwargs,                                  \
        [](std::int64_t a, std::int64_t b) -> Value { return a op b; }, \
        [](double a, double b) -> Value { return a op b; });            \
  }
FX_COMPARISON(lt, <)
FX_COMPARISON(le, <=)
FX_COMPARISON(gt, >)
FX_COMPARISON(ge, >=)
#undef FX_COMPARISON

bool is_plain(const Value& v) { return is_real(v) || v.isString() || v.isNone() || v.isDevice(); }

// Equality takes any kinds: different ones are unequal, sequences compare item by item.
Value equal(const Value& a, const Value& b, bool negate) {
  if (a.isTensor() || b.isTensor()) {
    if (a.isNone() || b.isNone()) return negate;
    return call(*tensor_function_of(negate ? "operator.ne" : "operator.eq"), {a, b});
  }
  bool same;
  if (is_int(a) && is_int(b)) {
    same = as_int(a) == as_int(b);
  } else if (is_real(a) && is_real(b)) {
    same = as_real(a) == as_real(b);
  } else if (is_sequence(a) && is_sequence(b)) {
    const Values x = elements(a), y = elements(b);
    same = a.isTuple() == b.isTuple() && x.size() == y.size();
    for (std::size_t i = 0; same && i < x.size(); ++i) {
      Value item = equal(x[i], y[i], false);
      if (item.isTensor()) wrong_operands("operator.eq", {a, b});
      same = item.toBool();
    }
  } else if (is_plain(a) && is_plain(b)) {
    same = a.tagKind() == b.tagKind() && a == b;
  } else {
    same = a.tagKind() == b.tagKind() && a.is(b);
  }
  return same != negate;
}
Value op_eq(Values& args, KwValues& kwargs) {
  check_arity("operator.eq", args, kwargs, 2);
  return equal(args[0], args[1], false);
}
Value op_ne(Values& args, KwValues& kwargs) {
  check_arity("operator.ne", args, kwargs, 2);
  return equal(args[0], args[1], true);
}

template <typename IntOp, typename FloatOp>
Value unary(std::string_view name, Values& args, KwValues& kwargs, IntOp int_op, FloatOp float_op) {
  check_arity(name, args, kwargs, 1);
  if (args[0].isTensor()) return call(*tensor_function_of(name), std::move(args));
  if (is_int(args[0])) return int_op(as_int(args[0]));
  if (args[0].isDouble()) return float_op(args[0].toDouble());
  wrong_operands(name, args);
}
Value op_neg(Values& args, KwValues& kwargs) {
  return unary(
      "operator.neg", args, kwargs,
      [](std::int64_t a) -> Value {
        std::int64_t r;
        if (__builtin_sub_overflow(std::int64_t{0}, a, &r)) overflow("operator.neg");
        return r;
      },
      [](double a) -> Value { return -a; });
}
Value op_pos(Values& args, KwValues& kwargs) {
  return unary(
      "operator.pos", args, kwargs, [](std::int64_t a) -> Value { return a; },
      [](double a) -> Value { return a; });
}
Value op_abs(Values& args, KwValues& kwargs) {
  return unary(
      "operator.abs", args, kwargs,
      [](std::int64_t a) -> Value {
        std::int64_t r = a;
        if (a < 0 && __builtin_sub_overflow(std::int64_t{0}, a, &r)) overflow("operator.abs");
        return r;
      },
      [](double a) -> Value { return std::fabs(a); });
}
Value op_invert(Values& args, KwValues& kwargs) {
  return unary(
      "operator.invert", args, kwargs, [](std::int64_t a) -> Value { return ~a; },
      [](double) -> Value { throw RunError(ErrorCode::kWrongType, "operator.invert takes ints"); });
}
Value op_not(Values& args, KwValues& kwargs) {
  check_arity("operator.not_", args, kwargs, 1);
  if (args[0].isTensor()) return !args[0].toTensor().item<bool>();
  if (is_real(args[0])) return as_real(args[0]) == 0;
  wrong_operands("operator.not_", args);
}

Value op_getitem(Values& args, KwValues& kwargs) {
  check_arity("operator.getitem", args, kwargs, 2);
  return get_item(args[0], args[1]);
}

Value op_setitem(Values& args, KwValues& kwargs) {
  check_arity("operator.setitem", args, kwargs, 3);
  set_item(args[0], args[1], args[2]);
  return {};
}

// x += y: in place on a tensor, else the plain operation.
template <Builtin kPlain>
Value in_place(const char* method, Values& args, KwValues& kwargs) {
  if (!args.empty() && args[0].isTensor()) return call_method(method, args, kwargs);
  return kPlain(args, kwargs);
}
#define FX_IN_PLACE(name, method)                     \
  Value op_i##name(Values& args, KwValues& kwargs) {  \
    return in_place<op_##name>(method, args, kwargs); \
  }
FX_IN_PLACE(add, "add_")
FX_IN_PLACE(sub, "sub_")
FX_IN_PLACE(mul, "mul_")
FX_IN_PLACE(truediv, "div_")
FX_IN_PLACE(floordiv, "floor_divide_")
FX_IN_PLACE(mod, "remainder_")
FX_IN_PLACE(pow, "pow_")
FX_IN_PLACE(and, "bitwise_and_")
FX_IN_PLACE(or, "bitwise_or_")
FX_IN_PLACE(xor, "bitwise_xor_")
#undef FX_IN_PLACE

Value builtin_getattr(Values& args, KwValues& kwargs) {
  check_arity("getattr", args, kwargs, 2);
  if (!args[1].isString()) wrong_operands("getattr", args);
  return get_attribute(args[0], args[1].toStringRef());
}

Value builtin_len(Values& args, KwValues& kwargs) {
  check_arity("len", args, kwargs, 1);
  if (args[0].isTensor()) return args[0].toTensor().size(0);
  if (args[0].isGenericDict()) return static_cast<std::int64_t>(args[0].toGenericDict().size());
  return static_cast<std::int64_t>(elements(args[0]).size());
}

template <bool kMax>
Value extremum(Values& args, KwValues& kwargs) {
  check_arity(kMax ? "max" : "min", args, kwargs, 2);
  if (!is_real(args[0]) || !is_real(args[1])) wrong_operands(kMax ? "max" : "min", args);
  const bool second =
      kMax ? as_real(args[1]) > as_real(args[0]) : as_real(args[1]) < as_real(args[0]);
  return second ? args[1] : args[0];
}

template <double (*kFunction)(double)>
Value math_function(Values& args, KwValues& kwargs) {
  check_arity("math function", args, kwargs, 1);
  if (!is_real(args[0])) wrong_operands("math function", args);
  return kFunction(as_real(args[0]));
}
template <double (*kFunction)(double)>
Value math_to_int(Values& args, KwValues& kwargs) {
  Value result = math_function<kFunction>(args, kwargs);
  const double v = result.toDouble();
  if (!(std::fabs(v) < 9.2e18)) overflow("math function");
  return static_cast<std::int64_t>(v);
}

Value builtin_int(Values& args, KwValues& kwargs) {
  check_arity("int", args, kwargs, 1);
  if (args[0].isTensor()) return args[0].toTensor().item<std::int64_t>();
  if (is_int(args[0])) return as_int(args[0]);
  return math_to_int<std::trunc>(args, kwargs);
}
Value builtin_float(Values& args, KwValues& kwargs) {
  check_arity("float", args, kwargs, 1);
  if (args[0].isTensor()) return args[0].toTensor().item<double>();
  if (!is_real(args[0])) wrong_operands("float", args);
  return as_real(args[0]);
}

// A text, or a tuple of texts and values that are shown one after the other.
std::string assertion_text(const Value& message) {
  if (message.isString()) return message.toStringRef();
  if (!message.isTuple()) return to_string(message);
  std::string text;
  for (const Value& part : elements(message))
    text += (text.empty() || (part.isString() && part.toStringRef().starts_with(";")) ? "" : " ") +
            (part.isString() ? part.toStringRef() : to_string(part));
  return text;
}

// torch._assert(condition, message)
Value torch_assert(Values& args, KwValues& kwargs) {
  check_arity("torch._assert", args, kwargs, 2);
  const bool holds = args[0].isTensor() ? args[0].toTensor().item<bool>() : args[0].toBool();
  if (!holds) throw RunError(ErrorCode::kAssertionFailed, assertion_text(args[1]));
  return {};
}

// torch.tensor(data, dtype=None, device=None) of nested lists of numbers.
Value torch_tensor(Values& args, KwValues& kwargs) {
  if (args.size() != 1) wrong_operands("torch.tensor", args);
  std::vector<std::int64_t> shape;
  std::vector<c10::complex<double>> flat;
  std::vector<std::int64_t> ints;  // exact, unlike flat beyond 2^53
  bool any_float = false, any_complex = false, all_bool = true;
  auto walk = [&](auto&& self, const Value& v, std::size_t depth) -> void {
    if (v.isTensor()) {
      Value scalar(v.toTensor().item());
      return self(self, scalar, depth);
    }
    if (is_sequence(v)) {
      Values items = elements(v);
      const auto size = static_cast<std::int64_t>(items.size());
      if (depth == shape.size())
        shape.push_back(size);
      else if (depth > shape.size() || shape[depth] != size)
        throw RunError(ErrorCode::kWrongType, "torch.tensor: the nested lists differ in length");
      for (const Value& item : items) self(self, item, depth + 1);
      return;
    }
    if (!v.isScalar() && !v.isBool()) wrong_operands("torch.tensor", {v});
    if (depth != shape.size() && !flat.empty())
      throw RunError(ErrorCode::kWrongType, "torch.tensor: the nested lists differ in depth");
    any_float |= v.isDouble();
    any_complex |= v.isComplexDouble();
    all_bool &= v.isBool();
    if (is_int(v)) ints.push_back(as_int(v));
    flat.push_back(v.isComplexDouble() ? v.toComplexDouble() : c10::complex<double>(as_real(v)));
  };
  walk(walk, args[0], 0);
  at::ScalarType dtype = any_complex ? c10::toComplexType(c10::get_default_dtype_as_scalartype())
                         : any_float || flat.empty() ? c10::get_default_dtype_as_scalartype()
                         : all_bool                  ? at::kBool
                                                     : at::kLong;
  if (const Value* given = find(kwargs, "dtype"); given && !given->isNone())
    dtype = static_cast<at::ScalarType>(given->toInt());
  at::Tensor tensor;
  if (ints.size() == flat.size() && !flat.empty()) {
    tensor = at::tensor(ints, at::kLong).reshape(shape);
  } else {
    tensor = at::empty(shape, at::kComplexDouble);
    std::copy(flat.begin(), flat.end(), tensor.data_ptr<c10::complex<double>>());
    if (!any_complex) tensor = at::real(tensor);
  }
  tensor = tensor.to(dtype).contiguous();
  if (const Value* device = find(kwargs, "device"); device && !device->isNone())
    tensor =
        tensor.to(device->isString() ? c10::Device(device->toStringRef()) : device->toDevice());
  return tensor;
}

struct Row {
  std::string_view name;
  Builtin function;
};

constexpr Row kBuiltins[] = {
    {"builtins.abs", op_abs},
    {"builtins.float", builtin_float},
    {"builtins.getattr", builtin_getattr},
    {"builtins.int", builtin_int},
    {"builtins.len", builtin_len},
    {"builtins.max", extremum<true>},
    {"builtins.min", extremum<false>},
    {"math.ceil", math_to_int<std::ceil>},
    {"math.cos", math_function<std::cos>},
    {"math.exp", math_function<std::exp>},
    {"math.floor", math_to_int<std::floor>},
    {"math.log", math_function<std::log>},
    {"math.sin", math_function<std::sin>},
    {"math.sqrt", math_function<std::sqrt>},
    {"math.tanh", math_function<std::tanh>},
    {"math.trunc", math_to_int<std::trunc>},
    {"operator.abs", op_abs},
    {"operator.add", op_add},
    {"operator.and_", op_and},
    {"operator.eq", op_eq},
    {"operator.floordiv", op_floordiv},
    {"operator.ge", op_ge},
    {"operator.getitem", op_getitem},
    {"operator.gt", op_gt},
    {"operator.iadd", op_iadd},
    {"operator.iand", op_iand},
    {"operator.ifloordiv", op_ifloordiv},
    {"operator.imod", op_imod},
    {"operator.imul", op_imul},
    {"operator.invert", op_invert},
    {"operator.ior", op_ior},
    {"operator.ipow", op_ipow},
    {"operator.isub", op_isub},
    {"operator.itruediv", op_itruediv},
    {"operator.ixor", op_ixor},
    {"operator.le", op_le},
    {"operator.lshift", op_lshift},
    {"operator.lt", op_lt},
    {"operator.matmul", op_matmul},
    {"operator.mod", op_mod},
    {"operator.mul", op_mul},
    {"operator.ne", op_ne},
    {"operator.neg", op_neg},
    {"operator.not_", op_not},
    {"operator.or_", op_or},
    {"operator.pos", op_pos},
    {"operator.pow", op_pow},
    {"operator.rshift", op_rshift},
    {"operator.setitem", op_setitem},
    {"operator.sub", op_sub},
    {"operator.truediv", op_truediv},
    {"operator.xor", op_xor},
    {"torch._assert", torch_assert},
    {"torch.tensor", torch_tensor},
};
static_assert(std::is_sorted(std::begin(kBuiltins), std::end(kBuiltins),
                             [](const Row& a, const Row& b) { return a.name < b.name; }));

}  // namespace

Builtin find_builtin(std::string_view name) {
  if (const HigherOrderOp* op = find_higher_order(name)) return op->run;
  const Row* row = std::lower_bound(std::begin(kBuiltins), std::end(kBuiltins), name,
                                    [](const Row& r, std::string_view n) { return r.name < n; });
  return row != std::end(kBuiltins) && row->name == name ? row->function : nullptr;
}

const Function* tensor_function_of(std::string_view name) {
  static const auto* table = [] {
    auto* made = new std::unordered_map<std::string_view, const Function*>;
    for (auto [builtin, torch_name] : {
             std::pair{"operator.abs", "torch.abs"},
             {"operator.add", "torch.add"},
             {"operator.and_", "torch.bitwise_and"},
             {"operator.eq", "torch.eq"},
             {"operator.floordiv", "torch.floor_divide"},
             {"operator.ge", "torch.ge"},
             {"operator.gt", "torch.gt"},
             {"operator.invert", "torch.bitwise_not"},
             {"operator.le", "torch.le"},
             {"operator.lshift", "aten::__lshift__"},
             {"operator.lt", "torch.lt"},
             {"operator.matmul", "torch.matmul"},
             {"operator.mod", "torch.remainder"},
             {"operator.mul", "torch.mul"},
             {"operator.ne", "torch.ne"},
             {"operator.neg", "torch.neg"},
             {"operator.or_", "torch.bitwise_or"},
             {"operator.pos", "torch.positive"},
             {"operator.pow", "torch.pow"},
             {"operator.rshift", "aten::__rshift__"},
             {"operator.rsub", "torch.rsub"},
             {"operator.sub", "torch.sub"},
             {"operator.truediv", "torch.div"},
             {"operator.xor", "torch.bitwise_xor"},
         })
      made->emplace(builtin, Function::get(torch_name));
    return made;
  }();
  auto found = table->find(name);
  return found == table->end() ? nullptr : found->second;
}

std::vector<std::string_view> builtin_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kBuiltins) names.push_back(row.name);
  return names;
}

}  // namespace fx
