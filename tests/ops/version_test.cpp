#include "fx/ops/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/headeronly/version.h>

#include <string>

namespace fx {
namespace {

TEST(Version, S0_20_of_the_library_and_of_LibTorch) {
  EXPECT_THAT(version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  const std::string torch = std::to_string(TORCH_VERSION_MAJOR) + "." +
                            std::to_string(TORCH_VERSION_MINOR) + "." +
                            std::to_string(TORCH_VERSION_PATCH);
  EXPECT_EQ(compiled_torch_version(), torch);
  EXPECT_EQ(loaded_torch_version().substr(0, torch.size()), torch);
  EXPECT_THAT(compiler_version(), testing::MatchesRegex("(clang|g)\\+\\+ [0-9.]+"));
  EXPECT_EQ(version_line().find("fxcpp " + version() + " (LibTorch " + torch), 0u);
}

}  // namespace
}  // namespace fx
