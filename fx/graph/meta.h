#pragma once

#include <any>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fx {

/// The free metadata of a node: an insertion-ordered map from string to any copyable value
/// (torch.fx's `node.meta`). Copying copies the values, so value types are deep-copied and
/// shared_ptr values are shared. Lookups are O(entries); a node has few.
///
/// Keys that the library itself uses: "stack_trace" (std::string), "nn_module_stack"
/// (fx::ModuleStack), "tensor_meta" (fx::TensorMeta), "source_fn" (std::string).
class Meta {
 public:
  using Entry = std::pair<std::string, std::any>;

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  bool contains(std::string_view key) const noexcept { return find_any(key) != nullptr; }

  /// Sets or replaces; a new key goes to the end.
  void set(std::string_view key, std::any value) {
    if (std::any* slot = find_any(key))
      *slot = std::move(value);
    else
      entries_.emplace_back(std::string(key), std::move(value));
  }
  void set(std::string_view key, const char* text) { set(key, std::any(std::string(text))); }

  /// The value, or null when the key is absent or holds another type.
  template <typename T>
  const T* get(std::string_view key) const noexcept {
    const std::any* slot = find_any(key);
    return slot ? std::any_cast<T>(slot) : nullptr;
  }
  template <typename T>
  T* get(std::string_view key) noexcept {
    return const_cast<T*>(std::as_const(*this).get<T>(key));
  }

  /// Whether the key was there.
  bool erase(std::string_view key) {
    return std::erase_if(entries_, [&](const Entry& e) { return e.first == key; }) > 0;
  }
  void clear() { entries_.clear(); }

  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

 private:
  const std::any* find_any(std::string_view key) const noexcept {
    for (const Entry& entry : entries_)
      if (entry.first == key) return &entry.second;
    return nullptr;
  }
  std::any* find_any(std::string_view key) noexcept {
    return const_cast<std::any*>(std::as_const(*this).find_any(key));
  }

  std::vector<Entry> entries_;
};

}  // namespace fx
