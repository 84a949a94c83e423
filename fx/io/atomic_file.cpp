#include "fx/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "fx/base/error.h"
#include "fx/io/shown.h"

namespace fx::io {

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  static std::atomic<unsigned> counter{0};
  if (path_.empty() || path_.find('\0') != std::string::npos) fail(EINVAL);
  for (int attempt = 0; attempt < 100 && fd_ < 0; ++attempt) {
    temporary_ = path_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    // O_EXCL: never follow a link or take over a file that somebody else put there.
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) {
      int error = errno;
      temporary_.clear();
      fail(error);
    }
  }
  if (fd_ < 0) {
    temporary_.clear();
    fail(EEXIST);
  }
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  FX_ASSERT(fd_ >= 0, "write after commit");
  while (!bytes.empty()) {
    ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::commit(bool flush) {
  FX_ASSERT(fd_ >= 0, "commit twice");
  if (flush && ::fsync(fd_) != 0) fail(errno);
  int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) fail(errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void AtomicFile::fail(int error) {
  discard();
  throw ImportError(ErrorCode::kWriteFailed,
                    "Cannot write " + shown(path_) + ": " + std::generic_category().message(error));
}

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

}  // namespace fx::io
