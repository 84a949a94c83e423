#include "fx/graph/cpp_names.h"

#include <algorithm>

#include "fx/base/text.h"

namespace fx::cpp {
namespace {

// clang-format off
constexpr std::string_view kTaken[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "at", "auto", "bitand", "bitor", "bool", "break",
    "c10", "call", "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await",
    "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr",
    "constinit", "continue", "decltype", "default", "delete", "dict", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "floor_div", "floor_mod",
    "for", "friend", "goto", "if", "inline", "int", "list", "long", "mutable", "namespace", "new",
    "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected",
    "public", "register", "reinterpret_cast", "requires", "return", "short", "signed", "sizeof",
    "static", "static_assert", "static_cast", "std", "struct", "switch", "template", "this",
    "thread_local", "throw", "torch", "true", "try", "tuple", "typedef", "typeid", "typename",
    "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "weights", "while",
    "xor", "xor_eq",
};
// clang-format on
static_assert(std::ranges::is_sorted(kTaken));

constexpr Operator kOperators[] = {
    {"abs", "abs", ""},
    {"add", "add", "+"},
    {"and_", "bitwise_and", ""},
    {"eq", "eq", "=="},
    {"floordiv", "floor_divide", ""},
    {"ge", "ge", ">="},
    {"gt", "gt", ">"},
    {"invert", "bitwise_not", ""},
    {"le", "le", "<="},
    {"lshift", "__lshift__", ""},
    {"lt", "lt", "<"},
    {"matmul", "matmul", ""},
    {"mod", "remainder", ""},
    {"mul", "mul", "*"},
    {"ne", "ne", "!="},
    {"neg", "neg", ""},
    {"or_", "bitwise_or", ""},
    {"pos", "positive", ""},
    {"pow", "pow", ""},
    {"rshift", "__rshift__", ""},
    {"sub", "sub", "-"},
    {"truediv", "div", ""},
    {"xor", "bitwise_xor", ""},
};

}  // namespace

bool is_taken(std::string_view name) { return std::ranges::binary_search(kTaken, name); }

const Operator* find_operator(std::string_view name) {
  auto found = std::ranges::lower_bound(kOperators, name, {}, &Operator::name);
  return found != std::end(kOperators) && found->name == name ? found : nullptr;
}

std::string File::claim(std::string_view candidate) {
  std::string base;
  for (char c : candidate) base += is_identifier("_" + std::string(1, c)) ? c : '_';
  if (!is_identifier(base) || is_taken(base)) base = "f_" + base;
  std::string name = base;
  for (int i = 1; !functions.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  return name;
}

}  // namespace fx::cpp
