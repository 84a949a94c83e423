#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace fx::fuzz {

/// Where random programs get their decisions from: a seed, or the bytes of a fuzzer, which runs out
/// of them; from then on every decision is the first choice. The same on every machine: no
/// distributions of the standard library, whose results are not specified.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(seed) {}
  /// The bytes must outlive this.
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes), from_bytes_(true) {
    for (std::size_t i = 0; i < bytes.size() && i < 8; ++i) state_ = state_ << 8 | bytes[i];
  }

  /// 64 random bits that cost no bytes: for the values of tensors, which no decision depends on.
  /// The generator is SplitMix64 (Steele, Lea, Flood 2014).
  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }

  /// A number below `n`, which is at least 1.
  std::size_t below(std::size_t n) {
    if (!from_bytes_) return static_cast<std::size_t>((bits() >> 11) % n);
    if (n < 2) return 0;
    std::size_t value = 0;
    for (std::size_t range = 1; range < n; range <<= 8) value = value << 8 | next_byte();
    return value % n;
  }
  /// True in `percent` of 100 cases.
  bool chance(int percent) { return below(100) >= static_cast<std::size_t>(100 - percent); }
  /// A number in [first, last].
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(below(static_cast<std::size_t>(last - first) + 1));
  }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  template <typename T>
  const T& pick(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  /// Whether the bytes are used up; never with a seed.
  bool exhausted() const { return from_bytes_ && position_ >= bytes_.size(); }

 private:
  std::size_t next_byte() { return position_ < bytes_.size() ? bytes_[position_++] : 0; }

  std::uint64_t state_ = 0;
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  bool from_bytes_ = false;
};

}  // namespace fx::fuzz
