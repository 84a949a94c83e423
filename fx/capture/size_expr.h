#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fx {

/// What a number was in each of several runs of a program.
using Samples = std::vector<std::int64_t>;

/// A number as a function of sizes: floor((sum of terms) / divisor).
struct SizeExpr {
  struct Term {
    std::int64_t factor = 1;
    std::vector<std::size_t> sizes;  ///< indices of the factors, a square twice; none: a constant
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::vector<Term> terms;  ///< none: 0
  std::int64_t divisor = 1;

  /// @param sizes a value for each index.
  std::int64_t evaluate(const std::vector<std::int64_t>& sizes) const;
  /// "(2*batch*h + 1)//3".
  std::string str(const std::vector<std::string>& names) const;
};

/// Finds how numbers depend on sizes from what both were in several runs: affine in all symbols,
/// products and squares, division by a constant with floor. Each candidate is fitted to as many
/// runs as it has coefficients and must then hold in all others, of which there is at least one; so
/// a number that depends on the sizes in another way has no expression.
class SizeSolver {
 public:
  /// @param symbols what the inputs' symbolic sizes were, a sample for each run.
  explicit SizeSolver(std::vector<Samples> symbols);

  /// Sizes of tensors inside the program count like symbols from now on, unless symbols give them.
  /// Returns the index under which expressions know it, if it is new.
  std::optional<std::size_t> add_size(const Samples& samples);

  /// The simplest expression in the symbols, else in one size inside the program, also times a
  /// symbol or another one.
  std::optional<SizeExpr> solve(const Samples& values);

  /// Whether a solution rests on a size inside the program or on a division: of these, several may
  /// agree in a few runs.
  bool guessed() const noexcept { return guessed_; }

  std::size_t num_sizes() const noexcept { return sizes_.size(); }

 private:
  using Features = std::vector<std::vector<std::size_t>>;  // products; an empty one is 1

  Samples product(const std::vector<std::size_t>& factors) const;
  std::optional<SizeExpr> fit(const Features& features, const Samples& values) const;
  std::optional<SizeExpr> fit_symbols(const Samples& values) const;
  std::optional<SizeExpr> fit_inner(const Samples& values) const;
  std::optional<SizeExpr> fit_floor(const Samples& values) const;

  std::size_t num_symbols_;
  std::vector<Samples> sizes_;  // symbols first
  bool guessed_ = false;
  std::map<Samples, std::optional<SizeExpr>> solved_by_symbols_;
};

}  // namespace fx
