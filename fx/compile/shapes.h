#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Sizes as symbols, so that what is compiled for one size serves all.
namespace fx::loops {

/// A size: 0 stands for the size 1, which broadcasts; everything else for a symbol of a Shapes.
using Dim = std::int32_t;
constexpr Dim kOne = 0;
using Dims = std::vector<Dim>;

/// The symbols that the sizes of some tensors are made of, and what was assumed about them. Sizes
/// of inputs are symbols of their own, except 1; that two of them are equal is found out where they
/// meet in one operation, and from then on assumed: a call with other sizes has to check it.
class Shapes {
 public:
  /// Where a symbol gets its value in a call.
  struct Symbol {
    enum class Kind : std::uint8_t { kInput, kConstant };
    Kind kind = Kind::kConstant;
    int input = -1;          ///< which input ...
    int dim = -1;            ///< ... and which dimension of it
    std::int64_t value = 1;  ///< the constant, or the size in the example
    Dim same_as = -1;        ///< the symbol that this one was found equal to
  };

  Shapes() : symbols_(1) {}

  /// The size of dimension `dim` of input `input`, which is `example` now. 1 is kOne.
  Dim input(int input, int dim, std::int64_t example);
  /// A size that is the same in all calls.
  Dim constant(std::int64_t value);
  /// The size that two dimensions broadcast to. @throws Unsupported when they do not.
  Dim broadcast(Dim a, Dim b);
  Dims broadcast(const Dims& a, const Dims& b);
  /// Assumes that two sizes are the same. @throws Unsupported when they are not.
  void unify(Dim a, Dim b);
  bool same(Dim a, Dim b) const { return find(a) == find(b); }
  bool same(const Dims& a, const Dims& b) const;

  /// The symbol that stands for all that were found equal to `dim`.
  Dim find(Dim dim) const;
  std::int64_t example(Dim dim) const { return symbols_[static_cast<std::size_t>(dim)].value; }
  const std::vector<Symbol>& symbols() const noexcept { return symbols_; }
  /// "s1", "1", "64".
  std::string str(Dim dim) const;

 private:
  std::vector<Symbol> symbols_;  // [0] is the size 1
};

/// Dimensions other than 1, in order.
Dims without_ones(const Dims& dims);

}  // namespace fx::loops
