#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fx {

/// A dimension of a TensorType: nothing known (Dyn), a number, or an expression in one symbol. All
/// of them are immutable values.
class TypeDim {
 public:
  TypeDim(std::nullopt_t = std::nullopt) noexcept : kind_(Kind::kDyn) {}
  TypeDim(std::int64_t value) noexcept : kind_(Kind::kNumber), number_(value) {}
  /// "s<index>": an unknown number that is the same wherever the symbol stands.
  static TypeDim symbol(std::int64_t index) noexcept;

  bool is_dyn() const noexcept { return kind_ == Kind::kDyn; }
  std::optional<std::int64_t> number() const noexcept {
    return kind_ == Kind::kNumber ? std::optional(number_) : std::nullopt;
  }
  /// The index of the symbol that this is; nothing for anything else, also for larger expressions.
  std::optional<std::int64_t> symbol_index() const noexcept {
    return kind_ == Kind::kSymbol ? std::optional(number_) : std::nullopt;
  }
  /// What this is made from: the symbol of an expression, else the dimension itself.
  const TypeDim& innermost() const noexcept { return base_ ? base_->innermost() : *this; }

  /// This plus a number, and this divided by a positive number, rounded towards minus infinity. Of
  /// an unknown dimension both are unknown; so is what int64 does not hold.
  TypeDim plus(std::int64_t value) const;
  TypeDim floor_div(std::int64_t divisor) const;
  /// The same with `value` for the symbol of that index.
  TypeDim substitute(std::int64_t index, const TypeDim& value) const;

  /// "Dyn", "3", "s0", "(s0 + 2)//2 + 1".
  std::string to_string() const;

  /// By structure: "s0" and "s1" differ, also if they may be the same number.
  friend bool operator==(const TypeDim& a, const TypeDim& b) noexcept;

 private:
  // kSum: base_ + number_. kFloorDiv: base_ // number_.
  enum class Kind : std::uint8_t { kDyn, kNumber, kSymbol, kSum, kFloorDiv };
  TypeDim(Kind kind, std::int64_t number, std::shared_ptr<const TypeDim> base) noexcept
      : kind_(kind), number_(number), base_(std::move(base)) {}

  Kind kind_;
  std::int64_t number_ = 0;
  std::shared_ptr<const TypeDim> base_;
};

/// A gradual tensor type (torch.fx.tensor_type): a number of dimensions, each of which is known or
/// not; or nothing at all (Dyn). `TensorType::of({1, 2, std::nullopt})`. A node has it as text
/// (Node::type): to_string() and parse().
class TensorType {
 public:
  using Dim = TypeDim;

  /// Any tensor.
  static TensorType dyn() { return TensorType(); }
  static TensorType of(std::vector<Dim> dims) {
    TensorType type;
    type.dims_ = std::move(dims);
    return type;
  }
  /// What to_string() prints; nothing for any other text. O(length).
  static std::optional<TensorType> parse(std::string_view text);

  bool is_dyn() const noexcept { return !dims_; }
  /// The dimensions, of a type that is not Dyn.
  const std::vector<Dim>& dims() const { return dims_.value(); }
  /// "Dyn", "TensorType[1, 2, Dyn]".
  std::string to_string() const;

  friend bool operator==(const TensorType&, const TensorType&) = default;

 private:
  std::optional<std::vector<Dim>> dims_;
};

/// Whether some number can be both; a number that a symbol stands for can be any.
bool is_consistent(const TypeDim& a, const TypeDim& b);
/// Whether some tensor can have both types. Symmetric, not transitive.
bool is_consistent(const TensorType& a, const TensorType& b);
/// Whether every tensor of type `a` has type `b`, and `a` says at least as much.
bool is_more_precise(const TensorType& a, const TensorType& b);
/// What both say together, dimension by dimension; nothing if they are not consistent. torch.fx's
/// get_greatest_upper_bound.
std::optional<TensorType> greatest_upper_bound(const TensorType& a, const TensorType& b);
/// Both types after broadcasting, as far as it is known: the shorter one gets dimensions of 1 in
/// front, and those of 1 become the other's.
std::pair<TensorType, TensorType> broadcast_types(const TensorType& a, const TensorType& b);

}  // namespace fx
