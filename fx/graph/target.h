#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fx/base/symbol.h"
#include "fx/ops/function.h"

namespace fx {

/// What a node does. `kOutput` ends a graph.
enum class Opcode : std::uint8_t {
#define FX_OPCODE(enumerator, name) enumerator,
#include "fx/graph/opcodes.def"
#undef FX_OPCODE
};

/// "call_function" for kCallFunction.
std::string_view opcode_name(Opcode op);
/// The opcode of that name, or nothing.
std::optional<Opcode> opcode_from_name(std::string_view name);

/// The target of a node: a function for call_function, else a string (parameter name, attribute
/// path, method name). Compares and hashes in O(1).
class Target {
 public:
  Target() = default;
  explicit Target(Symbol text) noexcept : text_(text) {}
  explicit Target(const Function* function) noexcept : function_(function) {}

  /// The function of that name (Function::get).
  static Target function(std::string_view name) { return Target(Function::get(name)); }
  static Target string(std::string_view text) { return Target(Symbol(text)); }

  bool is_function() const noexcept { return function_ != nullptr; }
  /// Null for string targets.
  const Function* function() const noexcept { return function_; }
  /// The string, or the function's full name.
  const std::string& str() const noexcept { return function_ ? function_->name() : text_.str(); }
  Symbol symbol() const noexcept { return text_; }
  const void* id() const noexcept {
    return function_ ? static_cast<const void*>(function_) : text_.id();
  }

  friend bool operator==(const Target& a, const Target& b) noexcept {
    return a.function_ == b.function_ && (a.function_ || a.text_ == b.text_);
  }
  friend bool operator==(const Target& a, std::string_view name) noexcept {
    return a.str() == name;
  }

 private:
  const Function* function_ = nullptr;
  Symbol text_;
};

}  // namespace fx

template <>
struct std::hash<fx::Target> {
  std::size_t operator()(const fx::Target& t) const noexcept {
    return std::hash<const void*>{}(t.id());
  }
};
