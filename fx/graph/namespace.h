#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace fx {

class Node;

namespace detail {
/// A name, or the base of numbered names ("add" of "add_3"). Never freed before its namespace.
struct NameEntry {
  std::string_view text;
  std::uint64_t hash = 0;
  Node* owner = nullptr;     // the node that carries this name, null once erased or renamed
  std::uint64_t count = 0;   // highest number given to this base so far
  bool used = false;         // given out as a name, ever: names are never reused
  bool reserved = false;     // a Python keyword or built-in
};
}  // namespace detail

/// Unique names of a graph, by torch.fx's `_Namespace` rules, which users know from every printed
/// graph: illegal characters become "_", a leading digit gets a "_", a name that is taken or reserved
/// gets the next number of its base ("add", "add_1", ...). Names are never given twice, also after
/// the node is gone.
///
/// An insert-only open-addressing hash table over entries in an arena: two to three probes a name.
class Namespace {
 public:
  Namespace();
  ~Namespace();

  /// A unique name derived from `candidate`. Amortised O(length).
  detail::NameEntry* create(std::string_view candidate);
  /// Exactly `name` for the copy of a node into a fresh namespace, or a numbered one if taken.
  detail::NameEntry* find(std::string_view name) const noexcept;

 private:
  detail::NameEntry* entry(std::string_view text);
  std::string_view store(std::string_view text);
  void grow();

  std::vector<detail::NameEntry*> table_;
  std::size_t count_ = 0;
  std::vector<std::unique_ptr<char[]>> text_blocks_;
  std::size_t text_left_ = 0;
  char* text_next_ = nullptr;
  std::vector<std::unique_ptr<detail::NameEntry[]>> entry_blocks_;
  std::size_t entries_left_ = 0;
};

/// Python's keywords and built-ins and the globals of generated code, which no node may be called.
bool is_reserved_name(std::string_view name);

}  // namespace fx
