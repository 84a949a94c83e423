// The generator itself: its programs are valid, the same for the same seed, and of every kind.

#include <gtest/gtest.h>

#include <chrono>

#include "fx/graph/text.h"
#include "tests/random/program.h"

namespace fx::fuzz {
namespace {

TEST(RandomProgram, is_valid_and_means_what_eager_calls_give) {
  std::map<std::string, int> rules;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Program program = random_program(seed);
    const std::string text = to_text(program.module->graph());
    ASSERT_NO_THROW(program.module->graph().lint({.strict = true})) << text;
    for (const auto& [rule, count] : program.rules) rules[rule] += count;
    const HowToRun how{.random = program.draws};
    ASSERT_EQ(
        difference(*program.eager, run(*program.module, program.inputs, how), Agreement::kExact),
        "")
        << "seed " << seed << "\n"
        << text;
  }
  for (const std::string& rule : rule_names()) EXPECT_GE(rules[rule], 10) << rule;
}

}  // namespace
}  // namespace fx::fuzz
