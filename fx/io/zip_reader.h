#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fx::io {

/// One record of a zip archive.
struct ZipEntry {
  std::string name;                 ///< full name, "model/models/model.json"
  std::uint64_t header_offset = 0;  ///< of the local header, in bytes from the start of the file
  std::uint64_t data_offset = 0;    ///< of the contents
  std::uint64_t size = 0;           ///< of the contents, in bytes
  std::uint32_t crc = 0;  ///< CRC-32 of the contents; 0 with size > 0: the writer computed none
};

/// The directory of a zip archive whose records are stored without compression, as torch writes
/// them.
///
/// Strict on purpose: what two readers could understand in two ways is refused. Everything is
/// checked before it is used, with arithmetic that cannot overflow; no byte outside `bytes` is ever
/// looked at. Refused are: anything before the first or after the last record, gaps and overlaps
/// between records, compressed, encrypted, directory and link entries, names that are equal up to
/// case, that hold NUL, control characters, backslashes or ".." parts, local headers that differ
/// from the directory, archives on several disks, comments at the end.
class ZipReader {
 public:
  /// Reads the directory of the archive in `bytes`, which must outlive the reader. `path` is for
  /// messages. Throws ImportError kCorruptArchive or kUnsafeArchive. O(entries * log entries +
  /// names).
  ZipReader(std::span<const std::byte> bytes, std::string path);

  /// The records in the order in which they lie in the file.
  const std::vector<ZipEntry>& entries() const { return entries_; }

  /// The record of that full name, or null. O(1).
  const ZipEntry* find(std::string_view name) const;

  /// The contents of a record: a view into the archive.
  std::span<const std::byte> data(const ZipEntry& entry) const {
    return bytes_.subspan(entry.data_offset, entry.size);
  }

  /// Compares the contents with their CRC-32; throws ImportError kChecksum. A record whose CRC was
  /// not computed (0, torch's compute_crc32=False) passes. O(size). The second form looks at a copy
  /// of the contents, for callers who do not trust the file to stay as it is.
  void check_crc(const ZipEntry& entry) const { check_crc(entry, data(entry)); }
  void check_crc(const ZipEntry& entry, std::span<const std::byte> contents) const;

  const std::string& path() const { return path_; }

 private:
  struct Directory {
    std::uint64_t offset, size, count, end;  // end: first byte behind it
  };

  Directory find_directory() const;
  Directory find_zip64_directory(std::uint64_t end_record) const;
  [[noreturn]] void fail_without_end_record() const;
  void read_directory(const Directory& directory);
  void check_name(std::string_view name) const;
  std::uint64_t check_local_header(ZipEntry& entry, std::uint16_t flags, std::uint64_t limit) const;
  void check_layout(const std::vector<std::uint64_t>& ends, std::uint64_t directory_offset) const;
  void index_names();
  [[noreturn]] void corrupt(const std::string& what) const;
  [[noreturn]] void unsafe(const std::string& what) const;

  std::span<const std::byte> bytes_;
  std::string path_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> index_;  // views of entries_[i].name
};

}  // namespace fx::io
