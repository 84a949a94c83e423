#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace fx::fuzz {

/// A folder of this process for files that are written again and again, in memory where there is
/// such a place. It goes with the process, if that ends in order.
inline const std::string& temp_folder() {
  struct Folder {
    std::string path = (::access("/dev/shm", W_OK) == 0 ? std::filesystem::path("/dev/shm")
                                                        : std::filesystem::temp_directory_path()) /
                       "fxcpp-fuzz-XXXXXX";
    Folder() {
      if (!mkdtemp(path.data())) std::abort();
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace fx::fuzz
