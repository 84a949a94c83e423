// Random programs through everything that is there: see docs/design/fuzzing.md.

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "tests/random/minimise.h"
#include "tests/random/run_settings.h"

namespace fx::fuzz {
namespace {

TEST(RandomRun, programs_keep_their_meaning_through_texts_copies_files_and_passes) {
  const RunSettings settings = run_settings();
  Tally tally;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t seed = settings.first; seed < settings.end(); ++seed) {
    Choices choices(seed);
    const Program program = random_program(choices);
    const auto failure = check_all(program, choices, tally);
    if (failure) FAIL() << report(program, *failure, settings.rerun(seed));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << tally.programs << " programs with " << tally.nodes << " nodes in " << seconds
            << " s\n";
  for (const PassInfo& pass : all_passes()) {
    const std::string name(pass.name);
    std::cout << name << ": rewrote " << tally.hits[name] << " programs, " << tally.rewrites[name]
              << " places\n";
    if (settings.count < 1000) continue;
    EXPECT_GE(tally.hits[name] * 100, tally.programs) << name << " has too little to do";
  }
}

}  // namespace
}  // namespace fx::fuzz
