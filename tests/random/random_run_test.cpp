// Random programs through everything that is there: see docs/design/fuzzing.md.

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "tests/random/minimise.h"
#include "tests/random/run_settings.h"

namespace fx::fuzz {
namespace {

// Checks `share` of every 3000 programs.
void expect_all_hold(const ProgramOptions& options, std::uint64_t share, Tally& tally) {
  const RunSettings settings = run_settings(share);
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t seed = settings.first; seed < settings.end(); ++seed) {
    Choices choices(seed);
    const Program program = random_program(choices, options);
    const auto failure = check_all(program, choices, tally);
    if (failure) FAIL() << report(program, *failure, settings.rerun(seed));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << tally.programs << " programs with " << tally.nodes << " nodes in " << seconds
            << " s\n";
}

TEST(RandomRun, programs_keep_their_meaning_through_texts_copies_files_and_passes) {
  Tally tally;
  expect_all_hold({}, 3000, tally);
  for (const PassInfo& pass : all_passes()) {
    const std::string name(pass.name);
    std::cout << name << ": rewrote " << tally.hits[name] << " programs, " << tally.rewrites[name]
              << " places\n";
    if (tally.programs < 1000) continue;
    EXPECT_GE(tally.hits[name] * 100, tally.programs) << name << " has too little to do";
  }
}

TEST(RandomRun, programs_full_of_writes_keep_their_meaning) {
  ProgramOptions options;
  options.operations = 14;
  options.writing_programs_percent = 100;
  options.view_percent = 40;
  options.write_percent = 30;
  options.dtypes = {c10::kFloat, c10::kFloat, c10::kLong};
  options.sizes = {1, 2, 3, 4};
  Tally tally;
  expect_all_hold(options, 600, tally);
}

TEST(RandomRun, large_programs_keep_their_meaning) {
  ProgramOptions options;
  options.operations = 250;
  Tally tally;
  expect_all_hold(options, 30, tally);
}

}  // namespace
}  // namespace fx::fuzz
