#include "fx/compile/shapes.h"

#include <algorithm>

#include "fx/compile/unsupported.h"

namespace fx::loops {

Dim Shapes::input(int input, int dim, std::int64_t example) {
  if (example == 1) return kOne;
  symbols_.push_back({.kind = Symbol::Kind::kInput, .input = input, .dim = dim, .value = example});
  return static_cast<Dim>(symbols_.size() - 1);
}

Dim Shapes::constant(std::int64_t value) {
  if (value == 1) return kOne;
  if (value == 0) return kZero;
  const auto [at, is_new] = constants_.emplace(value, static_cast<Dim>(symbols_.size()));
  if (is_new) symbols_.push_back({.kind = Symbol::Kind::kConstant, .value = value});
  return at->second;
}

std::int64_t Shapes::compute(Math math, std::int64_t left, std::int64_t right) {
  switch (math) {
    case Math::kAdd:
      return left + right;
    case Math::kSub:
      return left - right;
    case Math::kMul:
      return left * right;
    case Math::kFloorDiv: {
      const std::int64_t quotient = left / right;
      return quotient - (left % right < 0 ? 1 : 0);
    }
    case Math::kMin:
      return std::min(left, right);
    case Math::kMax:
      return std::max(left, right);
  }
  return 0;
}

Dim Shapes::derived(Math math, Dim left, Dim right) {
  left = find(left);
  right = find(right);
  if (math == Math::kFloorDiv && example(right) <= 0) throw Unsupported("a division of sizes by 0");
  const std::int64_t value = compute(math, example(left), example(right));
  if (is_constant(left) && is_constant(right)) return constant(value);
  switch (math) {
    case Math::kAdd:
      if (left == kZero) return right;
      if (right == kZero) return left;
      break;
    case Math::kSub:
      if (right == kZero) return left;
      if (left == right) return kZero;
      break;
    case Math::kMul:
      if (left == kOne) return right;
      if (right == kOne) return left;
      if (left == kZero || right == kZero) return kZero;
      break;
    case Math::kFloorDiv:
      if (right == kOne) return left;
      break;
    case Math::kMin:
    case Math::kMax:
      if (left == right) return left;
      break;
  }
  const bool commutes = math != Math::kSub && math != Math::kFloorDiv;
  if (commutes && right < left) std::swap(left, right);
  const auto [at, is_new] =
      derived_.emplace(std::tuple(math, left, right), static_cast<Dim>(symbols_.size()));
  if (is_new)
    symbols_.push_back({.kind = Symbol::Kind::kDerived,
                        .value = value,
                        .math = math,
                        .left = left,
                        .right = right});
  return find(at->second);
}

Dim Shapes::size(Dim number) {
  const Dim root = find(number);
  Symbol& symbol = symbols_[static_cast<std::size_t>(root)];
  if (symbol.value < 0) throw Unsupported("a negative size");
  if (symbol.value == 1) unify(root, kOne);
  if (symbol.kind == Symbol::Kind::kDerived) symbol.is_size = true;
  return find(root);
}

Dim Shapes::find(Dim dim) const {
  while (symbols_[static_cast<std::size_t>(dim)].same_as >= 0)
    dim = symbols_[static_cast<std::size_t>(dim)].same_as;
  return dim;
}

void Shapes::unify(Dim a, Dim b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (example(a) != example(b))
    throw Unsupported("sizes " + std::to_string(example(a)) + " and " + std::to_string(example(b)) +
                      " do not fit");
  // The earlier symbol stands for both; a constant for any.
  const bool a_constant = symbols_[static_cast<std::size_t>(a)].kind == Symbol::Kind::kConstant;
  const bool b_constant = symbols_[static_cast<std::size_t>(b)].kind == Symbol::Kind::kConstant;
  if (b_constant != a_constant ? b_constant : b < a) std::swap(a, b);
  symbols_[static_cast<std::size_t>(b)].same_as = a;
}

Dim Shapes::broadcast(Dim a, Dim b) {
  if (a == kOne) return find(b);
  if (b == kOne) return find(a);
  unify(a, b);
  return find(a);
}

Dims Shapes::broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i)
    out[offset + i] = broadcast(longer[offset + i], shorter[i]);
  return out;
}

bool Shapes::same(const Dims& a, const Dims& b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [this](Dim x, Dim y) { return same(x, y); });
}

std::string Shapes::str(Dim dim) const {
  dim = find(dim);
  const Symbol& symbol = symbols_[static_cast<std::size_t>(dim)];
  if (symbol.kind == Symbol::Kind::kConstant) return std::to_string(symbol.value);
  if (symbol.kind == Symbol::Kind::kInput) return "s" + std::to_string(dim - kZero);
  const std::string left = str(symbol.left);
  const std::string right = str(symbol.right);
  switch (symbol.math) {
    case Math::kAdd:
      return "(" + left + " + " + right + ")";
    case Math::kSub:
      return "(" + left + " - " + right + ")";
    case Math::kMul:
      return "(" + left + " * " + right + ")";
    case Math::kFloorDiv:
      return "(" + left + " // " + right + ")";
    case Math::kMin:
      return "min(" + left + ", " + right + ")";
    case Math::kMax:
      return "max(" + left + ", " + right + ")";
  }
  return "?";
}

Dims without_ones(const Dims& dims) {
  Dims out;
  for (Dim dim : dims)
    if (dim != kOne) out.push_back(dim);
  return out;
}

}  // namespace fx::loops
