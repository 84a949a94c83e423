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

/// A program all of whose free text is `text`, and whose input has the name `name`.
std::string with_texts(const TemporaryFolder& folder, const std::string& text,
                       const std::string& name) {
  io::testing::ProgramFile file("relu");
  file.edit_model([&](nlohmann::ordered_json& model) {
    nlohmann::ordered_json& node = model["graph_module"]["graph"]["nodes"][0];
    node["metadata"]["stack_trace"] = "File \"a.py\", line 3, in forward\n    y = x" + text;
    node["metadata"]["torch_fn"] = "relu" + text;
    std::string path = text;
    std::erase_if(path, [](char c) { return c == ',' || c == ';' || c == '\n'; });
    node["metadata"]["nn_module_stack"] = "L__self__,," + path;
    model["torch_version"] = "2.15" + text;
    model["guards_code"] = {"L['x']" + text};
  });
  std::string& json = file.record("models/model.json").data;
  const std::string from = "\"x\"", to = nlohmann::json(name).dump();
  for (std::size_t at = json.find(from); at != std::string::npos;
       at = json.find(from, at + to.size()))
    json.replace(at, from.size(), to);
  return folder.write("m.pt2", file.build());
}

TEST(BrokenFiles, X11_TextOfTheFileReachesNoTerminalAsCodes) {
  const TemporaryFolder folder;
  const std::string path = with_texts(folder,
                                      "\x1b]0;owned\x07\rimport os\x0b\x7f\xc2\x9b"
                                      "31m\\x1b \\",
                                      "x");
  const std::vector<std::vector<std::string>> calls = {{"info"},
                                                       {"info", "--ops"},
                                                       {"info", "--depth", "3"},
                                                       {"info", "--format", "md"},
                                                       {"info", "--format", "csv"},
                                                       {"info", "--format", "json"},
                                                       {"graph"},
                                                       {"graph", "--format", "table"},
                                                       {"graph", "--format", "json"},
                                                       {"graph", "--format", "fx"},
                                                       {"graph", "--format", "dot"},
                                                       {"graph", "--format", "python"},
                                                       {"graph", "--format", "cpp"},
                                                       {"check"},
                                                       {"run", "-i", "randn[7]"}};
  for (std::vector<std::string> call : calls) {
    SCOPED_TRACE(call[0] + " " + call.back());
    call.insert(call.begin() + 1, path);
    const ToolResult result = run_tool(call);
    for (const std::string& text : {result.out, result.err}) {
      for (char c : text)
        EXPECT_TRUE(c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F))
            << static_cast<int>(c);
      EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
    }
    if (call.back() == "json" && call[0] == "info") {
      EXPECT_EQ(result.json().at("torch_version"),
                "2.15\x1b]0;owned\x07\rimport os\x0b\x7f\xc2\x9b"
                "31m\\x1b \\");
    }
  }
}

TEST(BrokenFiles, X12_NamesAreNoMarkupAndNoCode) {
  const TemporaryFolder folder;
  const std::string evil = "x\"'*/<script>alert(1)</script>\\";
  const std::string path = with_texts(folder, evil, evil);
  const auto printed = [&](std::vector<std::string> call) {
    call.insert(call.begin() + 1, path);
    const ToolResult result = run_tool(call);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  // Markdown is HTML, too; names in code are made identifiers; labels of DOT are quoted whole.
  EXPECT_EQ(printed({"info", "--format", "md"}).find('<'), std::string::npos);
  for (const char* format : {"python", "cpp"}) {
    const std::string code = printed({"graph", "--format", format});
    EXPECT_EQ(code.find("script>"), std::string::npos) << code;
    EXPECT_EQ(code.find("alert(1)"), std::string::npos) << code;
  }
  const std::string dot = printed({"graph", "--format", "dot"});
  EXPECT_THAT(dot, HasSubstr("x\\\"'*/<script>alert(1)</script>\\\\"));
  // Text that can be read back gives the same name.
  const std::string text = folder.write("m.fx", printed({"graph", "--format", "fx"}));
  EXPECT_EQ(run_tool({"graph", text, "--format", "fx"}).out, printed({"graph", "--format", "fx"}));
  EXPECT_EQ(Json::parse(printed({"info", "--format", "json"})).at("inputs")[0].at("name"), evil);
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
