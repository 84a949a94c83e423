// The generator itself: its programs are valid, the same for the same seed, and of every kind.

#include <gtest/gtest.h>

#include <span>
#include <string_view>

#include "fx/base/hash.h"
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

// Of the texts and inputs of some programs. It changes with the generator and with nothing else:
// not from run to run, from compiler to compiler, or with LibTorch.
std::uint64_t hash_of_programs() {
  Hasher hash;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = random_program(seed);
    hash.add(to_text(program.module->graph()));
    for (const Value& input : program.inputs) {
      const at::Tensor tensor = input.toTensor().contiguous();
      hash.add(
          std::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()));
    }
  }
  return hash.value();
}

TEST(RandomProgram, is_the_same_on_every_machine) {
  EXPECT_EQ(hash_of_programs(), 508568248159699268u);
}

TEST(RandomProgram, has_what_its_options_say) {
  ProgramOptions options;
  options.writing_programs_percent = options.drawing_programs_percent = options.module_percent = 0;
  options.special_percent = 0;
  options.dtypes = {c10::kFloat};
  options.sizes = {2, 3};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Program program = random_program(seed, options);
    EXPECT_FALSE(program.writes || program.draws || program.active_dropout);
    for (const Value& input : program.inputs) {
      EXPECT_EQ(input.toTensor().scalar_type(), at::kFloat);
      EXPECT_TRUE(input.toTensor().isfinite().all().item<bool>());
      for (const std::int64_t size : input.toTensor().sizes()) EXPECT_TRUE(size >= 1 && size <= 6);
    }
  }
  options.writing_programs_percent = 100;
  options.write_percent = 50;
  int writes = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) writes += random_program(seed, options).writes;
  EXPECT_GT(writes, 200);
}

TEST(RandomProgram, comes_from_any_bytes) {
  std::vector<std::uint8_t> bytes(400);
  Choices random(1);
  for (int i = 0; i < 500; ++i) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.bits());
    Choices choices(std::span<const std::uint8_t>(bytes).first(random.below(bytes.size() + 1)));
    const Program program = random_program(choices);
    ASSERT_NO_THROW(program.module->graph().lint({.strict = true}));
  }
}

}  // namespace
}  // namespace fx::fuzz
