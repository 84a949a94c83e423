// What holds for every verb: help, formats, stdout for the result alone, exit codes, quiet.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// One way to call each verb that succeeds.
const std::vector<std::vector<std::string>>& calls() {
  static const std::vector<std::vector<std::string>> all = {
      {"info", digits()},
      {"info", digits(), "--ops"},
      {"info", digits(), "--weights"},
      {"info", digits(), "--signature"},
      {"info", digits(), "--depth", "2"},
      {"info", zoo("custom_operator")},
      {"graph", digits()},
      {"run", digits()},
      {"run", zoo("dtypes")},
      {"run", zoo("special_floats")},
      {"check", digits()},
      {"check", digits(), "--all-nodes"},
      {"opt", digits(), "--passes", "fuse_conv_bn,dce", "--print-changed"},
      {"passes"},
      {"passes", "constant_fold"},
      {"doctor"},
  };
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += word + " ";
  return out;
}

TEST(Manners, JsonIsAllThatIsOnStdout) {
  for (std::vector<std::string> call : calls()) {
    SCOPED_TRACE(joined(call));
    call.insert(call.end(), {"--format", "json"});
    const ToolResult result = run_tool(call);
    EXPECT_EQ(result.status, 0) << result.err;
    const Json json = result.json();
    ASSERT_TRUE(json.is_object());
    EXPECT_EQ(json.begin().key(), "schema_version");
    EXPECT_EQ(json.at("schema_version"), 1);
    EXPECT_EQ(json.at("command"), call[0]);
  }
}

TEST(Manners, QuietSaysNothingOnStderr) {
  for (std::vector<std::string> call : calls()) {
    SCOPED_TRACE(joined(call));
    call.push_back("-q");
    const ToolResult result = run_tool(call);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, Not(IsEmpty()));
    EXPECT_THAT(result.err, IsEmpty());
    EXPECT_EQ(result.out.find('\033'), std::string::npos) << "colours outside of a terminal";
  }
}

TEST(Manners, NotesHaveNoColoursOutsideOfATerminal) {
  const ToolResult result = run_tool({"run", digits()});
  EXPECT_THAT(result.err, HasSubstr("fxcpp run: "));
  EXPECT_EQ(result.err.find('\033'), std::string::npos);
}

TEST(Manners, MarkdownHasTablesAndCsvHasColumns) {
  for (const std::vector<std::string>& call : calls()) {
    if (call[0] == "graph") continue;
    SCOPED_TRACE(joined(call));
    std::vector<std::string> markdown = call, csv = call;
    markdown.insert(markdown.end(), {"--format", "md"});
    EXPECT_THAT(run_tool(markdown).out, HasSubstr("| --- |"));
    csv.insert(csv.end(), {"--format", "csv"});
    const std::string text = run_tool(csv).out;
    EXPECT_THAT(text.substr(0, text.find('\n')), HasSubstr(","));
  }
}

TEST(Manners, EveryVerbHasHelpWithExamples) {
  const ToolResult top = run_tool({"--help"});
  EXPECT_EQ(top.status, 0);
  EXPECT_THAT(top.err, IsEmpty());
  for (const char* verb : {"info", "graph", "opt", "run", "check", "passes", "doctor"}) {
    SCOPED_TRACE(verb);
    EXPECT_THAT(top.out, HasSubstr(std::string("\n  ") + verb + " "));
    for (const std::vector<std::string>& call :
         {std::vector<std::string>{verb, "--help"}, {verb, "-h"}, {"help", verb}}) {
      const ToolResult help = run_tool(call);
      EXPECT_EQ(help.status, 0);
      EXPECT_THAT(help.err, IsEmpty());
      EXPECT_THAT(help.out, HasSubstr(std::string("usage: fxcpp ") + verb));
      EXPECT_THAT(help.out, HasSubstr("examples:\n  fxcpp " + std::string(verb)));
      EXPECT_THAT(help.out, HasSubstr("--format FORMAT"));
      for (std::size_t at = 0; at < help.out.size();) {
        const std::size_t end = help.out.find('\n', at);
        EXPECT_LE(end - at, 100u) << help.out.substr(at, end - at);
        at = end + 1;
      }
    }
  }
}

