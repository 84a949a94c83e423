#pragma once

#include <compare>
#include <functional>
#include <string>
#include <string_view>

namespace fx {

namespace detail {
extern const std::string kEmptyText;  // initialised before everything else
}  // namespace detail

/// An immutable string in a process-wide table: equal text means equal address, so comparing and
/// hashing cost one pointer. Keyword names, attribute paths and type names of nodes are symbols.
/// The table never frees a string. Creation is thread safe, O(length).
class Symbol {
 public:
  /// The empty string.
  Symbol() noexcept : text_(&detail::kEmptyText) {}
  explicit Symbol(std::string_view text);

  const std::string& str() const noexcept { return *text_; }
  bool empty() const noexcept { return text_->empty(); }
  const void* id() const noexcept { return text_; }

  friend bool operator==(Symbol a, Symbol b) noexcept { return a.text_ == b.text_; }
  friend bool operator==(Symbol a, std::string_view b) noexcept { return *a.text_ == b; }

 private:
  const std::string* text_;
};

}  // namespace fx

template <>
struct std::hash<fx::Symbol> {
  std::size_t operator()(fx::Symbol s) const noexcept { return std::hash<const void*>{}(s.id()); }
};
