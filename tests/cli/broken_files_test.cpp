// Files that are cut, changed or something else: a message, a status, never a crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Runs a verb on the file and expects a refusal with `status`.
void expect_refused(const std::string& path, int status, const std::string& message) {
  for (const char* verb : {"info", "graph", "run", "check"}) {
    SCOPED_TRACE(verb);
    const ToolResult result = run_tool({verb, path});
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

TEST(BrokenFiles, EmptyFile) {
  const TemporaryFolder folder;
  expect_refused(folder.write("m.pt2", ""), 4, "empty");
}

TEST(BrokenFiles, CutAtEveryEighth) {
  const std::string whole = read_file(digits());
  for (int i = 1; i < 8; ++i) {
    SCOPED_TRACE(i);
    const TemporaryFolder folder;
    const std::string path =
        folder.write("m.pt2", whole.substr(0, whole.size() * static_cast<std::size_t>(i) / 8));
    const ToolResult result = run_tool({"run", path});
    EXPECT_EQ(result.status, 4) << result.err;
    EXPECT_THAT(result.err, HasSubstr("To mend it: "));
  }
}

TEST(BrokenFiles, OneByteOfTheGraphChanged) {
  std::string whole = read_file(digits());
  const std::size_t at = whole.find("torch.ops.aten.relu");
  ASSERT_NE(at, std::string::npos);
  whole[at] ^= 1;
  const TemporaryFolder folder;
  expect_refused(folder.write("m.pt2", whole), 4, "checksum");
}

TEST(BrokenFiles, OneByteOfAWeightChangedIsFoundWhenAskedFor) {
  std::string whole = read_file(digits());
  const std::size_t config = whole.find("data/weights/weight_0");
  ASSERT_NE(config, std::string::npos);
  whole[config + 400] ^= 1;
  const TemporaryFolder folder;
  const std::string path = folder.write("m.pt2", whole);
  const ToolResult result = run_tool({"run", path, "--verify-weights"});
  EXPECT_EQ(result.status, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("checksum"));
}

TEST(BrokenFiles, OtherFormatsAreNamed) {
  const TemporaryFolder folder;
  expect_refused(folder.write("a.pt2", std::string("\x80\x02}q\0.", 6)), 4, "ickle");
  expect_refused(folder.write("b.pt2", "just a few words of text"), 4, "b.pt2");
  expect_refused(folder.write("c.pt2", std::string(64, '\0')), 4, "c.pt2");
}

}  // namespace
}  // namespace fx::cli_test
