#include "fx/base/symbol.h"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace fx {

#ifdef __clang__
// To clang an empty string of libstdc++ 12 is no constant: made before all other globals instead.
[[gnu::init_priority(101)]] const std::string detail::kEmptyText;
#else
constinit const std::string detail::kEmptyText;
#endif

namespace {

struct SymbolTable {
  SymbolTable() { index.emplace(detail::kEmptyText, &detail::kEmptyText); }

  std::shared_mutex mutex;
  std::deque<std::string> texts;  // stable addresses
  std::unordered_map<std::string_view, const std::string*> index;

  const std::string* intern(std::string_view text) {
    {
      std::shared_lock lock(mutex);
      if (auto it = index.find(text); it != index.end()) return it->second;
    }
    std::unique_lock lock(mutex);
    if (auto it = index.find(text); it != index.end()) return it->second;
    const std::string* stored = &texts.emplace_back(text);
    index.emplace(*stored, stored);
    return stored;
  }
};

SymbolTable& table() {
  static auto* instance = new SymbolTable;  // never destroyed: symbols outlive static destructors
  return *instance;
}

}  // namespace

Symbol::Symbol(std::string_view text) : text_(table().intern(text)) {}

}  // namespace fx
