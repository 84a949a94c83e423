#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fx::io {

/// CRC-32 as zip archives use it (polynomial 0x04C11DB7, reflected). Uses carry-less multiplication
/// where the processor has it. O(n), reads `bytes` once.
std::uint32_t crc32(std::span<const std::byte> bytes);

namespace detail {
/// The table-driven form of crc32; every processor has it. `crc` continues an earlier call.
std::uint32_t crc32_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0);
}  // namespace detail

}  // namespace fx::io
