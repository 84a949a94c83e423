#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/testing/file_check.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fx/base/error.h"
#include "fx/interpret/compare.h"
#include "fx/interpret/value_map.h"
#include "fx/passes/pass_manager.h"
#include "tests/passes/fx_file.h"

namespace fx {
namespace {

std::filesystem::path folder() { return std::filesystem::path(FXCPP_SOURCE_DIR) / "tests/text"; }

std::vector<std::string> file_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".fx") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

// What runs of the compiled module give and leave in their inputs. Two runs, so that what one
// leaves in the buffers for the next counts too.
Value outcome(const GraphModule& module, const Values& inputs) {
  const auto copy = module.deep_copy();
  copy->recompile();
  Values outcomes;
  for (int run = 0; run < 2; ++run) {
    torch::manual_seed(run);
    Values given;
    for (const Value& input : inputs) given.push_back(clone_tensors(input));
    outcomes.push_back(clone_tensors(copy->forward(given)));
    for (const Value& input : given) outcomes.push_back(clone_tensors(input));
  }
  return c10::ivalue::Tuple::create(std::move(outcomes));
}

class PassText : public testing::TestWithParam<std::string> {};

TEST_P(PassText, DoesWhatItSays) {
  std::ifstream in(folder() / (GetParam() + ".fx"));
  std::stringstream text;
  text << in.rdbuf();
  FxFile file = FxFile::read(text.str());
  GraphModule& module = *file.module;
  module.graph().lint({.strict = true});
  const std::string before = text_of(module);
  PassManagerOptions options;
  options.check_claims = true;
  if (!file.inputs.empty()) options.example_inputs = file.inputs;

  if (!file.error.empty()) {
    try {
      run_passes(module, file.pipeline, options);
      FAIL() << "wanted an error: " << file.error;
    } catch (const Error& error) {
      const std::string code(error_info(error.code()).name);
      EXPECT_EQ(code, file.error.substr(0, file.error.find(' ')));
      if (file.error.size() > code.size()) {
        EXPECT_THAT(error.what(), testing::HasSubstr(file.error.substr(code.size() + 1)));
      }
    }
    EXPECT_EQ(text_of(module), before);
    return;
  }

  const auto original = module.deep_copy();
  const PipelineResult result = run_passes(module, file.pipeline, options);
  const std::string after = text_of(module);
  EXPECT_EQ(result.changed, after != before) << after;
  if (file.unchanged) {
    EXPECT_EQ(after, before);
  }
  if (!file.checks.empty()) {
    try {
      torch::jit::testing::FileCheck().run(file.checks, after);
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\nbefore:\n" << before << "after:\n" << after;
    }
  }
  if (file.compare_results && !file.inputs.empty()) {
    EXPECT_EQ(compare_values(outcome(*original, file.inputs), outcome(module, file.inputs),
                             {.rtol = 1e-4, .atol = 1e-5}),
              "");
  }
  if (file.idempotent) {
    EXPECT_FALSE(run_passes(module, file.pipeline, options).changed);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, testing::ValuesIn(file_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fx
