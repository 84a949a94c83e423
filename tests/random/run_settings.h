#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace fx::fuzz {

/// Which seeds a test runs: `count` of them from `first`.
struct RunSettings {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  std::uint64_t end() const { return first + count; }
  /// How to run one seed again.
  std::string rerun(std::uint64_t seed) const {
    return "seed " + std::to_string(seed) +
           "; again with FXCPP_RANDOM_SEED=" + std::to_string(seed) + " FXCPP_RANDOM_GRAPHS=1";
  }
};

/// From the environment: FXCPP_RANDOM_SEED, and FXCPP_RANDOM_GRAPHS, which scales the share of
/// `share` of every 3000 that a test has.
inline RunSettings run_settings(std::uint64_t share = 3000) {
  auto number_of = [](const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  const std::uint64_t graphs = number_of("FXCPP_RANDOM_GRAPHS", 3000);
  return {.first = number_of("FXCPP_RANDOM_SEED", 0), .count = (graphs * share + 2999) / 3000};
}

}  // namespace fx::fuzz