TEST(Manners, VersionNamesLibTorchAndTheProcessor) {
  const ToolResult result = run_tool({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, testing::MatchesRegex("fxcpp [0-9.]+ \\(LibTorch 2[^,]*, .*\\)\n"));
}

TEST(Manners, ANewcomerWithoutArgumentsGetsHelpAndStatus2) {
  const ToolResult result = run_tool({});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("usage: fxcpp VERB"));
}

struct BadCall {
  std::vector<std::string> args;
  int status;
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const BadCall& call) {
  return out << joined(call.args);
}
class Refusal : public testing::TestWithParam<BadCall> {};

TEST_P(Refusal, HasAStatusAndAMessageOnStderrAlone) {
  const ToolResult result = run_tool(GetParam().args);
  EXPECT_EQ(result.status, GetParam().status) << result.err;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr(GetParam().message));
  EXPECT_THAT(result.err, StartsWith("fxcpp"));
  EXPECT_THAT(result.err, HasSubstr("To mend it: "));
  EXPECT_THAT(result.err, testing::ContainsRegex("\\[FX[0-9]+\\]\n$"));
  for (const char* dump : {"frame #", "C++ CapturedTraceback", "terminate called", ".cpp:"})
    EXPECT_THAT(result.err, Not(HasSubstr(dump)));
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, Refusal,
    testing::Values(
        BadCall{{"grph"}, 2, "unknown verb 'grph' (did you mean 'graph'?)"},
        BadCall{{"xyzzy"}, 2, "unknown verb 'xyzzy'. A verb is 'info', "},
        BadCall{{"--format", "json", "info"}, 2, "the verb comes first"},
        BadCall{{digits()}, 2, "is a file: say what to do with it, as in `fxcpp info "},
        BadCall{{"run"}, 2, "no FILE was given; try `fxcpp run model.pt2`"},
        BadCall{{"run", digits(), "--sede", "3"},
                2,
                "unknown option '--sede' (did you mean '--seed'?)"},
        BadCall{
            {"run", "--sede=3", digits()}, 2, "unknown option '--sede' (did you mean '--seed'?)"},
        BadCall{{"run", digits(), "-z"}, 2, "unknown option '-z'"},
        BadCall{{"run", digits(), "--seed", "abc"}, 2, "--seed cannot be 'abc'"},
        BadCall{{"run", digits(), "--seed"}, 2, "--seed"},
        BadCall{{"run", digits(), "x=@x.npy"}, 2, "each input needs its own -i: -i 'x=@x.npy'"},
        BadCall{{"run", digits(), "--format", "jsn"},
                2,
                "--format cannot be 'jsn': it is 'table', 'md', 'json' or 'csv' (did you mean "
                "'json'?)"},
        BadCall{{"run", digits(), "--backend", "plam"},
                2,
                "no backend 'plam': it is 'interpret' or 'plan' (did you mean 'plan'?)"},
        BadCall{{"run", digits(), "--threads", "-1"}, 2, "--threads -1 is no number of threads"},
        BadCall{{"run", digits(), "-o", "y.txt"}, 2, "neither a .npy file nor a folder"},
        BadCall{{"check", digits(), "--against", "interpet"}, 2, "did you mean 'interpret'?"},
        BadCall{{"opt", digits()}, 2, "no --passes was given; try `fxcpp opt model.pt2 --passes "},
        BadCall{{"opt", digits(), "--passes", "dce,cze"}, 2, "there is no pass 'cze'"},
        BadCall{{"opt", digits(), "--passes", "constant_fold(maxbytes=3)"}, 2, "max_bytes"},
        BadCall{{"graph", digits(), "-o", "m.pt2"}, 2, "`fxcpp opt` writes models"},
        BadCall{{"opt", digits(), "--passes", "dce", "-o", "m.xyz"}, 2, "the name says no format"},
        BadCall{
            {"graph", digits(), "-o", "m.xyz"}, 2, "the name says no format; it ends in .txt, .fx"},
        BadCall{{"check", digits(), "--passes", "dcee"}, 2, "did you mean 'dce'?"},
        BadCall{{"graph", digits(), "--after", "dcee"}, 2, "did you mean 'dce'?"},
        BadCall{{"passes", "fuse"}, 2, "there is no pass 'fuse'"}));

