// Inputs that fuzzers found, those that once failed and those that reach much of the code: nothing
// is wrong with any of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

using Fuzzer = int(const std::uint8_t* data, std::size_t size);
extern "C" {
Fuzzer fuzz_export_program, fuzz_fx_text, fuzz_memory_plan, fuzz_npy, fuzz_pt2_program,
    fuzz_random_program, fuzz_safetensors, fuzz_saved_module, fuzz_symbolic_expr, fuzz_treespec,
    fuzz_zip;
}

namespace {

struct Target {
  const char* name;
  Fuzzer* run;

  friend std::ostream& operator<<(std::ostream& out, const Target& target) {
    return out << target.name;
  }
};

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, holds_nothing_that_fails) {
  const auto folder = std::filesystem::path(FXCPP_SOURCE_DIR) / "fuzz" / "corpus" / GetParam().name;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::ranges::sort(files);
  EXPECT_FALSE(files.empty());
  for (const auto& path : files) {
    std::cout << path.filename().string() << std::endl;  // a fuzzer that fails ends the process
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(GetParam().run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
  }
}

constexpr Target kTargets[] = {{"export_program", fuzz_export_program},
                               {"fx_text", fuzz_fx_text},
                               {"memory_plan", fuzz_memory_plan},
                               {"npy", fuzz_npy},
                               {"pt2_program", fuzz_pt2_program},
                               {"random_program", fuzz_random_program},
                               {"safetensors", fuzz_safetensors},
                               {"saved_module", fuzz_saved_module},
                               {"symbolic_expr", fuzz_symbolic_expr},
                               {"treespec", fuzz_treespec},
                               {"zip", fuzz_zip}};

INSTANTIATE_TEST_SUITE_P(Fuzzers, Corpus, testing::ValuesIn(kTargets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
