#pragma once

#include <exception>
#include <functional>
#include <string>

namespace fx {

/// The words of what `run` throws.
inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace fx
