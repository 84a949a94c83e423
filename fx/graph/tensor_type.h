#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fx {

/// A gradual tensor type (torch.fx.tensor_type): a number of dimensions, each of which is known or
/// not; or nothing at all (Dyn). `TensorType::of({1, 2, std::nullopt})`.
class TensorType {
 public:
  using Dim = std::optional<std::int64_t>;

  /// Any tensor.
  static TensorType dyn() { return TensorType(); }
  static TensorType of(std::vector<Dim> dims) {
    TensorType type;
    type.dims_ = std::move(dims);
    return type;
  }

  bool is_dyn() const noexcept { return !dims_; }
  /// The dimensions, of a type that is not Dyn.
  const std::vector<Dim>& dims() const { return dims_.value(); }
  /// "Dyn", "TensorType[1, 2, Dyn]".
  std::string to_string() const;

  friend bool operator==(const TensorType&, const TensorType&) = default;

 private:
  std::optional<std::vector<Dim>> dims_;
};

/// Whether some tensor can have both types. Symmetric, not transitive.
bool is_consistent(const TensorType& a, const TensorType& b);
/// Whether every tensor of type `a` has type `b`, and `a` says at least as much.
bool is_more_precise(const TensorType& a, const TensorType& b);
/// Both types after broadcasting, as far as it is known: the shorter one gets dimensions of 1 in
/// front, and those of 1 become the other's.
std::pair<TensorType, TensorType> broadcast_types(const TensorType& a, const TensorType& b);

}  // namespace fx