INSTANTIATE_TEST_SUITE_P(
    Files, Refusal,
    testing::Values(
        BadCall{{"info", "/nonexistent/m.pt2"}, 4, "Cannot open '/nonexistent/m.pt2'"},
        BadCall{{"run", source("models")}, 4, "is a"},
        BadCall{{"run", source("models/digits_logits.npy")}, 4, "is a NumPy array (.npy)"},
        BadCall{{"graph", source("README.md")}, 4, "To mend it: export the model in Python"},
        BadCall{{"run", digits(), "-i", "x=@/nonexistent/x.npy"}, 4, "/nonexistent/x.npy"},
        BadCall{{"run", digits(), "-i", "x=@" + digits()}, 4, "digits.pt2"},
        BadCall{{"run", digits(), "-o", "/nonexistent/folder/y.npy"}, 4, "/nonexistent"},
        BadCall{{"run", digits(), "-o", "/proc/nothing/"},
                4,
                "cannot make the folder '/proc/nothing/'"},
        BadCall{{"check", digits(), "--against", "/nonexistent/y.npy"}, 4, "/nonexistent/y.npy"},
        BadCall{{"run", zoo("custom_operator")}, 3, "zoo::halve"},
        BadCall{{"run", zoo("custom_operator")}, 3, "zoo::triple"},
        BadCall{{"check", zoo("custom_operator")},
                3,
                "To mend it: decompose or remove what is listed"}));

INSTANTIATE_TEST_SUITE_P(
    Inputs, Refusal,
    testing::Values(
        BadCall{{"run", digits(), "-i", "x=f31[1,1,8,8]:zeros"},
                2,
                "'f31' is no dtype (did you mean 'f32'?)\n    x=f31[1,1,8,8]:zeros\n      ^\n"},
        BadCall{
            {"run", digits(), "-i", "y=f32[1,1,8,8]:zeros"},
            2,
            "the model has no input 'y' (did you mean 'x'?). It takes x: f32[s77, 1, 8, 8] with 1 "
            "<= s77 <= 4096"},
        BadCall{{"run", digits(), "-i", "f32[1,1,8,8]:ones", "-i", "f32[1]:1"},
                2,
                "'f32[1]:1' is one input too many: 2 inputs given"},
        BadCall{{"run", digits(), "-i", "x=f32[1,1,8,8]:ones", "-i", "x=f32[1,1,8,8]:ones"},
                2,
                "input x was given twice"},
        BadCall{{"run", digits(), "-i", "x=f64[1,1,8,8]:ones"},
                2,
                "input x: dtype f32 wanted, found f64"},
        BadCall{{"run", digits(), "-i", "x=f32[1,8,8]:ones"},
                2,
                "input x: 4 dimensions wanted, found 3: [1, 8, 8]"},
        BadCall{{"run", digits(), "-i", "x=f32[1,1,8,9]:ones"},
                2,
                "input x: size 8 wanted in dimension 3, found 9: [1, 1, 8, 9]"},
        BadCall{{"run", digits(), "-i", "x=f32[5000,1,8,8]:ones"},
                2,
                "input x: s77 = 5000 is not in 1 <= s77 <= 4096"},
        BadCall{{"run", digits(), "-i", "x=3"}, 2, "input x: a tensor wanted, found int"},
        BadCall{
            {"run", digits(), "--dim", "s77=0"}, 2, "--dim: s77 = 0 is not in 1 <= s77 <= 4096"},
        BadCall{{"run", digits(), "--dim", "s78=1"},
                2,
                "the model has no such symbol (did you mean 's77'?)"},
        BadCall{{"run", digits(), "--dim", "s77"}, 2, "--dim 's77' is not SYMBOL=SIZE"},
        BadCall{{"run", digits(), "--dim", "s77=2", "-i", "x=f32[3,1,8,8]:ones"},
                2,
                "input x: size s77 = 2 wanted in dimension 0, found 3"},
        BadCall{{"run", zoo("dynamic_batch"), "-i", "x=f32[3,6]:ones", "-i", "y=f32[4,5]:ones"},
                2,
                "wanted in dimension 0, found 4"},
        BadCall{{"run", zoo("multiple_outputs"), "-o", "y.npy"},
                2,
                "'y.npy' is one file, the model has 8 outputs: give a folder"}));

}  // namespace
}  // namespace fx::cli_test
