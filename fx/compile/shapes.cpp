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
  for (std::size_t i = 1; i < symbols_.size(); ++i)
    if (symbols_[i].kind == Symbol::Kind::kConstant && symbols_[i].value == value)
      return static_cast<Dim>(i);
  symbols_.push_back({.kind = Symbol::Kind::kConstant, .value = value});
  return static_cast<Dim>(symbols_.size() - 1);
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
  return "s" + std::to_string(dim);
}

Dims without_ones(const Dims& dims) {
  Dims out;
  for (Dim dim : dims)
    if (dim != kOne) out.push_back(dim);
  return out;
}

}  // namespace fx::loops
