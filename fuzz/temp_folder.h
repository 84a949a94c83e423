#pragma once

#include <cstdlib>
#include <string>

namespace fx::fuzz {

/// A folder of this process for files that are written again and again.
inline const std::string& temp_folder() {
  static const std::string path = [] {
    std::string name = "/tmp/fxcpp-fuzz-XXXXXX";
    if (!mkdtemp(name.data())) std::abort();
    return name;
  }();
  return path;
}

}  // namespace fx::fuzz
