#include "tools/fxcpp/line_diff.h"

#include <algorithm>
#include <unordered_map>

namespace fx::cli {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Pairs (index in before, index in after) of lines that occur once in both, those that form the
/// longest run of increasing indices.
std::vector<std::pair<std::size_t, std::size_t>> anchors(
    const std::vector<std::string_view>& before, const std::vector<std::string_view>& after) {
  struct Place {
    std::size_t index = 0;
    std::size_t count = 0;
  };
  std::unordered_map<std::string_view, Place> in_before, in_after;
  for (std::size_t i = 0; i < before.size(); ++i)
    in_before[before[i]] = {i, in_before[before[i]].count + 1};
  for (std::size_t i = 0; i < after.size(); ++i)
    in_after[after[i]] = {i, in_after[after[i]].count + 1};

  std::vector<std::pair<std::size_t, std::size_t>> common;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto other = in_after.find(before[i]);
    if (other != in_after.end() && other->second.count == 1 && in_before[before[i]].count == 1)
      common.emplace_back(i, other->second.index);
  }
  // Longest increasing subsequence by the ends of the best runs of each length.
  std::vector<std::size_t> ends, previous(common.size(), common.size());
  for (std::size_t i = 0; i < common.size(); ++i) {
    const auto end = std::ranges::lower_bound(
        ends, common[i].second, {}, [&common](std::size_t e) { return common[e].second; });
    if (end != ends.begin()) previous[i] = *(end - 1);
    if (end == ends.end())
      ends.push_back(i);
    else
      *end = i;
  }
  std::vector<std::pair<std::size_t, std::size_t>> run;
  for (std::size_t i = ends.empty() ? common.size() : ends.back(); i < common.size();
       i = previous[i])
    run.push_back(common[i]);
  std::ranges::reverse(run);
  return run;
}

}  // namespace

std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after,
                                 std::size_t context) {
  const std::vector<std::string_view> a = split(before), b = split(after);
  std::vector<DiffLine> all;
  std::size_t i = 0, j = 0;
  auto until = [&](std::size_t end_a, std::size_t end_b) {
    for (; i < end_a; ++i) all.push_back({'-', std::string(a[i])});
    for (; j < end_b; ++j) all.push_back({'+', std::string(b[j])});
  };
  for (const auto& [at_a, at_b] : anchors(a, b)) {
    until(at_a, at_b);
    all.push_back({' ', std::string(a[i])});
    ++i;
    ++j;
  }
  until(a.size(), b.size());

  std::vector<bool> kept(all.size(), false);
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (all[at].mark == ' ') continue;
    const std::size_t first = at > context ? at - context : 0;
    for (std::size_t k = first; k <= at + context && k < all.size(); ++k) kept[k] = true;
  }
  std::vector<DiffLine> shown;
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (kept[at])
      shown.push_back(std::move(all[at]));
    else if (!shown.empty() && shown.back().mark != '@')
      shown.push_back({'@', "..."});
  }
  if (!shown.empty() && shown.back().mark == '@') shown.pop_back();
  return shown;
}

}  // namespace fx::cli
