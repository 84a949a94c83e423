// Operators that work element by element, with broadcasting and type promotion.

#include "tests/random/maker.h"

namespace fx::fuzz {
namespace {

using at::Tensor;

bool is_number(const Item& item) { return !item.is_bool(); }
bool is_float(const Item& item) { return item.is_float(); }
bool is_integral(const Item& item) { return !item.is_float(); }

// --- one operand ---------------------------------------------------------------------------------

struct Unary {
  const char* name;  // of aten, torch and the method
  bool (*wanted)(const Item&);
  bool smooth;  // rounding of the operand stays rounding of the result
  Tensor (*eager)(const Tensor&);
};

constexpr Unary kUnary[] = {
    {"relu", is_number, true, [](const Tensor& x) { return at::relu(x); }},
    {"sigmoid", is_float, true, [](const Tensor& x) { return at::sigmoid(x); }},
    {"tanh", is_float, true, [](const Tensor& x) { return at::tanh(x); }},
    {"cos", is_float, true, [](const Tensor& x) { return at::cos(x); }},
    {"sin", is_float, true, [](const Tensor& x) { return at::sin(x); }},
    {"abs", is_number, true, [](const Tensor& x) { return at::abs(x); }},
    {"neg", is_number, true, [](const Tensor& x) { return at::neg(x); }},
    {"square", is_number, false, [](const Tensor& x) { return at::square(x); }},
    {"floor", is_float, false, [](const Tensor& x) { return at::floor(x); }},
    {"ceil", is_float, false, [](const Tensor& x) { return at::ceil(x); }},
    {"sign", is_number, false, [](const Tensor& x) { return at::sign(x); }},
    {"sqrt", is_float, false, [](const Tensor& x) { return at::sqrt(x); }},
    {"exp", is_float, false, [](const Tensor& x) { return at::exp(x); }},
    {"log1p", is_float, false, [](const Tensor& x) { return at::log1p(x); }},
    {"reciprocal", is_float, false, [](const Tensor& x) { return at::reciprocal(x); }},
    {"isnan", is_number, false, [](const Tensor& x) { return at::isnan(x); }},
    {"logical_not", nullptr, false, [](const Tensor& x) { return at::logical_not(x); }},
    {"bitwise_not", is_integral, false, [](const Tensor& x) { return at::bitwise_not(x); }},
};

bool unary(Maker& m) {
  const Unary& op = kUnary[m.choices.below(std::size(kUnary))];
  const auto x = m.pick(op.wanted ? Wanted(op.wanted) : Wanted(), op.smooth);
  if (!x) return false;
  const std::string name = op.name;
  const std::string forms[] = {"aten::" + name, "torch." + name, "." + name};
  m.call({forms[0].c_str(), forms[1].c_str(), forms[2].c_str()}, {*x},
         [x = x->tensor, eager = op.eager] { return eager(x); });
  return true;
}

// The same twice, and negations of negations: what rules of rewriting look for.
bool twice(Maker& m) {
  static constexpr const char* kNames[] = {"relu", "abs", "neg", "floor", "bitwise_not", "sign"};
  const char* wanted = kNames[m.choices.below(std::size(kNames))];
  for (const Unary& op : kUnary) {
    if (std::string_view(op.name) != wanted) continue;
    auto x = m.pick(op.wanted, op.smooth);
    if (!x) return false;
    const std::string name = op.name;
    const std::string forms[] = {"aten::" + name, "torch." + name, "." + name};
    for (int i = 0; i < 2; ++i)
      x = m.call({forms[0].c_str(), forms[1].c_str(), forms[2].c_str()}, {*x},
                 [x = x->tensor, eager = op.eager] { return eager(x); });
    return true;
  }
  return false;
}

// Divisors of which rules know the inverse, and others.
bool divided_by_number(Maker& m) {
  const auto x = m.pick(is_float);
  if (!x) return false;
  const double by = m.choices.pick({2.0, -4.0, 0.5, 3.0, 1024.0});
  m.call({"aten::div.Tensor", "torch.div", "operator.truediv", ".div"}, {*x, by},
         [t = x->tensor, by] { return at::div(t, by); });
  return true;
}

bool gelu(Maker& m) {
  const auto x = m.pick(is_float);
  if (!x) return false;
  m.call({"aten::gelu", "torch.nn.functional.gelu"}, {*x}, {{"approximate", "tanh"}},
         [x = x->tensor] { return at::gelu(x, "tanh"); });
  return true;
}

bool silu(Maker& m) {
  const auto x = m.pick(is_float);
  if (!x) return false;
  m.call({"aten::silu", "torch.nn.functional.silu"}, {*x}, [x = x->tensor] { return at::silu(x); });
  return true;
}

// --- two operands --------------------------------------------------------------------------------

// Two values that broadcast; the second may be the first.
std::optional<std::pair<Item, Item>> pick_two(Maker& m, const Wanted& wanted) {
  const auto a = m.pick(wanted);
  if (!a) return std::nullopt;
  const auto b = m.pick([&](const Item& item) {
    if (wanted && !wanted(item)) return false;
    const auto shape = broadcast(a->tensor.sizes(), item.tensor.sizes());
    return shape && m.fits(numel_of(*shape));
  });
  if (!b) return std::nullopt;
  return m.choices.chance(50) ? std::pair(*a, *b) : std::pair(*b, *a);
}

struct Binary {
  const char* torch_name;
  const char* python_name;  // of operator, or null
  bool (*wanted)(const Item&);
  Tensor (*eager)(const Tensor&, const Tensor&);
};

constexpr Binary kBinary[] = {
    {"add", "add", nullptr, [](const Tensor& x, const Tensor& y) { return at::add(x, y); }},
    {"mul", "mul", nullptr, [](const Tensor& x, const Tensor& y) { return at::mul(x, y); }},
    {"sub", "sub", is_number, [](const Tensor& x, const Tensor& y) { return at::sub(x, y); }},
    {"div", "truediv", nullptr, [](const Tensor& x, const Tensor& y) { return at::div(x, y); }},
    {"eq", "eq", nullptr, [](const Tensor& x, const Tensor& y) { return at::eq(x, y); }},
    {"lt", "lt", nullptr, [](const Tensor& x, const Tensor& y) { return at::lt(x, y); }},
    {"ge", "ge", nullptr, [](const Tensor& x, const Tensor& y) { return at::ge(x, y); }},
    {"ne", "ne", nullptr, [](const Tensor& x, const Tensor& y) { return at::ne(x, y); }},
    {"bitwise_and", "and_", is_integral,
     [](const Tensor& x, const Tensor& y) { return at::bitwise_and(x, y); }},
    {"bitwise_xor", "xor", is_integral,
     [](const Tensor& x, const Tensor& y) { return at::bitwise_xor(x, y); }},
};

bool binary(Maker& m) {
  const Binary& op = kBinary[m.choices.below(std::size(kBinary))];
  const auto pair = pick_two(m, op.wanted ? Wanted(op.wanted) : Wanted());
  if (!pair) return false;
  const std::string name = op.torch_name;
  const std::string forms[] = {"aten::" + name + ".Tensor", "torch." + name, "." + name,
                               "operator." + std::string(op.python_name)};
  m.call(
      {forms[0].c_str(), forms[1].c_str(), forms[2].c_str(), forms[3].c_str()},
      {pair->first, pair->second},
      [x = pair->first.tensor, y = pair->second.tensor, eager = op.eager] { return eager(x, y); });
  return true;
}

// Without overloads for tensors and numbers.
bool extremum(Maker& m) {
  const auto pair = pick_two(m, {});
  if (!pair) return false;
  const Tensor x = pair->first.tensor, y = pair->second.tensor;
  const Args args = {pair->first, pair->second};
  if (m.choices.chance(50))
    m.call({"aten::maximum", "torch.maximum", ".maximum"}, args,
           [x, y] { return at::maximum(x, y); });
  else
    m.call({"aten::minimum", "torch.minimum"}, args, [x, y] { return at::minimum(x, y); });
  return true;
}

bool scaled_add(Maker& m) {
  const auto pair = pick_two(m, is_number);
  if (!pair) return false;
  const std::int64_t alpha = m.choices.between(1, 3);
  m.call({"aten::add.Tensor", "torch.add", ".add"}, {pair->first, pair->second}, {{"alpha", alpha}},
         [x = pair->first.tensor, y = pair->second.tensor, alpha] { return at::add(x, y, alpha); });
  return true;
}

// A number that fits the dtype without overflow.
Argument number_for(Maker& m, const Item& x) {
  if (!x.is_float() || m.choices.chance(30)) return m.choices.between(0, 3);
  return m.choices.pick({0.5, -1.25, 2.0, 1e-3, 3.0});
}
at::Scalar scalar_of(const Argument& number) {
  return number.kind() == Argument::Kind::kInt ? at::Scalar(number.to_int())
                                               : at::Scalar(number.to_double());
}

bool with_number(Maker& m) {
  const auto x = m.pick(is_number);
  if (!x) return false;
  Argument number = number_for(m, *x);
  at::Scalar scalar = scalar_of(number);
  if (const auto made = m.pick_int(); made && m.choices.chance(40)) {
    number = *made->first;
    scalar = made->second;
  }
  const Tensor t = x->tensor;
  switch (m.choices.below(5)) {
    case 0:
      m.call({"aten::add.Scalar", "torch.add", "operator.add", ".add"}, {*x, number},
             [t, scalar] { return at::add(t, scalar); });
      break;
    case 1:
      m.call({"operator.add"}, {number, *x}, [t, scalar] { return at::add(t, scalar); });
      break;
    case 2:
      m.call({"aten::mul.Scalar", "torch.mul", "operator.mul", ".mul"}, {*x, number},
             [t, scalar] { return at::mul(t, scalar); });
      break;
    case 3:
      m.call({"aten::sub.Scalar", "torch.sub", "operator.sub"}, {*x, number},
             [t, scalar] { return at::sub(t, scalar); });
      break;
    default:
      m.call({"aten::gt.Scalar", "torch.gt", "operator.gt"}, {*x, number},
             [t, scalar] { return at::gt(t, scalar); });
  }
  return true;
}

// Division of integers by 1, 3, 5 or 7: never by zero, never the lowest number by -1.
bool integer_division(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_int(); });
  if (!x) return false;
  const auto y = m.pick([&](const Item& item) {
    const auto shape = broadcast(x->tensor.sizes(), item.tensor.sizes());
    return item.is_int() && shape && m.fits(numel_of(*shape));
  });
  if (!y) return false;
  const Item low = m.call({"aten::bitwise_and.Scalar", "operator.and_"}, {*y, 7},
                          [y = y->tensor] { return at::bitwise_and(y, 7); });
  const Item odd = m.call({"aten::bitwise_or.Scalar", "operator.or_"}, {low, 1},
                          [y = low.tensor] { return at::bitwise_or(y, 1); });
  m.protect(odd);
  const Tensor a = x->tensor, b = odd.tensor;
  switch (m.choices.below(4)) {
    case 0:
      m.call({"aten::floor_divide", "operator.floordiv", "torch.floor_divide"}, {*x, odd},
             [a, b] { return at::floor_divide(a, b); });
      break;
    case 1:
      m.call({"aten::remainder.Tensor", "operator.mod", "torch.remainder"}, {*x, odd},
             [a, b] { return at::remainder(a, b); });
      break;
    case 2:
      m.call({"aten::fmod.Tensor", "torch.fmod"}, {*x, odd}, [a, b] { return at::fmod(a, b); });
      break;
    default:
      m.call({"aten::div.Tensor_mode", "torch.div", ".div"}, {*x, odd},
             {{"rounding_mode", "trunc"}}, [a, b] { return at::div(a, b, "trunc"); });
  }
  return true;
}

