#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fx::io {

/// Which operators a program from a file may call: those of LibTorch's own computing namespaces,
/// save the few that touch something outside of their tensors or take their arguments on trust
/// (refused_operators.def). Operators that an application registered itself have to be allowed by
/// name, since nothing is known of what they do.
class OperatorPolicy {
 public:
  /// @param allowed names that are let through in any case: "mylib::op", or "mylib::*" for a
  ///   namespace.
  explicit OperatorPolicy(std::vector<std::string> allowed = {}) : allowed_(std::move(allowed)) {}

  /// Why `name` ("aten::from_file", without overload) is refused; nothing if it is allowed.
  std::optional<std::string> refusal(std::string_view name) const;

 private:
  std::vector<std::string> allowed_;
};

}  // namespace fx::io
