#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Words of messages.
namespace fx::cli {

/// "'a', 'b' or 'c'".
std::string any_of(const std::vector<std::string>& names);

/// " (did you mean 'x'?)" for the nearest of `names`, or nothing.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& names);

}  // namespace fx::cli
