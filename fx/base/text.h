#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>

/// Text helpers that follow Python's rules, since printed graphs follow torch.fx's text.
namespace fx {

/// Python's repr of a string: single quotes unless the text holds one and no double quote; escapes
/// backslash, the quote, \n \r \t and other control bytes (\xNN). UTF-8 passes unchanged.
std::string str_repr(std::string_view text);

/// Python's repr of a float: shortest text that reads back the same ("1.0", "1e-05", "inf", "nan").
std::string float_repr(double value);

/// Python's repr of a complex number: "(1+2j)", "1j".
std::string complex_repr(std::complex<double> value);

/// torch.fx's snake case: an underscore between a lower-case letter and a following upper-case one,
/// then everything in lower case ("fooBar" -> "foo_bar", "ALL_CAPS" -> "all_caps").
std::string snake_case(std::string_view text);

/// Whether `text` is an ASCII identifier ([A-Za-z_][A-Za-z0-9_]*).
bool is_identifier(std::string_view text);

/// The candidate that is nearest to `text` by edit distance, or empty if none is near enough to be
/// a likely misspelling. For "did you mean" lines. O(candidates * length^2).
template <typename Range>
std::string nearest(std::string_view text, const Range& candidates);

/// Levenshtein distance. O(a*b).
std::size_t edit_distance(std::string_view a, std::string_view b);

template <typename Range>
std::string nearest(std::string_view text, const Range& candidates) {
  std::string best;
  std::size_t best_distance = text.size() / 3 + 1;
  for (const auto& candidate : candidates) {
    std::size_t distance = edit_distance(text, candidate);
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace fx
