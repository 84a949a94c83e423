// Every program that scripts/export_zoo.py exported: the import has Python's inputs, state and
// outputs. The small ones are kept in tests/io/zoo; FXCPP_ZOO names a folder with the large ones
// too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fx/base/error.h"
#include "fx/interpret/interpreter.h"
#include "fx/io/import_export.h"
#include "fx/io/npy.h"

namespace fx {
namespace {

using nlohmann::json;

/// One entry of a manifest.
struct ZooEntry {
  std::string folder;
  std::string version;  ///< of the torch that exported it, "2_9"
  json data;

  std::string path(const std::string& file) const { return folder + "/" + file; }
  std::string path() const { return path(data.at("file").get<std::string>()); }
};
void PrintTo(const ZooEntry& entry, std::ostream* out) { *out << entry.path(); }

std::vector<ZooEntry> read_manifests() {
  std::vector<std::string> folders;
  if (const char* folder = std::getenv("FXCPP_ZOO"); folder != nullptr)
    folders = {folder};
  else
    for (const char* name : {"zoo", "versions/2.9", "versions/2.12"})
      folders.push_back(std::string(FXCPP_SOURCE_DIR "/tests/io/") + name);
  std::vector<ZooEntry> entries;
  for (const std::string& folder : folders) {
    std::ifstream in(folder + "/manifest.json");
    const json manifest = json::parse(in);
    std::string version = manifest.at("torch");
    version = version.substr(0, version.rfind('.'));
    std::replace(version.begin(), version.end(), '.', '_');
    for (const json& model : manifest.at("models")) entries.push_back({folder, version, model});
  }
  return entries;
}

Value read_value(const ZooEntry& entry, const json& item) {
  if (item.contains("file")) return io::read_npy(entry.path(item.at("file").get<std::string>()));
  const json& value = item.at("value");
  if (value.is_null()) return {};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

void expect_close(const Value& actual, const Value& expected, double rtol, double atol,
                  const std::string& what) {
  ASSERT_EQ(actual.isTensor(), expected.isTensor()) << what;
  if (!expected.isTensor()) {
    EXPECT_EQ(to_string(actual), to_string(expected)) << what;
    return;
  }
  const at::Tensor& a = actual.toTensor();
  const at::Tensor& b = expected.toTensor();
  ASSERT_EQ(a.scalar_type(), b.scalar_type()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_TRUE(at::allclose(a, b, rtol, atol, /*equal_nan=*/true))
      << what << ": largest difference "
      << (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// The leaves of nested tuples, lists and dicts, in order.
void flatten_value(const Value& value, Values& leaves) {
  if (is_sequence(value)) {
    for (const Value& item : elements(value)) flatten_value(item, leaves);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) flatten_value(item.value(), leaves);
  } else {
    leaves.push_back(value);
  }
}

class ZooTest : public testing::TestWithParam<ZooEntry> {};

TEST_P(ZooTest, LoadsAndRunsAsInPython) {
  at::NoGradGuard no_grad;
  const json& entry = GetParam().data;
  const std::string path = GetParam().path();
  if (entry.at("expect") == "unsupported") {
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

  const double rtol = entry.at("rtol"), atol = entry.at("atol");
  for (const json& call : entry.at("calls")) {
    Values flat;
    for (const json& input : call.at("inputs")) flat.push_back(read_value(GetParam(), input));
    std::size_t position = 0;
    const Value structured = unflatten(*module->in_spec(), flat, position);
    const Values pair = elements(structured);
    RunOptions options;
    for (const auto& item : pair[1].toGenericDict())
      options.kwargs.push_back({Symbol(item.key().toStringRef()), item.value()});
    Interpreter interpreter(*module);
    const Value result = interpreter.run(elements(pair[0]), options);

    Values leaves;
    flatten_value(result, leaves);
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
