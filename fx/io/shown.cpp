#include "fx/io/shown.h"

#include <cstdint>

namespace fx::io {
namespace {

/// Length of the well-formed UTF-8 sequence at the front of `text`, 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = first < 0xC2   ? 0
                       : first < 0xE0 ? 2
                       : first < 0xF0 ? 3
                       : first < 0xF5 ? 4
                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  std::uint8_t second = byte(1);
  if (first == 0xE0 && second < 0xA0) return 0;  // overlong
  if (first == 0xED && second > 0x9F) return 0;  // surrogate
  if (first == 0xF0 && second < 0x90) return 0;  // overlong
  if (first == 0xF4 && second > 0x8F) return 0;  // above U+10FFFF
  return length;
}

bool is_control(std::string_view sequence) {
  auto first = static_cast<std::uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<std::uint8_t>(sequence[1]) < 0xA0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool has_control_characters(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = sequence_length(text);
    if (length == 0) length = 1;
    if (is_control(text.substr(0, length))) return true;
    text.remove_prefix(length);
  }
  return false;
}

std::string shown(std::string_view text, std::size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  const bool cut = text.size() > limit;
  std::string_view rest = text.substr(0, limit);
  std::string out = "'";
  while (!rest.empty()) {
    std::size_t length = sequence_length(rest);
    std::string_view sequence = rest.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_control(sequence)) {
      for (char c : sequence) {
        auto byte = static_cast<std::uint8_t>(c);
        if (c == '\n') {
          out += "\\n";
        } else if (c == '\t') {
          out += "\\t";
        } else {
          out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
        }
      }
    } else if (sequence == "'" || sequence == "\\") {
      out += '\\';
      out += sequence;
    } else {
      out += sequence;
    }
    rest.remove_prefix(sequence.size());
  }
  out += "'";
  if (cut) out += "... (" + std::to_string(text.size()) + " bytes)";
  return out;
}

}  // namespace fx::io
