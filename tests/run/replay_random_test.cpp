// Random programs replayed: every call gives, and leaves behind, what the Interpreter gives, bit by
// bit. FXCPP_RANDOM_GRAPHS and FXCPP_RANDOM_SEED choose how many and which.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "fx/interpret/interpreter.h"
#include "fx/run/replay.h"
#include "tests/random/call_sequence.h"

namespace fx::fuzz {
namespace {

constexpr int kCalls = 4;

// Other numbers of the same kind: what they are moves on by some places.
void move_on(Values& inputs, int places) {
  for (Value& input : inputs) {
    if (!input.isTensor() || input.toTensor().numel() < 2) continue;
    const at::Tensor tensor = input.toTensor();
    if (tensor.is_non_overlapping_and_dense()) tensor.copy_(tensor.clone().roll({places}));
  }
}

struct Totals {
  std::uint64_t programs = 0;
  std::uint64_t replays = 0;
  std::uint64_t left = 0;
  std::uint64_t lost = 0;
};

// Empty, or what is wrong.
std::string check_replays(const Program& program, Totals& totals) {
  const torch::NoGradGuard no_grad;
  const Program mine = copy_of(program);
  const Program reference = copy_of(program);
  const Replay replay(mine.module);
  const std::string text = compare_calls(
      program,
      {reference, [&](const Values& inputs) { return Interpreter(*reference.module).run(inputs); }},
      {mine, [&](const Values& inputs) { return replay.run(inputs); }},
      {.calls = kCalls,
       .prepare = [](int call, Values& inputs) { move_on(inputs, call); },
       .inference_mode_once = true});
  if (!text.empty()) return text;
  const Replay::Statistics statistics = replay.statistics();
  ++totals.programs;
  totals.replays += statistics.replays;
  totals.left += statistics.left;
  totals.lost += statistics.frames_lost;
  return "";
}

void expect_replays(const ProgramOptions& options, std::uint64_t share, double at_least) {
  Totals totals;
  expect_each(options, share,
              [&](const Program& program) { return check_replays(program, totals); });
  std::cout << totals.programs << " programs, " << totals.replays << " replays, " << totals.left
            << " went back to the plan, " << totals.lost << " frames lost\n";
  if (totals.programs < 100) return;
  EXPECT_GT(static_cast<double>(totals.replays),
            at_least * static_cast<double>(totals.programs) * (kCalls - 1));
  EXPECT_EQ(totals.lost, 0u);
}

TEST(ReplayRandom, programs_give_what_the_interpreter_gives) { expect_replays({}, 2000, 0.5); }

TEST(ReplayRandom, programs_full_of_views_and_writes) {
  ProgramOptions options;
  options.operations = 30;
  options.writing_programs_percent = 100;
  options.view_percent = 40;
  options.write_percent = 20;
  options.module_percent = 3;
  options.dtypes = {c10::kFloat, c10::kFloat, c10::kLong};
  options.sizes = {1, 2, 3, 4};
  expect_replays(options, 1000, 0.3);
}

TEST(ReplayRandom, large_programs) {
  ProgramOptions options;
  options.operations = 200;
  expect_replays(options, 40, 0.8);
}

}  // namespace
}  // namespace fx::fuzz
