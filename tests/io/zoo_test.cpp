// Every program that scripts/export_zoo.py exported: the import has Python's inputs, state and
// outputs. The small ones are kept in tests/io/zoo; FXCPP_ZOO names a folder with the large ones
// too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fx/base/error.h"
#include "fx/io/import_export.h"
#include "fx/io/npy.h"
#include "tests/io/zoo.h"

namespace fx {
namespace {

using nlohmann::json;
using namespace io::testing;

class ZooTest : public testing::TestWithParam<ZooEntry> {};

TEST_P(ZooTest, LoadsAndRunsAsInPython) {
  at::NoGradGuard no_grad;
  const json& entry = GetParam().data;
  const std::string path = GetParam().path();
  if (!GetParam().runs()) {
    EXPECT_THROW(load(path), ImportError);
    return;
  }
  std::shared_ptr<GraphModule> module = load(path, {.verify_weights = true});

  std::vector<std::string> inputs;
  for (const Node* node : module->graph().placeholders()) inputs.push_back(node->target().str());
  EXPECT_EQ(inputs, entry.at("input_names").get<std::vector<std::string>>());

  std::vector<std::string> keys;
  for (const auto& [key, tensor] : module->state_dict()) keys.push_back(key);
  EXPECT_THAT(keys, testing::UnorderedElementsAreArray(
                        entry.at("state_dict").get<std::vector<std::string>>()));

  const double rtol = GetParam().rtol(), atol = GetParam().atol();
  for (const json& call : entry.at("calls")) {
    Values flat;
    for (const json& input : call.at("inputs")) flat.push_back(read_value(GetParam(), input));
    const Values leaves = call_flat(*module, flat);
    const json& outputs = call.at("outputs");
    ASSERT_EQ(leaves.size(), outputs.size());
    for (std::size_t i = 0; i < leaves.size(); ++i)
      expect_close(leaves[i], read_value(GetParam(), outputs[i]), rtol, atol,
                   "output " + std::to_string(i));
    for (std::size_t i = 0; i < flat.size(); ++i)
      if (call.at("inputs")[i].contains("after"))
        expect_close(
            flat[i],
            io::read_npy(GetParam().path(call.at("inputs")[i].at("after").get<std::string>())),
            rtol, atol, "input " + std::to_string(i) + " after the call");
  }
  for (const auto& [key, file] : entry.at("state_after").items())
    expect_close(module->find_tensor(key), io::read_npy(GetParam().path(file.get<std::string>())),
                 rtol, atol, "state " + key);
}

TEST_P(ZooTest, SummaryAgreesWithTheProgram) {
  const json& entry = GetParam().data;
  const std::string path = GetParam().path();
  const io::ArchiveSummary summary = io::inspect(path);
  ASSERT_EQ(summary.programs.size(), 1u);
  const io::ProgramSummary& program = summary.programs[0];
  EXPECT_EQ(program.name, "model");
  EXPECT_EQ(program.num_parameters + program.num_buffers, entry.at("state_dict").size());
  std::vector<std::string> names;
  for (const auto& input : program.inputs) names.push_back(input.name);
  EXPECT_EQ(names, entry.at("input_names").get<std::vector<std::string>>());
  EXPECT_TRUE(program.warnings.empty());
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooTest, testing::ValuesIn(read_manifests()), [](const auto& info) {
  return info.param.data.at("name").template get<std::string>() + "_torch_" + info.param.version;
});

}  // namespace
}  // namespace fx
