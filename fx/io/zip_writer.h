#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/io/atomic_file.h"

namespace fx::io {

/// Contents of records start at multiples of this.
inline constexpr std::uint64_t kRecordAlignment = 64;

/// Writes a zip archive as ZipReader reads it: stored, aligned, without times. The same records
/// give the same bytes.
class ZipWriter {
 public:
  /// @param zip64_from sizes and offsets from here on are written in 64 bits; lower it in tests.
  explicit ZipWriter(AtomicFile& file, std::uint64_t zip64_from = 0xFFFFFFFF)
      : file_(file), zip64_from_(zip64_from) {}

  /// Appends a record. Names are unique, relative and UTF-8. @throws ImportError kWriteFailed.
  /// O(contents), read twice.
  void add(const std::string& name, std::span<const std::byte> contents);
  void add(const std::string& name, std::string_view text) {
    add(name, std::as_bytes(std::span(text)));
  }

  /// Writes the directory. The file is not committed.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t offset, size;
    std::uint32_t crc;
  };

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }
  void flush();

  AtomicFile& file_;
  std::uint64_t zip64_from_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> buffer_;  // small records are many: not a call of the system for each
  std::vector<Entry> entries_;
};

}  // namespace fx::io
