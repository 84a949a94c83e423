#include "fx/graph/namespace.h"

#include <algorithm>
#include <array>
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
};

// "add_12" -> add, 12. The base is at least one character; numbers beyond 18 digits are text.
Split split_number(std::string_view name) {
  std::size_t digits = 0;
  while (digits < name.size() && is_digit(name[name.size() - 1 - digits])) ++digits;
  if (digits == 0 || digits > 18 || digits + 2 > name.size() ||
      name[name.size() - 1 - digits] != '_')
    return {name};
  Split split{name.substr(0, name.size() - digits - 1), 0, true};
  std::from_chars(name.data() + name.size() - digits, name.data() + name.size(), split.number);
  return split;
}

}  // namespace

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
  std::string numbered;
  auto next = [&] {
    char digits[24];
    ++number;
    auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    numbered.assign(split.base);
    numbered += '_';
    numbered.append(digits, end);
    name = entry(numbered);
  };
  if (!split.numbered || name->used) {
    number = base->count;
    if (name->reserved) next();
  }
  while (name->used) next();
  name->used = true;
  base->count = number;
  return name;
}

NameEntry* Namespace::find(std::string_view name) const noexcept {
  const std::uint64_t hash = std::hash<std::string_view>{}(name);
  for (std::size_t i = hash & (table_.size() - 1);; i = (i + 1) & (table_.size() - 1)) {
    NameEntry* slot = table_[i];
    if (!slot || (slot->hash == hash && slot->text == name)) return slot;
  }
}

NameEntry* Namespace::entry(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>{}(text);
  std::size_t i = hash & (table_.size() - 1);
  for (; table_[i]; i = (i + 1) & (table_.size() - 1))
    if (table_[i]->hash == hash && table_[i]->text == text) return table_[i];
  if (entries_left_ == 0) {
    constexpr std::size_t kBlock = 128;
    entry_blocks_.push_back(std::make_unique<NameEntry[]>(kBlock));
    entries_left_ = kBlock;
  }
  NameEntry* made = &entry_blocks_.back()[--entries_left_];
  made->text = store(text);
  made->hash = hash;
  made->reserved = is_reserved_name(text);
  table_[i] = made;
  if (++count_ * 2 > table_.size()) grow();
  return made;
}

std::string_view Namespace::store(std::string_view text) {
  if (text.size() > text_left_) {
    const std::size_t size = std::max<std::size_t>(4096, text.size());
    text_blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    text_next_ = text_blocks_.back().get();
    text_left_ = size;
  }
  std::memcpy(text_next_, text.data(), text.size());
  std::string_view stored(text_next_, text.size());
  text_next_ += text.size();
  text_left_ -= text.size();
  return stored;
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
