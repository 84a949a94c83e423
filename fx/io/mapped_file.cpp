#include "fx/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "fx/base/error.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

/// Closes a file descriptor at the end of a scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw ImportError(ErrorCode::kOpenFailed, "Cannot open " + shown(path) + ": " + why);
}

[[noreturn]] void fail_with_errno(const std::string& path, int error) {
  fail(path, std::generic_category().message(error));
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

void read_all(const std::string& path, int fd, std::byte* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    ssize_t n = ::pread(fd, data + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno(path, errno);
    if (n == 0) fail(path, "the file became shorter while it was read");
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, FileAccess access) {
  if (path.find('\0') != std::string::npos) fail(path, "the path holds a NUL character");
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) fail_with_errno(path, errno);
  struct stat status;
  if (::fstat(file.fd, &status) != 0) fail_with_errno(path, errno);
  if (!S_ISREG(status.st_mode))
    fail(path, std::string("it is ") + kind_of(status.st_mode) + ", a regular file is wanted");

  auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, nullptr, 0, false));
  const bool copy = access == FileAccess::kCopy;
  // A mapped file reserves nothing for pages that might be written to: it may be larger than
  // memory.
  void* memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | (copy ? MAP_ANONYMOUS : MAP_NORESERVE), copy ? -1 : file.fd, 0);
  if (memory == MAP_FAILED) fail_with_errno(path, errno);
  std::shared_ptr<const MappedFile> mapped(
      new MappedFile(path, static_cast<std::byte*>(memory), size, !copy));
  if (copy) read_all(path, file.fd, mapped->mutable_data(), size);
  return mapped;
}

void MappedFile::forget(std::span<const std::byte> part) const noexcept {
  if (!is_mapped_ || part.empty()) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<std::size_t>(part.data() - data_);
  const std::size_t first = (begin + page - 1) / page * page;
  const std::size_t end = (begin + part.size()) / page * page;
  if (first < end) ::madvise(data_ + first, end - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace fx::io
