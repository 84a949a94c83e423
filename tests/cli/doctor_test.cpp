// `fxcpp doctor`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using testing::HasSubstr;

/// The check of that subject, or null.
Json find_check(const Json& json, const std::string& subject) {
  for (const Json& check : json.at("checks"))
    if (check.at("subject") == subject) return check;
  return nullptr;
}

TEST(Doctor, S0_20_LooksAtVersionsMachineAndLibraries) {
  const ToolResult result = run_tool({"doctor", "--format", "json"});
  EXPECT_EQ(result.status, 0);
  const Json json = result.json();
  EXPECT_EQ(json.at("failures"), 0);
  for (const char* subject : {"fxcpp", "LibTorch", "LibTorch at", "CPU", "vector code", "threads",
                              "libraries", "OpenMP", "self test"}) {
    const Json check = find_check(json, subject);
    ASSERT_FALSE(check.is_null()) << subject;
    EXPECT_EQ(check.at("verdict"), "OK") << check.dump();
  }
  EXPECT_THAT(find_check(json, "LibTorch at").at("found").get<std::string>(),
              HasSubstr("libtorch_cpu.so"));
}

TEST(Doctor, WarnsWhenVectorCodeIsSwitchedOff) {
  const ToolResult result =
      run_tool({"doctor", "--format", "json"}, {{"ATEN_CPU_CAPABILITY", "default"}});
  EXPECT_EQ(find_check(result.json(), "vector code").at("verdict"), "WARN");
}

TEST(Doctor, ShowsOneLineACheck) {
  EXPECT_THAT(run_tool({"doctor"}).out, HasSubstr("OK  LibTorch"));
}

}  // namespace
}  // namespace fx::cli_test
