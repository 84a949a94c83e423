#include "fx/io/crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fx::io {
namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320;  // bit-reversed 0x04C11DB7

/// kTable[k][b]: the CRC of byte b followed by k zero bytes.
constexpr auto kTable = [] {
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[0][b] = crc;
  }
  for (std::size_t k = 1; k < table.size(); ++k)
    for (std::size_t b = 0; b < 256; ++b)
      table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xFF];
  return table;
}();

#if defined(__x86_64__)

/// Folds 64 bytes a step with carry-less multiplications, then reduces to 32 bits (Gopal et al.,
/// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). The
/// constants are x^n mod P for the distances folded over, bit-reflected. Needs size >= 64 and size
/// % 16 == 0.
__attribute__((target("pclmul,sse4.1"))) std::uint32_t crc32_folded(const std::byte* data,
                                                                    std::size_t size,
                                                                    std::uint32_t crc) {
  auto load = [](const std::byte* p) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  auto fold = [](__m128i x, __m128i k, __m128i next) __attribute__((target("pclmul,sse4.1"))) {
    __m128i low = _mm_clmulepi64_si128(x, k, 0x00);
    __m128i high = _mm_clmulepi64_si128(x, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
  };
  const __m128i k64 = _mm_set_epi64x(0x00000001c6e41596, 0x0000000154442bd4);  // over 64 bytes
  const __m128i k16 = _mm_set_epi64x(0x00000000ccaa009e, 0x00000001751997d0);  // over 16 bytes
  const __m128i k4 = _mm_set_epi64x(0, 0x0000000163cd6124);
  const __m128i barrett = _mm_set_epi64x(0x00000001f7011641, 0x00000001db710641);
  const __m128i low32 = _mm_setr_epi32(-1, 0, -1, 0);

  __m128i x0 = _mm_xor_si128(load(data), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i x1 = load(data + 16), x2 = load(data + 32), x3 = load(data + 48);
  data += 64, size -= 64;
  for (; size >= 64; data += 64, size -= 64) {
    x0 = fold(x0, k64, load(data));
    x1 = fold(x1, k64, load(data + 16));
    x2 = fold(x2, k64, load(data + 32));
    x3 = fold(x3, k64, load(data + 48));
  }
  __m128i x = fold(fold(fold(x0, k16, x1), k16, x2), k16, x3);
  for (; size >= 16; data += 16, size -= 16) x = fold(x, k16, load(data));

  // 128 -> 64 bits, 64 -> 32 bits, Barrett reduction.
  x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, k16, 0x10));
  x = _mm_xor_si128(_mm_srli_si128(x, 4), _mm_clmulepi64_si128(_mm_and_si128(x, low32), k4, 0x00));
  __m128i t = _mm_clmulepi64_si128(_mm_and_si128(x, low32), barrett, 0x10);
  t = _mm_clmulepi64_si128(_mm_and_si128(t, low32), barrett, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(x, t), 1));
}

bool has_folding() {
  static const bool has = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return has;
}

#endif

}  // namespace

std::uint32_t detail::crc32_portable(std::span<const std::byte> bytes, std::uint32_t crc) {
  const std::byte* p = bytes.data();
  std::size_t n = bytes.size();
  crc = ~crc;
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);  // little endian, as every platform of LibTorch's wheels
    word ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTable[7 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; n > 0; ++p, --n)
    crc = (crc >> 8) ^ kTable[0][(crc ^ std::to_integer<std::uint32_t>(*p)) & 0xFF];
  return ~crc;
}

std::uint32_t crc32(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (bytes.size() >= 64 && has_folding()) {
    std::size_t folded = bytes.size() & ~std::size_t{15};
    std::uint32_t crc = ~crc32_folded(bytes.data(), folded, ~std::uint32_t{0});
    return detail::crc32_portable(bytes.subspan(folded), crc);
  }
#endif
  return detail::crc32_portable(bytes);
}

}  // namespace fx::io