// --- three operands ------------------------------------------------------------------------------

bool where(Maker& m) {
  const auto condition = m.pick([](const Item& item) { return item.is_bool(); });
  if (!condition) return false;
  auto fits_condition = [&](const Item& item) {
    const auto shape = broadcast(condition->tensor.sizes(), item.tensor.sizes());
    return shape && m.fits(numel_of(*shape));
  };
  const auto a = m.pick(fits_condition);
  if (!a) return false;
  const Shape shape = *broadcast(condition->tensor.sizes(), a->tensor.sizes());
  const auto b = m.pick([&](const Item& item) {
    const auto all = broadcast(shape, item.tensor.sizes());
    return all && m.fits(numel_of(*all));
  });
  if (!b) return false;
  m.call({"aten::where.self", "torch.where"}, {*condition, *a, *b},
         [c = condition->tensor, x = a->tensor, y = b->tensor] { return at::where(c, x, y); });
  return true;
}

bool clamp(Maker& m) {
  const auto x = m.pick(is_number);
  if (!x) return false;
  const Tensor t = x->tensor;
  if (m.choices.chance(50))
    m.call({"aten::clamp", "torch.clamp", ".clamp"}, {*x, 0, 2},
           [t] { return at::clamp(t, 0, 2); });
  else
    m.call({"torch.clamp", ".clamp"}, {*x}, {{"max", 1}},
           [t] { return at::clamp(t, std::nullopt, 1); });
  return true;
}

