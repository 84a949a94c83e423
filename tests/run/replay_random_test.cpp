// Random programs replayed: every call gives, and leaves behind, what the Interpreter gives, bit by
// bit. FXCPP_RANDOM_GRAPHS and FXCPP_RANDOM_SEED choose how many and which.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>
#include <optional>

#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/run/replay.h"
#include "tests/random/program.h"
#include "tests/random/run_settings.h"

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
  Values kept;
  Values wanted;
  for (int call = 0; call < kCalls; ++call) {
    Program inputs = copy_of(program);
    Program same_inputs = copy_of(program);
    move_on(inputs.inputs, call);
    move_on(same_inputs.inputs, call);
    {
      // Modes may change from call to call.
      std::optional<c10::InferenceMode> inference;
      if (call == 2 && !program.writes) inference.emplace();
      torch::manual_seed(call);
      wanted.push_back(Interpreter(*reference.module).run(same_inputs.inputs));
      torch::manual_seed(call);
      kept.push_back(replay.run(inputs.inputs));
    }
    for (std::size_t i = 0; i < inputs.inputs.size(); ++i)
      if (std::string text = difference(same_inputs.inputs[i], inputs.inputs[i], Agreement::kExact);
          !text.empty())
        return "call " + std::to_string(call) + " leaves another input " + std::to_string(i) +
               ": " + text;
    // Earlier results as well: they must not have changed.
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (std::string text = difference(wanted[i], kept[i], Agreement::kExact); !text.empty())
        return "the result of call " + std::to_string(i) + " after call " + std::to_string(call) +
               ": " + text;
  }
  const auto state = state_of(*reference.module);
  const auto found = state_of(*mine.module);
  for (std::size_t i = 0; i < state.size(); ++i)
    if (!same_bits(state[i].second, found[i].second)) return "another " + state[i].first;
  const Replay::Statistics statistics = replay.statistics();
  ++totals.programs;
  totals.replays += statistics.replays;
  totals.left += statistics.left;
  totals.lost += statistics.frames_lost;
  return "";
}

void expect_replays(const ProgramOptions& options, std::uint64_t share, double at_least) {
  const RunSettings settings = run_settings(share);
  Totals totals;
  int wrong = 0;
  for (std::uint64_t seed = settings.first; seed < settings.end() && wrong < 5; ++seed) {
    const Program program = random_program(seed, options);
    std::string text;
    try {
      text = check_replays(program, totals);
    } catch (const std::exception& e) {
      text = std::string("throws ") + e.what();
    }
    if (text.empty()) continue;
    ++wrong;
    ADD_FAILURE() << settings.rerun(seed) << ": " << text << "\n"
                  << to_text(program.module->graph());
  }
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
