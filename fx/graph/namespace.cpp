#include "fx/graph/namespace.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <string>

namespace fx {
namespace {

using detail::NameEntry;

// clang-format off
// Sorted; Python 3.11's keyword.kwlist and builtins, and the names that generated code imports.
constexpr std::string_view kReserved[] = {
    "ArithmeticError", "AssertionError", "AttributeError", "BaseException",
    "BaseExceptionGroup", "BlockingIOError", "BrokenPipeError", "BufferError", "BytesWarning",
    "ChildProcessError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
    "ConnectionResetError", "DeprecationWarning", "EOFError", "Ellipsis", "EncodingWarning",
    "EnvironmentError", "Exception", "ExceptionGroup", "False", "FileExistsError",
    "FileNotFoundError", "FloatingPointError", "FutureWarning", "GeneratorExit", "IOError",
    "ImportError", "ImportWarning", "IndentationError", "IndexError", "InterruptedError",
    "IsADirectoryError", "KeyError", "KeyboardInterrupt", "LookupError", "MemoryError",
    "ModuleNotFoundError", "NameError", "None", "NoneType", "NotADirectoryError",
    "NotImplemented", "NotImplementedError", "OSError", "OverflowError",
    "PendingDeprecationWarning", "PermissionError", "ProcessLookupError", "RecursionError",
    "ReferenceError", "ResourceWarning", "RuntimeError", "RuntimeWarning", "StopAsyncIteration",
    "StopIteration", "SyntaxError", "SyntaxWarning", "SystemError", "SystemExit", "TabError",
    "TimeoutError", "True", "TypeError", "UnboundLocalError", "UnicodeDecodeError",
    "UnicodeEncodeError", "UnicodeError", "UnicodeTranslateError", "UnicodeWarning",
    "UserWarning", "ValueError", "Warning", "ZeroDivisionError", "__build_class__", "__debug__",
    "__doc__", "__import__", "__loader__", "__name__", "__package__", "__spec__", "abs",
    "aiter", "all", "and", "anext", "any", "as", "ascii", "assert", "async", "await", "bin",
    "bool", "break", "breakpoint", "bytearray", "bytes", "callable", "chr", "class",
    "classmethod", "compile", "complex", "continue", "copyright", "credits", "def", "del",
    "delattr", "device", "dict", "dir", "divmod", "elif", "else", "enumerate", "eval", "except",
    "exec", "exit", "filter", "finally", "float", "for", "format", "from", "frozenset",
    "fx_pytree", "getattr", "global", "globals", "hasattr", "hash", "help", "hex", "id", "if",
    "import", "in", "inf", "input", "int", "is", "isinstance", "issubclass", "iter", "lambda",
    "len", "license", "list", "locals", "map", "max", "memoryview", "min", "nan", "next",
    "nonlocal", "not", "object", "oct", "open", "or", "ord", "pass", "pow", "print", "property",
    "pytree", "quit", "raise", "range", "repr", "return", "reversed", "round", "set", "setattr",
    "slice", "sorted", "staticmethod", "str", "sum", "super", "torch", "try", "tuple", "type",
    "vars", "while", "with", "yield", "zip",
};
// clang-format on
static_assert(std::is_sorted(std::begin(kReserved), std::end(kReserved)));

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool needs_cleaning(std::string_view text) {
  return text.empty() || is_digit(text[0]) || !std::all_of(text.begin(), text.end(), is_word);
}

// A run of illegal characters becomes one underscore.
std::string cleaned(std::string_view text) {
  std::string out;
  bool in_run = false;
  for (char c : text) {
    if (is_word(c)) {
      out += c;
      in_run = false;
    } else if (!in_run) {
      out += '_';
      in_run = true;
    }
  }
  if (out.empty()) out = "_unnamed";
  if (is_digit(out[0])) out.insert(out.begin(), '_');
  return out;
}

struct Split {
  std::string_view base;
  std::uint64_t number = 0;
  bool numbered = false;
  bool canonical = false;  // base + "_" + number gives the text back: no leading zeros
};

constexpr std::size_t kMaxDigits = 18;
constexpr std::uint64_t kMaxNumber = 999'999'999'999'999'999u;

// "add_12" -> add, 12. The base is at least one character; numbers beyond 18 digits are text.
Split split_number(std::string_view name) {
  std::size_t digits = 0;
  while (digits < name.size() && is_digit(name[name.size() - 1 - digits])) ++digits;
  if (digits == 0 || digits > kMaxDigits || digits + 2 > name.size() ||
      name[name.size() - 1 - digits] != '_')
    return {name};
  const char* number = name.data() + name.size() - digits;
  Split split{name.substr(0, name.size() - digits - 1), 0, true, digits == 1 || *number != '0'};
  std::from_chars(number, name.data() + name.size(), split.number);
  return split;
}

// Whether the numbered names of `base` stand in its array. Names with two numbers ("add_1_2") do
// not, so that a look-up takes two steps at most.
bool has_array(std::string_view base) { return !split_number(base).numbered; }

// "add", 12 -> "add_12" at `out`, which has room for base.size() + 21 characters. Returns the end.
char* write_numbered(char* out, std::string_view base, std::uint64_t number) {
  std::memcpy(out, base.data(), base.size());
  out += base.size();
  *out++ = '_';
  return std::to_chars(out, out + 20, number).ptr;
}

std::string numbered_text(std::string_view base, std::uint64_t number) {
  std::string text(base.size() + 21, '\0');
  text.resize(static_cast<std::size_t>(write_numbered(text.data(), base, number) - text.data()));
  return text;
}

std::uint32_t hash_of(std::string_view text) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(text));
}

}  // namespace

