#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace fx::io {

/// How the bytes of a file get into memory.
enum class FileAccess {
  /// Pages of the file, mapped privately: nothing is read before it is used, what is written to the
  /// memory stays in this process. If somebody truncates the file while it is mapped, touching the
  /// lost pages kills the process (SIGBUS), as with every mapped file; replacing it by a rename is
  /// safe.
  kMap,
  /// A copy, read once when the file is opened. Safe against changes of the file.
  kCopy,
};

/// A regular file as one block of memory, for as long as the object lives.
class MappedFile {
 public:
  /// Opens `path`. Only regular files are accepted, so that a directory, a pipe or a device cannot
  /// block or grow without end. Throws ImportError kOpenFailed. kMap: O(1); kCopy: O(size).
  static std::shared_ptr<const MappedFile> open(const std::string& path,
                                                FileAccess access = FileAccess::kMap);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// The same memory, writable: pages are copied when they are first written to, the file never
  /// changes. For the owner of tensors that lie in it.
  std::byte* mutable_data() const { return data_; }

  /// Lets go of the memory that holds `part` of bytes(), which nobody has written to: it is read
  /// from the file again when it is next looked at. Whole pages of a mapped file only.
  void forget(std::span<const std::byte> part) const noexcept;

 private:
  MappedFile(std::string path, std::byte* data, std::size_t size, bool is_mapped)
      : path_(std::move(path)), data_(data), size_(size), is_mapped_(is_mapped) {}

  std::string path_;
  std::byte* data_;  // page aligned; null if the file is empty
  std::size_t size_;
  bool is_mapped_;
};

}  // namespace fx::io
