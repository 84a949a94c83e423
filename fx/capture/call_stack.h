#pragma once

#include <memory>
#include <string>
#include <vector>

namespace fx {

/// Where in the C++ program something happened: return addresses, which become a source line only
/// when somebody asks. Cheap to copy.
class CallStack {
 public:
  CallStack() = default;

  /// The stack of the caller. About a microsecond, once the unwinder has seen the code.
  static CallStack here();

  /// The innermost line that belongs neither to LibTorch nor to this library nor to the C++
  /// library: "net.cpp:42 (Net::forward)". Without debug information the name of the function;
  /// empty if nothing is known. The first call for an executable or library reads its line table.
  std::string source() const;

  bool empty() const noexcept { return !frames_; }

 private:
  std::shared_ptr<const std::vector<void*>> frames_;
};

}  // namespace fx
