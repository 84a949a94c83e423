#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fx::io {

/// A file that appears whole or not at all: bytes go to a temporary file in the same folder,
/// commit() flushes it to the disk and renames it over the target. Without commit() the destructor
/// removes it, and what stood at the path before stays as it was.
class AtomicFile {
 public:
  /// @throws ImportError kWriteFailed
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. @throws ImportError kWriteFailed (disk full, ...); the file is then removed.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Puts the file in its place. Nothing can be written afterwards.
  /// @param flush false leaves it to the system when the disk gets the bytes.
  void commit(bool flush = true);

  /// Where the bytes are until then; a writer that wants a path of its own may use it.
  const std::string& temporary_path() const { return temporary_; }

 private:
  [[noreturn]] void fail(int error);
  void discard() noexcept;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace fx::io
