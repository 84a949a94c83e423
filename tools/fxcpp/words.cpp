#include "tools/fxcpp/words.h"

#include "fx/base/text.h"

namespace fx::cli {

std::string any_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i) out += i + 1 == names.size() ? " or " : ", ";
    out += "'" + names[i] + "'";
  }
  return out;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& names) {
  const std::string best = nearest(text, names);
  return best.empty() ? "" : " (did you mean '" + best + "'?)";
}

}  // namespace fx::cli
