#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace fx {

class Node;

namespace detail {
struct NumberedNames;

/// A name, or the base of numbered names ("add" of "add_3"). Never freed before its namespace.
struct NameEntry {
  std::string_view text;
  Node* owner = nullptr;  // the node that carries this name, null once erased or renamed
  NumberedNames* numbered = nullptr;  // of a base; null until it gets a number
  std::uint32_t hash = 0;             // of an entry of the hash table
  bool used = false;                  // given out as a name, ever: names are never reused
  bool reserved = false;              // a Python keyword or built-in
};
}  // namespace detail

/// Unique names of a graph, by torch.fx's `_Namespace` rules, which users know from every printed
/// graph: illegal characters become "_", a leading digit gets a "_", a name that is taken or
/// reserved gets the next number of its base ("add", "add_1", ...). Names are never given twice,
/// also after the node is gone.
///
/// Bases stand in an insert-only hash table with open addressing; the names "add_1", "add_2", ...
/// of a base in an array by their number, as nearly all names of a large graph do: no search, no
/// growing table, and neighbours in the graph are neighbours in memory.
class Namespace {
 public:
  Namespace();
  ~Namespace();

  /// A unique name derived from `candidate`. Amortised O(length).
  detail::NameEntry* create(std::string_view candidate);
  /// The entry of exactly `name`, or null. O(length).
  detail::NameEntry* find(std::string_view name) const noexcept;

 private:
  detail::NameEntry* entry(std::string_view text);
  detail::NameEntry* hashed_entry(std::string_view text);
  detail::NameEntry* numbered_entry(detail::NameEntry& base, std::uint64_t number);
  detail::NameEntry* find_hashed(std::string_view text, std::uint32_t hash) const noexcept;
  detail::NumberedNames& numbered_names(detail::NameEntry& base);
  detail::NameEntry* allocate_entry(std::string_view text);
  char* allocate_text(std::size_t size);
  void grow();

  std::vector<detail::NameEntry*> table_;
  std::size_t count_ = 0;
  std::vector<std::unique_ptr<detail::NumberedNames>> numbered_;
  std::vector<std::unique_ptr<char[]>> text_blocks_;
  std::size_t text_left_ = 0;
  char* text_next_ = nullptr;
  std::vector<std::unique_ptr<detail::NameEntry[]>> entry_blocks_;
  std::size_t entries_used_ = 0;  // of the last block
};

/// Python's keywords and built-ins and the globals of generated code, which no node may be called.
bool is_reserved_name(std::string_view name);

}  // namespace fx
