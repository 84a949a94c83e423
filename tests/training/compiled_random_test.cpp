// Random programs with gradients, compiled: what fx::compile gives for inputs that require grad and
// what compiled forward and backward graphs give, against eager autograd. FXCPP_RANDOM_GRAPHS and
// FXCPP_RANDOM_SEED choose how many and which.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "fx/compile/training.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/value_tensors.h"
#include "tests/random/minimise.h"
#include "tests/random/run_settings.h"
#include "tests/training/joint_check.h"

namespace fx::fuzz {
namespace {

using test::Tensors;

// Relative, and 1/100 of it absolute: there are always layers of float.
constexpr double kRounding = 1e-3;

// How a program runs: on copies of its inputs, so that it may write to those that require grad.
test::Trained trained(const Program& program, std::function<Value(Values)> run) {
  return {program.module, [run = std::move(run)](Tensors& in) {
            Values values;
            for (const at::Tensor& input : in)
              values.emplace_back(input.requires_grad() ? input.clone() : input);
            Tensors out;
            for_each_tensor(run(std::move(values)), [&](const at::Tensor& tensor) {
              if (tensor.defined()) out.push_back(tensor);
            });
            return out;
          }};
}

Tensors inputs_of(const Program& program) {
  Tensors made;
  for (const Value& input : copy_of(program).inputs) {
    made.push_back(input.toTensor());
    if (made.back().is_floating_point()) made.back().requires_grad_();
  }
  return made;
}

bool all_tensors(const Program& program) {
  return std::all_of(program.inputs.begin(), program.inputs.end(),
                     [](const Value& input) { return input.isTensor(); });
}

// What joint() refuses and eager does not.
bool is_refused(const std::string& error) {
  for (const char* text :
       {"nothing in the result requires grad", "whose gradient would be lost", "depend on values",
        "[FX514]", "when it was captured, and now", "index 0 out of range for tensor of size"})
    if (error.find(text) != std::string::npos) return true;
  return false;
}

struct Counts {
  std::map<std::string, int> programs;
};

// Empty, or what is wrong.
std::string check_gradients(const Program& program, Counts& counts) {
  if (!all_tensors(program)) return "";
  const test::Trained eager = trained(program, [module = program.module](Values values) {
    return Interpreter(*module).run(std::move(values));
  });
  const Tensors inputs = inputs_of(program);
  test::Step wanted;
  try {
    wanted = test::eager_step(eager, inputs, 3);
  } catch (const std::exception&) {
    ++counts.programs["refused by eager"];
    return "";
  }
  const auto differs = [&](const char* how, std::function<Value(Values)> run) -> std::string {
    const test::Trained other = trained(program, std::move(run));
    for (int call = 0; call < 2; ++call)
      if (std::string text =
              test::difference(wanted, test::eager_step(other, inputs, 3), kRounding);
          !text.empty())
        return std::string(how) + ", call " + std::to_string(call) + ": " + text;
    return "";
  };
  try {
    const Compiled fast = compile(*program.module);
    const auto run = [&](Values values) { return fast.forward(std::move(values)); };
    if (std::string text = differs("compiled", run); !text.empty()) return text;
  } catch (const std::exception& error) {
    return std::string("compiled: throws ") + error.what();
  }
  try {
    const auto graphs = min_cut_rematerialization_partition(*test::joint_of(eager, inputs));
    const TrainingFunction step(graphs);
    const auto run = [&](Values values) { return step.forward(std::move(values)); };
    if (std::string text = differs("compiled graphs", run); !text.empty()) return text;
    ++counts.programs["equal"];
  } catch (const std::exception& error) {
    if (!is_refused(error.what())) return std::string("compiled graphs: throws ") + error.what();
    ++counts.programs["refused by joint()"];
  }
  return "";
}

TEST(CompiledRandom, programs_train_as_with_eager) {
  ProgramOptions options;
  options.operations = 10;
  options.dtypes = {c10::kDouble, c10::kDouble, c10::kLong, c10::kBool};
  options.sizes = {1, 2, 3, 4};
  options.special_percent = 0;
  options.drawing_programs_percent = 0;
  const RunSettings settings = run_settings(200);
  Counts counts;
  for (std::uint64_t seed = settings.first; seed < settings.end(); ++seed) {
    const Program program = random_program(seed, options);
    const Check check = [&](const Program& other) { return check_gradients(other, counts); };
    if (std::string text = check(program); !text.empty())
      ADD_FAILURE() << report(program, {"trained", text, check, "check_gradients"},
                              settings.rerun(seed));
  }
  for (const auto& [what, count] : counts.programs) std::cout << count << " " << what << "\n";
  EXPECT_GT(counts.programs["equal"] * 3, static_cast<int>(settings.end() - settings.first));
}

}  // namespace
}  // namespace fx::fuzz
