// Every item of the list of malformed archives gives a clear error, or loads where the list says
// so; none crashes, takes more memory than the file and 64 MB, or touches another file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <set>

#include "fx/io/import_export.h"
#include "tests/io/malformed.h"
#include "tests/io/peak_memory.h"
#include "tests/io/zoo.h"

namespace fx::io {
namespace {

using testing::MalformedCase;
using Wanted = MalformedCase::Wanted;

const testing::ZooEntry& entry_of(const std::string& name) {
  static const std::vector<testing::ZooEntry> entries = testing::read_manifests();
  for (const testing::ZooEntry& entry : entries)
    if (entry.name() == name && entry.version == "2_15") return entry;
  throw std::out_of_range(name);
}

Values called(GraphModule& module, const std::string& zoo_name) {
  const testing::ZooEntry& entry = entry_of(zoo_name);
  Values inputs;
  for (const auto& input : entry.data.at("calls")[0].at("inputs"))
    inputs.push_back(testing::read_value(entry, input));
  return testing::call_flat(module, inputs);
}

void expect_same_results(GraphModule& module, const std::string& zoo_name) {
  const Values found = called(module, zoo_name);
  const Values wanted = called(*load(entry_of(zoo_name).path()), zoo_name);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    testing::expect_close(found[i], wanted[i], 0, 0, "output " + std::to_string(i));
}

/// Of this process: other programs on the machine do not count.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Malformed : public ::testing::TestWithParam<MalformedCase> {};

TEST_P(Malformed, IsRefusedOrLoadsAsTheListSays) {
  const at::NoGradGuard no_grad;
  const MalformedCase& item = GetParam();
  const testing::TempDir folder;
  testing::ProgramFile file(item.zoo_name);
  const std::string bytes = item.make(file);
  const std::string path = folder.write("file.pt2", bytes);
  const testing::PeakMemory memory;
  const double start = processor_seconds();
  std::shared_ptr<GraphModule> module;
  LoadOptions options;
  options.verify_weights = item.verify_weights;
  try {
    module = load(path, options);
  } catch (const ImportError& error) {
    const std::string what = error.what();
    EXPECT_THAT(what, ::testing::HasSubstr("file.pt2"));
    if (item.wanted != Wanted::kBothAreFine) {
      EXPECT_EQ(item.wanted, Wanted::kRefused) << what;
      EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(item.code)) << what;
      EXPECT_THAT(what, ::testing::HasSubstr(item.part));
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
  }
  const double took = processor_seconds() - start;
  if (testing::PeakMemory::kIsExact) {
    EXPECT_LT(took, item.seconds);
    EXPECT_LT(memory.growth(), bytes.size() + (std::uint64_t{64} << 20) + item.nodes * 1024);
  } else {
    EXPECT_LT(took, 20 * item.seconds) << "sanitizers";
  }
  if (module) {
    EXPECT_NE(item.wanted, Wanted::kRefused) << "it loads";
    if (item.wanted == Wanted::kRunFails) {
      try {
        called(*module, item.zoo_name);
        ADD_FAILURE() << "it runs";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr(item.part));
        EXPECT_THAT(error.what(), ::testing::HasSubstr("While executing"));
      }
    } else {
      expect_same_results(*module, item.zoo_name);
    }
  }
  std::set<std::string> files;
  for (const auto& found : std::filesystem::directory_iterator(folder.path()))
    files.insert(found.path().filename().string());
  EXPECT_EQ(files, std::set<std::string>{"file.pt2"});
  EXPECT_FALSE(std::filesystem::exists("executed"));
  EXPECT_FALSE(std::filesystem::exists("made"));
}

std::string name_of(const ::testing::TestParamInfo<MalformedCase>& info) { return info.param.id; }

INSTANTIATE_TEST_SUITE_P(Archives, Malformed, ::testing::ValuesIn(testing::malformed_archives()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(ArchivesMore, Malformed,
                         ::testing::ValuesIn(testing::malformed_archives_more()), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, Malformed, ::testing::ValuesIn(testing::malformed_programs()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(ProgramsMore, Malformed,
                         ::testing::ValuesIn(testing::malformed_programs_more()), name_of);

}  // namespace
}  // namespace fx::io
