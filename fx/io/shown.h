#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fx::io {

/// Text from a file, fit for an error message: quoted, control characters (also the C1 range, which
/// terminals obey) and invalid UTF-8 escaped as \xNN, cut after `limit` bytes.
std::string shown(std::string_view text, std::size_t limit = 200);

/// Whether `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
/// O(n).
bool is_utf8(std::string_view text);

/// Whether `text` holds a control character: below space, DEL, or U+0080 to U+009F in UTF-8. O(n).
bool has_control_characters(std::string_view text);

}  // namespace fx::io
