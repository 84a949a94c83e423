#include "fx/graph/text_literals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <unordered_map>

#include "fx/base/text.h"
#include "fx/base/utf8.h"
#include "fx/graph/node.h"

namespace fx::text {
namespace {

void append_hex_byte(std::string& out, unsigned char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

std::unordered_map<std::string, Argument> make_torch_constants() {
  std::unordered_map<std::string, Argument> out;
  auto add = [&](const Argument& value) { out.emplace(repr(value), value); };
  for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i)
    add(static_cast<c10::ScalarType>(i));
  for (int i = 0; i < static_cast<int>(c10::Layout::NumOptions); ++i)
    add(static_cast<c10::Layout>(i));
  for (int i = 0; i < static_cast<int>(c10::MemoryFormat::NumOptions); ++i)
    add(static_cast<c10::MemoryFormat>(i));
  return out;
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text.substr(i));
    if (length > 1) {
      out += text.substr(i, length);
      i += length;
      continue;
    }
    ++i;
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          append_hex_byte(out, static_cast<unsigned char>(c));
        } else {
          if (c == '\\' || c == quote) out += '\\';
          out += c;
        }
    }
  }
  out += quote;
}

void append_float(std::string& out, double value) {
  if (std::isnan(value)) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    if (bits != std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN())) {
      char buffer[32];
      std::snprintf(buffer, sizeof buffer, "nan(0x%016llx)", static_cast<unsigned long long>(bits));
      out += buffer;
      return;
    }
  }
  out += float_repr(value);
}

void append_tuple(std::string& out, std::span<const Argument> items) {
  out += '(';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    append_argument(out, items[i]);
  }
  out += items.size() == 1 ? ",)" : ")";
}

void append_argument(std::string& out, const Argument& argument) {
  using Kind = Argument::Kind;
  switch (argument.kind()) {
    case Kind::kFloat:
      append_float(out, argument.to_double());
      break;
    case Kind::kComplex: {
      out += "complex(";
      append_float(out, argument.to_complex().real());
      out += ", ";
      append_float(out, argument.to_complex().imag());
      out += ')';
      break;
    }
    case Kind::kString:
      append_quoted(out, argument.to_string());
      break;
    case Kind::kTuple:
      append_tuple(out, argument.items());
      break;
    case Kind::kList:
    case Kind::kSlice: {
      const bool list = argument.kind() == Kind::kList;
      out += list ? "[" : "slice(";
      bool first = true;
      for (const Argument& item : argument.items()) {
        if (!first) out += ", ";
        first = false;
        append_argument(out, item);
      }
      out += list ? ']' : ')';
      break;
    }
    case Kind::kDict: {
      out += '{';
      bool first = true;
      for (const DictItem& item : argument.dict_items()) {
        if (!first) out += ", ";
        first = false;
        append_argument(out, item.first);
        out += ": ";
        append_argument(out, item.second);
      }
      out += '}';
      break;
    }
    default:
      append_repr(out, argument, "%");
  }
}

bool is_plain_target_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.:*<>/+$@-").find(c) != std::string_view::npos;
}

bool is_plain_target(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_plain_target_char);
}

bool is_plain_type_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.,[] ").find(c) != std::string_view::npos;
}

bool is_plain_type(std::string_view text) {
  if (text.empty() || !is_identifier(text.substr(0, 1)) || text.back() == ' ') return false;
  int depth = 0;
  for (char c : text) {
    if (!is_plain_type_char(c)) return false;
    depth += (c == '[') - (c == ']');
    if (depth < 0) return false;
  }
  return depth == 0;
}

const Argument* find_torch_constant(std::string_view name) {
  static const auto* constants = new auto(make_torch_constants());
  auto found = constants->find(std::string(name));
  return found == constants->end() ? nullptr : &found->second;
}

std::optional<c10::DeviceType> find_device_type(std::string_view name) {
  // Not kept in a table: a back end may give PrivateUse1 its own name at any time.
  for (int i = 0; i < static_cast<int>(c10::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES); ++i) {
    const auto type = static_cast<c10::DeviceType>(i);
    if (c10::DeviceTypeName(type, /*lower_case=*/true) == name) return type;
  }
  return std::nullopt;
}

bool is_device_index(c10::DeviceType type, std::int64_t index) {
  return index >= -1 && index <= (type == c10::DeviceType::CPU ? 0 : 127);
}

}  // namespace fx::text