bool masked_fill(Maker& m) {
  const auto x = m.pick(is_number);
  if (!x) return false;
  const auto mask = m.pick([&](const Item& item) {
    const auto shape = broadcast(x->tensor.sizes(), item.tensor.sizes());
    return item.is_bool() && shape && m.fits(numel_of(*shape));
  });
  if (!mask) return false;
  m.call({"aten::masked_fill.Scalar", "torch.masked_fill", ".masked_fill"}, {*x, *mask, 1},
         [t = x->tensor, b = mask->tensor] { return at::masked_fill(t, b, 1); });
  return true;
}

// --- casts ---------------------------------------------------------------------------------------

bool cast(Maker& m) {
  const auto x = m.pick();
  if (!x) return false;
  const at::ScalarType dtype = m.pick_dtype();
  const Tensor t = x->tensor;
  switch (m.choices.below(4)) {
    case 0:
      m.call({".to", "aten::to.dtype"}, {*x, dtype}, [t, dtype] { return t.to(dtype); });
      break;
    case 1:
      m.call({"aten::_to_copy"}, {*x}, {{"dtype", dtype}},
             [t, dtype] { return t.to(dtype, false, /*copy=*/true); });
      break;
    case 2: {
      const auto like = m.pick();
      m.call({".type_as", "aten::type_as"}, {*x, *like},
             [t, like = like->tensor] { return t.type_as(like); });
      break;
    }
    default:
      m.call({".float"}, {*x}, [t] { return t.to(at::kFloat); });
  }
  return true;
}

}  // namespace

std::span<const Rule> elementwise_rules() {
  static constexpr Rule kRules[] = {
      {"unary", 8, unary},
      {"twice", 1, twice},
      {"divided_by_number", 1, divided_by_number},
      {"gelu", 1, gelu},
      {"silu", 1, silu},
      {"binary", 8, binary},
      {"extremum", 2, extremum},
      {"scaled_add", 1, scaled_add},
      {"with_number", 4, with_number},
      {"integer_division", 2, integer_division},
      {"where", 2, where},
      {"clamp", 1, clamp},
      {"masked_fill", 1, masked_fill},
      {"cast", 4, cast},
  };
  return kRules;
}

}  // namespace fx::fuzz
