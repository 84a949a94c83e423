#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

/// Sizes as symbols, so that what is compiled for one size serves all.
namespace fx::loops {

/// A number that is known when a kernel is called: a size, an offset, a step. 0 stands for the
/// number 1, which as a size broadcasts; everything else for a symbol of a Shapes.
using Dim = std::int32_t;
constexpr Dim kOne = 0;
constexpr Dim kZero = 1;  ///< the number 0
using Dims = std::vector<Dim>;

/// The symbols that the sizes of some tensors are made of, and what was assumed about them. Sizes
/// of inputs are symbols of their own, except 1; that two of them are equal is found out where they
/// meet in one operation, and from then on assumed: a call with other sizes has to check it.
class Shapes {
 public:
  enum class Math : std::uint8_t { kAdd, kSub, kMul, kFloorDiv, kMin, kMax };

  /// Where a symbol gets its value in a call.
  struct Symbol {
    enum class Kind : std::uint8_t { kInput, kConstant, kDerived };
    Kind kind = Kind::kConstant;
    int input = -1;          ///< which input ...
    int dim = -1;            ///< ... and which dimension of it
    std::int64_t value = 1;  ///< the constant, or the number in the example
    Dim same_as = -1;        ///< the symbol that this one was found equal to
    // Of a derived symbol:
    Math math = Math::kAdd;
    Dim left = kOne;
    Dim right = kOne;
    bool is_size = false;  ///< of a dimension that does not broadcast: not negative, not 1
  };

  Shapes() : symbols_{{.value = 1}, {.value = 0}} {}

  /// The size of dimension `dim` of input `input`, which is `example` now. 1 is kOne.
  Dim input(int input, int dim, std::int64_t example);
  /// A number that is the same in all calls.
  Dim constant(std::int64_t value);
  /// What arithmetic on symbols gives: a number, not yet the size of a dimension.
  Dim derived(Math math, Dim left, Dim right);
  Dim add(Dim a, Dim b) { return derived(Math::kAdd, a, b); }
  Dim sub(Dim a, Dim b) { return derived(Math::kSub, a, b); }
  Dim mul(Dim a, Dim b) { return derived(Math::kMul, a, b); }
  /// Rounds down; `b` is positive.
  Dim floor_div(Dim a, Dim b) { return derived(Math::kFloorDiv, a, b); }
  Dim ceil_div(Dim a, Dim b) { return floor_div(add(a, sub(b, kOne)), b); }
  Dim min(Dim a, Dim b) { return derived(Math::kMin, a, b); }
  Dim max(Dim a, Dim b) { return derived(Math::kMax, a, b); }
  /// `number` as the size of a dimension: kOne if it is 1 in the example. @throws Unsupported when
  /// it is negative.
  Dim size(Dim number);

  /// The size that two dimensions broadcast to. @throws Unsupported when they do not.
  Dim broadcast(Dim a, Dim b);
  Dims broadcast(const Dims& a, const Dims& b);
  /// Assumes that two numbers are the same. @throws Unsupported when they are not.
  void unify(Dim a, Dim b);
  bool same(Dim a, Dim b) const { return find(a) == find(b); }
  bool same(const Dims& a, const Dims& b) const;

  /// The symbol that stands for all that were found equal to `dim`.
  Dim find(Dim dim) const;
  std::int64_t example(Dim dim) const { return symbols_[static_cast<std::size_t>(dim)].value; }
  bool is_constant(Dim dim) const {
    return symbols_[static_cast<std::size_t>(find(dim))].kind == Symbol::Kind::kConstant;
  }
  const std::vector<Symbol>& symbols() const noexcept { return symbols_; }
  /// "s1", "1", "64", "(s1 - 2)".
  std::string str(Dim dim) const;

  static std::int64_t compute(Math math, std::int64_t left, std::int64_t right);

 private:
  std::vector<Symbol> symbols_;  // [0] is the number 1, [1] is 0
  std::map<std::int64_t, Dim> constants_;
  std::map<std::tuple<Math, Dim, Dim>, Dim> derived_;
};

/// Dimensions other than 1, in order.
Dims without_ones(const Dims& dims);

}  // namespace fx::loops
