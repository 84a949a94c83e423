#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fx::cli {

/// A line of a difference.
struct DiffLine {
  char mark = ' ';  ///< '-' only before, '+' only after, ' ' context, '@' where lines were left out
  std::string text;
};

/// The lines that differ, with `context` equal lines around them: a patience diff, which is exact
/// for graphs since each of their lines is unique. O(n log n).
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after,
                                 std::size_t context = 1);

}  // namespace fx::cli
