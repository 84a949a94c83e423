// Random programs: passes keep what they compute and what they leave behind, and settle.

#include "fx/interpret/value_map.h"
#include "fx/passes/pass_manager.h"
#include "tests/passes/modules.h"
#include "tests/passes/random_program.h"

namespace fx {
namespace {

// Results, inputs and buffers of two runs; inputs that share memory if `tied`. The caller writes
// into the results of the first run before the second.
Value outcome(const GraphModule& module, bool tied) {
  const auto copy = module.deep_copy();
  const at::Tensor state = copy->find_tensor("state");
  const at::Tensor x = torch::linspace(-3, 3, 16).reshape({4, 4}).clone();
  const at::Tensor y = tied ? x.t() : torch::linspace(1, -1, 16).reshape({4, 4}).clone();
  Values outcomes;
  for (int run = 0; run < 2; ++run) {
    const Value result = copy->forward({x, y});
    outcomes.push_back(clone_tensors(result));
    outcomes.push_back(x.clone());
    outcomes.push_back(y.clone());
    for (const Value& value : elements(result)) {
      torch::NoGradGuard no_grad;
      if (!value.toTensor().requires_grad()) value.toTensor().add_(0.25);
      outcomes.push_back(clone_tensors(result));
    }
  }
  outcomes.push_back(state.clone());
  return c10::ivalue::Tuple::create(std::move(outcomes));
}

class RandomPrograms : public testing::TestWithParam<const char*> {};

TEST_P(RandomPrograms, KeepTheirMeaning) {
  torch::NoGradGuard no_grad;
  std::int64_t rewrites = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto module = random_program(seed);
    const auto original = random_program(seed);
    PassManagerOptions options{.check_claims = true};
    options.example_inputs = Values{torch::ones({4, 4}), torch::ones({4, 4})};
    for (const PassStatistics& pass : run_passes(*module, GetParam(), options).passes)
      rewrites += pass.rewrites;
    for (const bool tied : {false, true})
      ASSERT_VALUES_EQ(outcome(*original, tied), outcome(*module, tied))
          << "seed " << seed << (tied ? ", inputs that share memory" : "") << "\n"
          << to_text(original->graph()) << "\nafter " << GetParam() << ":\n"
          << to_text(module->graph());
    ASSERT_FALSE(run_passes(*module, GetParam(), options).changed) << "seed " << seed << "\n"
                                                                   << to_text(module->graph());
  }
  EXPECT_GT(rewrites, 50);
}

INSTANTIATE_TEST_SUITE_P(Passes, RandomPrograms,
                         testing::Values("dce", "cse", "constant_fold", "remove_dropout",
                                         "shape_prop,remove_noops(static_shapes)",
                                         "remove_dropout,remove_noops,constant_fold,cse,dce"));

}  // namespace
}  // namespace fx
