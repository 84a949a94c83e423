// What a program says of its values is a claim: whatever it says, loading fails, a call fails, or
// the outputs are what they are. And what loading takes is bounded by the file.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "fx/base/error.h"
#include "fx/io/import_export.h"
#include "fx/io/save_pt2.h"
#include "tests/io/archive_builder.h"
#include "tests/io/peak_memory.h"
#include "tests/io/zoo.h"

namespace fx {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using namespace io::testing;

const ZooEntry& entry_of(const std::string& name) {
  static const std::vector<ZooEntry> entries = read_manifests();
  for (const ZooEntry& entry : entries)
    if (entry.name() == name && entry.version == "2_15") return entry;
  throw std::out_of_range(name);
}

Values inputs_of(const ZooEntry& entry) {
  Values inputs;
  for (const json& input : entry.data.at("calls")[0].at("inputs"))
    inputs.push_back(read_value(entry, input));
  return inputs;
}

/// Ways to lie about a tensor.
std::vector<std::pair<std::string, std::function<void(ordered_json&)>>> lies() {
  const auto size = [](const char* key, std::int64_t value) {
    return [key, value](ordered_json& meta) {
      for (ordered_json& item : meta[key]) item = {{"as_int", value}};
    };
  };
  return {
      {"small sizes", size("sizes", 1)},
      {"large sizes", size("sizes", 4096)},
      {"no elements", size("sizes", 0)},
      {"large strides", size("strides", std::int64_t{1} << 40)},
      {"zero strides", size("strides", 0)},
      {"more dimensions",
       [](ordered_json& meta) {
         meta["sizes"].push_back({{"as_int", 7}});
         meta["strides"].push_back({{"as_int", 1}});
       }},
      {"another dtype", [](ordered_json& meta) { meta["dtype"] = meta["dtype"] == 7 ? 12 : 7; }},
      {"an offset", [](ordered_json& meta) { meta["storage_offset"] = {{"as_int", 1 << 20}}; }},
  };
}

class LyingMetadata : public testing::TestWithParam<std::string> {};

TEST_P(LyingMetadata, IsAnErrorOrHasNoEffect) {
  const at::NoGradGuard no_grad;
  const ZooEntry& entry = entry_of(GetParam());
  const Values expected = call_flat(*load(entry.path()), inputs_of(entry));
  const TempDir folder;
  std::vector<std::string> names;
  ProgramFile(GetParam()).edit_model([&](ordered_json& model) {
    for (const auto& item : model["graph_module"]["graph"]["tensor_values"].items())
      names.push_back(item.key());
  });
  std::size_t ran = 0, refused = 0;
  for (const std::string& name : names)
    for (const auto& [what, lie] : lies()) {
      SCOPED_TRACE(name + ": " + what);
      ProgramFile file(GetParam());
      file.edit_model([&, &lie = lie](ordered_json& model) {
        lie(model["graph_module"]["graph"]["tensor_values"][name]);
      });
      const std::string path = file.write(folder);
      try {
        const auto module = load(path);
        const Values inputs = inputs_of(entry), again = inputs_of(entry);
        const Values found = call_flat(*module, inputs);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i)
          expect_close(found[i], expected[i], 0, 0, "output " + std::to_string(i));
        std::size_t position = 0;
        const Values pair = elements(unflatten(*module->in_spec(), again, position));
        KwValues kwargs;
        for (const auto& item : pair[1].toGenericDict())
          kwargs.push_back({Symbol(item.key().toStringRef()), item.value()});
        Values leaves;
        flatten_value(module->forward(elements(pair[0]), kwargs), leaves);
        for (std::size_t i = 0; i < leaves.size(); ++i)
          expect_close(leaves[i], expected[i], entry.rtol(), entry.atol(),
                       "planned output " + std::to_string(i));
        // Written again, the truth is there, or it is refused.
        save_pt2(*module, folder.path("again.pt2"));
        load(folder.path("again.pt2"));
        ++ran;
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GT(ran, 0u);
  EXPECT_GT(refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(Zoo, LyingMetadata,
                         testing::Values("dynamic_batch", "buffers", "multiple_outputs", "views",
                                         "symbolic_sizes"),
                         [](const auto& info) { return info.param; });

TEST(MemoryBound, IsTheFileAndAKilobyteANode) {
  constexpr std::size_t kNodes = 20'000;
  const TempDir folder;
  ProgramFile file("relu");
  file.edit_model([](ordered_json& model) {
    ordered_json& graph = model["graph_module"]["graph"];
    const ordered_json node = graph["nodes"][0], value = graph["tensor_values"]["relu"];
    graph["nodes"] = ordered_json::array();
    std::string before = node["inputs"][0]["arg"]["as_tensor"]["name"];
    for (std::size_t i = 0; i < kNodes; ++i) {
      const std::string name = "relu_" + std::to_string(i);
      ordered_json next = node;
      next["inputs"][0]["arg"]["as_tensor"]["name"] = before;
      next["outputs"][0]["as_tensor"]["name"] = name;
      next["name"] = name;
      graph["nodes"].push_back(next);
      graph["tensor_values"][name] = value;
      before = name;
    }
    graph["tensor_values"].erase("relu");
    graph["outputs"][0]["as_tensor"]["name"] = before;
    model["graph_module"]["signature"]["output_specs"][0]["user_output"]["arg"]["as_tensor"]
         ["name"] = before;
  });
  const std::string path = file.write(folder);
  const std::uint64_t size = read_file(path).size();
  const PeakMemory memory;
  const auto module = load(path);
  EXPECT_LT(memory.growth(), size + (std::uint64_t{64} << 20) + kNodes * 1024);
  EXPECT_GT(module->graph().size(), kNodes);
}

}  // namespace
}  // namespace fx
