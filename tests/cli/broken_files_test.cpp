// Files that are cut, changed or something else: a message, a status, never a crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tool.h"
#include "tests/io/archive_builder.h"

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
    EXPECT_THAT(result.err, HasSubstr("To mend it: "));
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

TEST(BrokenFiles, AnAOTInductorPackageHoldsNoProgram) {
  io::testing::TestArchive package;
  for (const char* name : {"m/archive_format", "m/data/aotinductor/model/model.wrapper.so"})
    package.records.push_back({.name = name, .data = "pt2"});
  const TemporaryFolder folder;
  const std::string path = folder.write("m.pt2", package.build());
  expect_refused(path, 4, path + "' is an AOTInductor package: it holds compiled code and no ");
  expect_refused(path, 4, "save the exported program with torch.export.save instead");
}

TEST(BrokenFiles, SeveralProgramsNeedAName) {
  io::testing::ProgramFile file("relu");
  file.add("models/second.json", file.record("models/model.json").data);
  for (const std::string name : {"weights", "constants"})
    file.add("data/" + name + "/second_" + name + "_config.json", R"({"config": {}})");
  const TemporaryFolder folder;
  const std::string path = folder.write("two.pt2", file.build());
  for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
           {"graph", path}, {"run", path}, {"check", path}, {"opt", path, "--passes", "dce"}}) {
    SCOPED_TRACE(call[0]);
    const ToolResult unnamed = run_tool(call);
    EXPECT_EQ(unnamed.status, 2) << unnamed.err;
    EXPECT_THAT(unnamed.out, IsEmpty());
    EXPECT_THAT(unnamed.err, HasSubstr("two.pt2' holds 2 programs: choose one with --model "
                                       "'model' or 'second'"));
    std::vector<std::string> wrong = call, right = call;
    wrong.insert(wrong.end(), {"--model", "secnd"});
    const ToolResult unknown = run_tool(wrong);
    EXPECT_EQ(unknown.status, 2) << unknown.err;
    EXPECT_THAT(unknown.err, HasSubstr("has no program 'secnd' (did you mean 'second'?). It has "
                                       "'model' or 'second'"));
    right.insert(right.end(), {"--model", "second"});
    const ToolResult named = run_tool(right);
    EXPECT_EQ(named.status, 0) << named.err;
  }
  const ToolResult info = run_tool({"info", path, "--format", "json"});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("\"second\""));
}

}  // namespace
}  // namespace fx::cli_test
