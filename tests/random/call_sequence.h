#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <optional>
#include <string>

#include "fx/graph/text.h"
#include "tests/random/oracles.h"
#include "tests/random/program.h"
#include "tests/random/run_settings.h"

/// Checks of random programs that call each several times.
namespace fx::fuzz {

/// Checks `share` of every 3000 programs, up to the fifth that fails; returns how many there were.
inline std::uint64_t expect_each(const ProgramOptions& options, std::uint64_t share,
                                 const Check& check) {
  const RunSettings settings = run_settings(share);
  int wrong = 0;
  for (std::uint64_t seed = settings.first; seed < settings.end() && wrong < 5; ++seed) {
    const Program program = random_program(seed, options);
    std::string text;
    try {
      text = check(program);
    } catch (const std::exception& e) {
      text = std::string("throws ") + e.what();
    }
    if (text.empty()) continue;
    ++wrong;
    ADD_FAILURE() << settings.rerun(seed) << ": " << text << "\n"
                  << to_text(program.module->graph());
  }
  return settings.count;
}

/// One way of running a program: a copy of it, whose module is called.
struct RunningProgram {
  const Program& program;
  std::function<Value(const Values& inputs)> run;
};

struct SequenceOptions {
  int calls = 4;
  std::size_t first_compared = 0;  ///< results of earlier calls may differ
  bool leftovers = true;           ///< inputs and attributes are compared, too
  /// Before each call, its inputs.
  std::function<void(int call, Values& inputs)> prepare = {};
  bool inference_mode_once = false;  ///< one call in the middle, unless the program writes
};

/// Calls both on the same inputs, one call after the other. Empty, or what is wrong: a result, also
/// of an earlier call, what is left in an input, or an attribute.
inline std::string compare_calls(const Program& program, const RunningProgram& wanted,
                                 const RunningProgram& found, const SequenceOptions& options = {}) {
  const auto differ = [](const Value& a, const Value& b, const std::string& what) {
    const std::string text = difference(a, b, Agreement::kExact);
    return text.empty() ? text : what + ": " + text;
  };
  Values results;
  Values kept;
  for (int call = 0; call < options.calls; ++call) {
    const std::string behind = " after call " + std::to_string(call);
    Program mine = copy_of(program);
    Program other = copy_of(program);
    if (options.prepare) {
      options.prepare(call, mine.inputs);
      options.prepare(call, other.inputs);
    }
    {
      std::optional<c10::InferenceMode> inference;
      if (options.inference_mode_once && call == 2 && !program.writes) inference.emplace();
      torch::manual_seed(call);
      results.push_back(wanted.run(other.inputs));
      torch::manual_seed(call);
      kept.push_back(found.run(mine.inputs));
    }
    for (std::size_t i = 0; options.leftovers && i < mine.inputs.size(); ++i)
      if (std::string text =
              differ(other.inputs[i], mine.inputs[i], "input " + std::to_string(i) + behind);
          !text.empty())
        return text;
    for (std::size_t i = options.first_compared; i < kept.size(); ++i)
      if (std::string text =
              differ(results[i], kept[i], "the result of call " + std::to_string(i) + behind);
          !text.empty())
        return text;
    // Once they have written, the attributes of both are only alike where all else is.
    if (!options.leftovers && program.writes) break;
  }
  if (!options.leftovers) return {};
  const auto state = state_of(*wanted.program.module);
  const auto after = state_of(*found.program.module);
  for (std::size_t i = 0; i < state.size(); ++i)
    if (!same_bits(state[i].second, after[i].second)) return "another " + state[i].first;
  return {};
}

}  // namespace fx::fuzz
