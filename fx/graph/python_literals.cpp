#include "fx/graph/python_literals.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/base/utf8.h"

namespace fx::python {
namespace {

// clang-format off
constexpr std::string_view kKeywords[] = {
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in",
    "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with",
    "yield",
};
// clang-format on
static_assert(std::is_sorted(std::begin(kKeywords), std::end(kKeywords)));

std::string float_literal(double value, Imports& imports) {
  imports.inf |= std::isinf(value);
  imports.nan |= std::isnan(value);
  return float_repr(value);
}

}  // namespace

bool is_keyword(std::string_view text) {
  return std::binary_search(std::begin(kKeywords), std::end(kKeywords), text);
}

bool is_name(std::string_view text) { return is_identifier(text) && !is_keyword(text); }

std::string string_literal(std::string_view text) {
  if (is_utf8(text)) return str_repr(text);
  // str_repr leaves bytes beyond ASCII alone: take the bad ones out before, escaped.
  std::string out = "'";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      constexpr char kHex[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(text[i++]);
      out += "\\udc";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
      continue;
    }
    std::string piece = str_repr(text.substr(i, length));
    std::string inner = piece.substr(1, piece.size() - 2);
    out += inner == "'" ? "\\'" : inner;
    i += length;
  }
  return out + "'";
}

std::string attribute(std::string object, std::string_view path) {
  for (;;) {
    const std::size_t dot = path.find('.');
    const std::string_view atom = path.substr(0, dot);
    if (is_name(atom))
      object += "." + std::string(atom);
    else
      object = "getattr(" + object + ", " + string_literal(atom) + ")";
    if (dot == std::string_view::npos) return object;
    path.remove_prefix(dot + 1);
  }
}

std::string literal(const Argument& argument, Imports& imports,
                    const std::function<std::string(const Node&)>& node_name) {
  using Kind = Argument::Kind;
  auto joined = [&](std::span<const Argument> items) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i)
      out += (i ? ", " : "") + literal(items[i], imports, node_name);
    return out;
  };
  switch (argument.kind()) {
    case Kind::kNode:
      return node_name(argument.node());
    case Kind::kFloat:
      return float_literal(argument.to_double(), imports);
    case Kind::kComplex: {
      // Python's own repr loses signed zeros when it is evaluated.
      std::string out = "complex(" + float_literal(argument.to_complex().real(), imports);
      return out + ", " + float_literal(argument.to_complex().imag(), imports) + ")";
    }
    case Kind::kString:
      return string_literal(argument.to_string());
    case Kind::kDevice:
      imports.device = true;
      return repr(argument);
    case Kind::kDtype:
      if (argument.to_dtype() == c10::ScalarType::Undefined)
        throw GraphError(ErrorCode::kNotExpressible, "Python has no undefined dtype");
      return repr(argument);
    case Kind::kList:
      return "[" + joined(argument.items()) + "]";
    case Kind::kTuple:
      return "(" + joined(argument.items()) + (argument.items().size() == 1 ? ",)" : ")");
    case Kind::kSlice:
      return "slice(" + joined(argument.items()) + ")";
    case Kind::kDict: {
      std::string out = "{";
      for (const DictItem& item : argument.dict_items()) {
        if (out.size() > 1) out += ", ";
        out += literal(item.first, imports, node_name) + ": " +
               literal(item.second, imports, node_name);
      }
      return out + "}";
    }
    default:
      return repr(argument);
  }
}

}  // namespace fx::python