namespace detail {
struct NumberedNames {
  std::uint64_t count = 0;            // highest number given to this base so far
  std::vector<NameEntry*> by_number;  // null: no such name; at least about half is not
  std::size_t filled = 0;             // of by_number
  std::size_t elsewhere = 0;          // names in the hash table, for their numbers are too high
};
}  // namespace detail

bool is_reserved_name(std::string_view name) {
  return std::binary_search(std::begin(kReserved), std::end(kReserved), name);
}

Namespace::Namespace() : table_(64, nullptr) {}
Namespace::~Namespace() = default;

NameEntry* Namespace::create(std::string_view candidate) {
  std::string storage;
  if (needs_cleaning(candidate)) {
    storage = cleaned(candidate);
    candidate = storage;
  }
  const Split split = split_number(candidate);
  NameEntry* name = entry(candidate);
  NameEntry* base = split.numbered ? entry(split.base) : name;
  std::uint64_t number = split.number;
  auto next = [&] {
    ++number;
    name = number <= kMaxNumber && (!split.numbered || has_array(split.base))
               ? numbered_entry(*base, number)
               : entry(numbered_text(split.base, number));
  };
  if (!split.numbered || name->used) {
    number = base->numbered ? base->numbered->count : 0;
    if (name->reserved) next();
  }
  while (name->used) next();
  name->used = true;
  if (number > 0 || base->numbered) numbered_names(*base).count = number;
  return name;
}

NameEntry* Namespace::find(std::string_view name) const noexcept {
  const Split split = split_number(name);
  if (split.canonical && has_array(split.base)) {
    const NameEntry* base = find_hashed(split.base, hash_of(split.base));
    if (!base || !base->numbered) return nullptr;
    const auto& by_number = base->numbered->by_number;
    if (split.number < by_number.size() && by_number[split.number]) return by_number[split.number];
    if (base->numbered->elsewhere == 0) return nullptr;
  }
  return find_hashed(name, hash_of(name));
}

NameEntry* Namespace::find_hashed(std::string_view text, std::uint32_t hash) const noexcept {
  for (std::size_t i = hash & (table_.size() - 1);; i = (i + 1) & (table_.size() - 1)) {
    NameEntry* slot = table_[i];
    if (!slot || (slot->hash == hash && slot->text == text)) return slot;
  }
}

NameEntry* Namespace::entry(std::string_view text) {
  const Split split = split_number(text);
  return split.canonical && has_array(split.base)
             ? numbered_entry(*hashed_entry(split.base), split.number)
             : hashed_entry(text);
}

NameEntry* Namespace::hashed_entry(std::string_view text) {
  const std::uint32_t hash = hash_of(text);
  std::size_t i = hash & (table_.size() - 1);
  for (; table_[i]; i = (i + 1) & (table_.size() - 1))
    if (table_[i]->hash == hash && table_[i]->text == text) return table_[i];
  char* stored = allocate_text(text.size());
  std::memcpy(stored, text.data(), text.size());
  text_next_ += text.size();
  text_left_ -= text.size();
  NameEntry* made = allocate_entry({stored, text.size()});
  made->hash = hash;
  made->reserved = is_reserved_name(text);
  table_[i] = made;
  if (++count_ * 2 > table_.size()) grow();
  return made;
}

// No reserved name has a number.
NameEntry* Namespace::numbered_entry(NameEntry& base, std::uint64_t number) {
  detail::NumberedNames& names = numbered_names(base);
  auto& by_number = names.by_number;
  if (number < by_number.size() && by_number[number]) return by_number[number];
  const bool fits = number <= 2 * names.filled + 16;
  NameEntry* made = nullptr;
  if (!fits || names.elsewhere > 0) {
    const std::string text = numbered_text(base.text, number);
    made = find_hashed(text, hash_of(text));
    if (!fits) {
      if (made) return made;
      ++names.elsewhere;
      return hashed_entry(text);
    }
  }
  if (number >= by_number.size()) by_number.resize(number + 1, nullptr);
  ++names.filled;
  if (made) {
    --names.elsewhere;
  } else {
    char* text = allocate_text(base.text.size() + 21);
    const auto size = static_cast<std::size_t>(write_numbered(text, base.text, number) - text);
    text_next_ += size;
    text_left_ -= size;
    made = allocate_entry({text, size});
  }
  return by_number[number] = made;
}

detail::NumberedNames& Namespace::numbered_names(NameEntry& base) {
  if (!base.numbered)
    base.numbered = numbered_.emplace_back(std::make_unique<detail::NumberedNames>()).get();
  return *base.numbered;
}

NameEntry* Namespace::allocate_entry(std::string_view text) {
  constexpr std::size_t kBlock = 128;
  if (entry_blocks_.empty() || entries_used_ == kBlock) {
    entry_blocks_.push_back(std::make_unique<NameEntry[]>(kBlock));
    entries_used_ = 0;
  }
  NameEntry* made = &entry_blocks_.back()[entries_used_++];
  made->text = text;
  return made;
}

// Room for `size` characters at text_next_; the caller takes what it needs.
char* Namespace::allocate_text(std::size_t size) {
  if (size > text_left_) {
    const std::size_t block = std::max<std::size_t>(4096, size);
    text_blocks_.push_back(std::make_unique_for_overwrite<char[]>(block));
    text_next_ = text_blocks_.back().get();
    text_left_ = block;
  }
  return text_next_;
}

void Namespace::grow() {
  std::vector<NameEntry*> bigger(table_.size() * 2, nullptr);
  for (NameEntry* e : table_) {
    if (!e) continue;
    std::size_t i = e->hash & (bigger.size() - 1);
    while (bigger[i]) i = (i + 1) & (bigger.size() - 1);
    bigger[i] = e;
  }
  table_ = std::move(bigger);
}

}  // namespace fx
