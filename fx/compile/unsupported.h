#pragma once

#include <stdexcept>
#include <string>

namespace fx::loops {

/// Thrown while lowering: this operation, or this combination, has no kernel. Never reaches a user:
/// the node then runs as an operator, and explain() shows the reason.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace fx::loops
