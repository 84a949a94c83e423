// Random programs with gradients: joint graphs and their partitions against eager autograd.
// FXCPP_RANDOM_GRAPHS and FXCPP_RANDOM_SEED choose how many and which.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "fx/interpret/interpreter.h"
#include "fx/ops/value_tensors.h"
#include "tests/random/program.h"
#include "tests/random/run_settings.h"
#include "tests/training/joint_check.h"

namespace fx::fuzz {
namespace {

using test::Tensors;

// The program on copies of its inputs, so that it may write to those that require grad.
test::Trained trained(const Program& program) {
  return {program.module, [module = program.module](Tensors& in) {
            Values values;
            for (const at::Tensor& input : in)
              values.emplace_back(input.requires_grad() ? input.clone() : input);
            Tensors out;
            for_each_tensor(Interpreter(*module).run(std::move(values)),
                            [&](const at::Tensor& tensor) {
                              if (tensor.defined()) out.push_back(tensor);
                            });
            return out;
          }};
}

// What joint() refuses and eager does not, by the words of the error; empty for a fault.
std::string reason_in(const std::string& error) {
  // The last: LibTorch's index_add on meta tensors, when there is nothing to add.
  for (const char* text :
       {"nothing in the result requires grad", "whose gradient would be lost", "depend on values",
        "[FX514]", "when it was captured, and now", "index 0 out of range for tensor of size"})
    if (error.find(text) != std::string::npos) return text;
  return {};
}

bool throws(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

TEST(JointRandom, programs_train_as_with_eager) {
  constexpr double kRounding = 1e-9;
  ProgramOptions options;
  options.dtypes = {c10::kDouble, c10::kDouble, c10::kLong, c10::kBool};
  options.sizes = {1, 2, 3, 4};
  options.special_percent = 0;
  const RunSettings settings = run_settings(400);
  std::map<std::string, int> tally;
  for (std::uint64_t seed = settings.first; seed < settings.end(); ++seed) {
    const Program program = random_program(seed, options);
    const auto inputs = [&] {
      Tensors made;
      for (const Value& input : copy_of(program).inputs) {
        made.push_back(input.toTensor());
        if (made.back().is_floating_point()) made.back().requires_grad_();
      }
      return made;
    };
    if (!std::all_of(program.inputs.begin(), program.inputs.end(),
                     [](const Value& input) { return input.isTensor(); })) {
      ++tally["inputs that are no tensors"];
      continue;
    }
    const test::Trained step = trained(program);
    if (throws([&] { test::eager_step(step, inputs(), 1); })) {
      ++tally["refused by eager"];
      EXPECT_TRUE(throws([&] { test::joint_of(step, inputs()); })) << program.module->graph();
      continue;
    }
    try {
      if (test::check_training(step, inputs).empty()) {
        ++tally["equal"];
        continue;
      }
      ++tally["equal but for rounding"];
      const std::string fault = test::check_training(step, inputs, kRounding);
      if (!fault.empty())
        ADD_FAILURE() << "seed " << seed << ": " << fault << "\n" << program.module->graph();
    } catch (const std::exception& error) {
      const std::string refused = reason_in(error.what());
      if (refused.empty())
        ADD_FAILURE() << "seed " << seed << ": " << error.what() << "\n" << program.module->graph();
      ++tally[refused];
    }
  }
  for (const auto& [what, count] : tally) std::cout << count << " " << what << "\n";
  EXPECT_GT(tally["equal"] * 3, static_cast<int>(settings.end() - settings.first));
}

}  // namespace
}  // namespace fx::fuzz
