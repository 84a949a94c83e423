#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fx/base/text.h"

namespace fx::io {

/// Builds JSON text. The caller pairs begin and end; strings are UTF-8.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name) {
    string(name);
    text_ += ':';
    first_ = true;
    return *this;
  }
  JsonWriter& string(std::string_view value);
  JsonWriter& integer(std::int64_t value) { return raw(std::to_string(value)); }
  /// Infinities and NaN as the strings that torch writes for them.
  JsonWriter& number(double value) {
    if (std::isnan(value)) return raw("\"NaN\"");
    if (std::isinf(value)) return raw(value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return raw(float_repr(value));
  }
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  /// Text that is JSON already.
  JsonWriter& raw(std::string_view json) {
    comma();
    text_ += json;
    return *this;
  }

  const std::string& text() const { return text_; }
  std::string take() && { return std::move(text_); }

 private:
  void comma() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  JsonWriter& open(char bracket) {
    comma();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }

  std::string text_;
  bool first_ = true;
};

inline JsonWriter& JsonWriter::string(std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::string_view kShort = "\b\t\n\f\r", kLetters = "btnfr";
  comma();
  text_ += '"';
  for (char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += {'\\', c};
    } else if (const auto i = kShort.find(c); i != std::string_view::npos) {
      text_ += {'\\', kLetters[i]};
    } else if (byte < 0x20) {
      text_ += "\\u00";
      text_ += {kHex[byte >> 4], kHex[byte & 15]};
    } else {
      text_ += c;
    }
  }
  text_ += '"';
  return *this;
}

}  // namespace fx::io
