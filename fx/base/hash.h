#pragma once

#include <cstdint>
#include <string_view>

namespace fx {

/// A 64-bit streaming hash with the same value in every process and on every platform. Not for
/// security. Mixing is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
class Hasher {
 public:
  void add(std::uint64_t value) noexcept { state_ = mix(state_ ^ value) + 0x9e3779b97f4a7c15ull; }
  void add(std::string_view text) noexcept {
    std::uint64_t word = 0;
    int bytes = 0;
    for (unsigned char c : text) {
      word |= std::uint64_t{c} << (8 * bytes);
      if (++bytes == 8) {
        add(word);
        word = 0;
        bytes = 0;
      }
    }
    add(word);
    add(std::uint64_t{text.size()});
  }
  std::uint64_t value() const noexcept { return mix(state_); }

 private:
  static std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }

  std::uint64_t state_ = 0x243f6a8885a308d3ull;
};

}  // namespace fx
