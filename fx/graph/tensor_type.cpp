#include "fx/graph/tensor_type.h"

#include <algorithm>
#include <charconv>

namespace fx {

// --- dimensions ----------------------------------------------------------------------------------

TypeDim TypeDim::symbol(std::int64_t index) noexcept { return {Kind::kSymbol, index, nullptr}; }

TypeDim TypeDim::plus(std::int64_t value) const {
  if (value == 0) return *this;
  switch (kind_) {
    case Kind::kDyn:
      return {};
    case Kind::kNumber:
    case Kind::kSum: {
      std::int64_t sum = 0;
      if (__builtin_add_overflow(number_, value, &sum)) return {};
      return kind_ == Kind::kNumber ? TypeDim(sum) : base_->plus(sum);
    }
    default:
      return {Kind::kSum, value, std::make_shared<const TypeDim>(*this)};
  }
}

TypeDim TypeDim::floor_div(std::int64_t divisor) const {
  if (divisor == 1) return *this;
  switch (kind_) {
    case Kind::kDyn:
      return {};
    case Kind::kNumber:
      return number_ / divisor - (number_ % divisor < 0 ? 1 : 0);
    case Kind::kFloorDiv: {
      std::int64_t product = 0;
      if (__builtin_mul_overflow(number_, divisor, &product)) return {};
      return base_->floor_div(product);
    }
    default:
      return {Kind::kFloorDiv, divisor, std::make_shared<const TypeDim>(*this)};
  }
}

TypeDim TypeDim::substitute(std::int64_t index, const TypeDim& value) const {
  switch (kind_) {
    case Kind::kSymbol:
      return number_ == index ? value : *this;
    case Kind::kSum:
      return base_->substitute(index, value).plus(number_);
    case Kind::kFloorDiv:
      return base_->substitute(index, value).floor_div(number_);
    default:
      return *this;
  }
}

std::string TypeDim::to_string() const {
  switch (kind_) {
    case Kind::kDyn:
      return "Dyn";
    case Kind::kNumber:
      return std::to_string(number_);
    case Kind::kSymbol:
      return "s" + std::to_string(number_);
    case Kind::kSum:
      return base_->to_string() + (number_ < 0 ? " - " : " + ") +
             std::to_string(number_ < 0 ? -number_ : number_);
    case Kind::kFloorDiv:
      return (base_->kind_ == Kind::kSum ? "(" + base_->to_string() + ")" : base_->to_string()) +
             "//" + std::to_string(number_);
  }
  return {};
}

bool operator==(const TypeDim& a, const TypeDim& b) noexcept {
  return a.kind_ == b.kind_ && a.number_ == b.number_ &&
         (a.base_ == b.base_ || (a.base_ && b.base_ && *a.base_ == *b.base_));
}

bool is_consistent(const TypeDim& a, const TypeDim& b) {
  return !a.number() || !b.number() || a == b;
}

namespace {

bool is_more_precise(const TypeDim& a, const TypeDim& b) { return b.is_dyn() || a == b; }

// Reads what TypeDim::to_string prints: sum := quotient [(+|-) number], quotient := atom {//
// number}.
class DimReader {
 public:
  explicit DimReader(std::string_view text) : rest_(text) {}

  std::optional<std::vector<TypeDim>> dims() {
    std::vector<TypeDim> dims;
    if (!take("TensorType[")) return std::nullopt;
    if (take("]")) return end(std::move(dims));
    do {
      const std::optional<TypeDim> dim = sum(0);
      if (!dim) return std::nullopt;
      dims.push_back(*dim);
    } while (take(", "));
    return take("]") ? end(std::move(dims)) : std::nullopt;
  }

 private:
  static constexpr int kMaxDepth = 100;

  std::optional<std::vector<TypeDim>> end(std::vector<TypeDim> dims) {
    return rest_.empty() ? std::optional(std::move(dims)) : std::nullopt;
  }

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::int64_t> number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::optional<TypeDim> sum(int depth) {
    std::optional<TypeDim> dim = quotient(depth);
    const bool minus = dim && rest_.starts_with(" - ");
    if (!dim || (!take(" + ") && !take(" - "))) return dim;
    const std::optional<std::int64_t> value = number();
    if (!value || *value < 0) return std::nullopt;
    return dim->plus(minus ? -*value : *value);
  }

  std::optional<TypeDim> quotient(int depth) {
    std::optional<TypeDim> dim = atom(depth);
    while (dim && take("//")) {
      const std::optional<std::int64_t> divisor = number();
      if (!divisor || *divisor <= 0) return std::nullopt;
      dim = dim->floor_div(*divisor);
    }
    return dim;
  }

  std::optional<TypeDim> atom(int depth) {
    if (take("Dyn")) return TypeDim();
    if (take("(")) {
      if (depth == kMaxDepth) return std::nullopt;
      const std::optional<TypeDim> dim = sum(depth + 1);
      return dim && take(")") ? dim : std::nullopt;
    }
    const bool is_symbol = take("s");
    const std::optional<std::int64_t> value = number();
    if (!value || *value < 0) return std::nullopt;
    return is_symbol ? TypeDim::symbol(*value) : TypeDim(*value);
  }

  std::string_view rest_;
};

}  // namespace

// --- types ---------------------------------------------------------------------------------------

std::string TensorType::to_string() const {
  if (is_dyn()) return "Dyn";
  std::string out = "TensorType[";
  for (std::size_t i = 0; i < dims_->size(); ++i) out += (i ? ", " : "") + (*dims_)[i].to_string();
  return out + "]";
}

std::optional<TensorType> TensorType::parse(std::string_view text) {
  if (text == "Dyn") return dyn();
  std::optional<std::vector<Dim>> dims = DimReader(text).dims();
  if (!dims) return std::nullopt;
  return of(*std::move(dims));
}

bool is_consistent(const TensorType& a, const TensorType& b) {
  if (a.is_dyn() || b.is_dyn()) return true;
  return std::ranges::equal(a.dims(), b.dims(),
                            [](const TypeDim& x, const TypeDim& y) { return is_consistent(x, y); });
}

bool is_more_precise(const TensorType& a, const TensorType& b) {
  if (b.is_dyn()) return true;
  if (a.is_dyn()) return false;
  return std::ranges::equal(
      a.dims(), b.dims(), [](const TypeDim& x, const TypeDim& y) { return is_more_precise(x, y); });
}

std::optional<TensorType> greatest_upper_bound(const TensorType& a, const TensorType& b) {
  if (a.is_dyn()) return b;
  if (b.is_dyn()) return a;
  if (!is_consistent(a, b)) return std::nullopt;
  std::vector<TypeDim> dims = a.dims();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!dims[i].number() && !b.dims()[i].is_dyn()) dims[i] = b.dims()[i];
  return TensorType::of(std::move(dims));
}

std::pair<TensorType, TensorType> broadcast_types(const TensorType& a, const TensorType& b) {
  if (a.is_dyn() || b.is_dyn()) return {a, b};
  std::vector<TypeDim> left = a.dims(), right = b.dims();
  auto& shorter = left.size() < right.size() ? left : right;
  shorter.insert(shorter.begin(), std::max(left.size(), right.size()) - shorter.size(), 1);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == TypeDim(1))
      left[i] = right[i];
    else if (right[i] == TypeDim(1))
      right[i] = left[i];
  }
  return {TensorType::of(std::move(left)), TensorType::of(std::move(right))};
}

}  // namespace fx
