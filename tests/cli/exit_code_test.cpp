// The exit status and the words for each kind of error, and what may be left behind: nothing.

#include "tools/fxcpp/exit_code.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "fx/base/error.h"
#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using cli::ExitCode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The status of what `fail` throws.
template <typename F>
ExitCode status_of(F&& fail) {
  try {
    fail();
  } catch (const std::exception& error) {
    return cli::exit_code_of(error);
  }
  return ExitCode::kOk;
}

TEST(ExitCode, FollowsTheKindOfError) {
  EXPECT_EQ(status_of([] { throw UsageError(ErrorCode::kBadOption, "x"); }), ExitCode::kUsage);
  EXPECT_EQ(status_of([] { throw PassError(ErrorCode::kUnknownPass, "x"); }), ExitCode::kUsage);
  EXPECT_EQ(status_of([] { throw RunError(ErrorCode::kShapeMismatch, "x"); }), ExitCode::kUsage);
  EXPECT_EQ(status_of([] { throw ImportError(ErrorCode::kChecksum, "x"); }), ExitCode::kFile);
  EXPECT_EQ(status_of([] { throw ParseError(ErrorCode::kParseSyntax, "x", 1, 1); }),
            ExitCode::kFile);
  EXPECT_EQ(status_of([] { throw LintError(ErrorCode::kLintOrder, "x"); }), ExitCode::kFile);
  EXPECT_EQ(status_of([] { throw ImportError(ErrorCode::kUnsupported, "x"); }),
            ExitCode::kUnsupported);
  EXPECT_EQ(status_of([] { throw RunError(ErrorCode::kNodeFailed, "x"); }), ExitCode::kUnsupported);
  EXPECT_EQ(status_of([] { throw GraphError(ErrorCode::kNotExpressible, "x"); }),
            ExitCode::kUnsupported);
}

TEST(ExitCode, WhatIsNoFaultOfTheUserIsInternal) {
  EXPECT_EQ(status_of([] { throw InternalError("x"); }), ExitCode::kInternal);
  EXPECT_EQ(status_of([] { TORCH_CHECK(false, "x"); }), ExitCode::kInternal);
  EXPECT_EQ(status_of([] { throw std::bad_alloc(); }), ExitCode::kInternal);
  EXPECT_EQ(status_of([] { throw GraphError(ErrorCode::kForeignNode, "x"); }), ExitCode::kInternal);
  EXPECT_EQ(status_of([] { throw PassError(ErrorCode::kPassBrokeGraph, "x"); }),
            ExitCode::kInternal);
  EXPECT_EQ(static_cast<int>(ExitCode::kInternal), 5);
}

TEST(ExitCode, AFailedPassHasTheStatusOfItsCause) {
  const auto nested = [](auto cause) {
    return status_of([&] {
      try {
        throw cause;
      } catch (...) {
        std::throw_with_nested(PassError(ErrorCode::kPassFailed, "x"));
      }
    });
  };
  EXPECT_EQ(nested(RunError(ErrorCode::kNodeFailed, "x")), ExitCode::kUnsupported);
  EXPECT_EQ(nested(InternalError("x")), ExitCode::kInternal);
  EXPECT_EQ(nested(std::runtime_error("x")), ExitCode::kInternal);
}

TEST(ExitCode, AnInternalErrorAsksForAReportWithoutABacktrace) {
  try {
    TORCH_CHECK(false, "the reason");
  } catch (const std::exception& error) {
    const std::string text = cli::describe_error(error);
    EXPECT_THAT(text, HasSubstr("internal error: the reason"));
    EXPECT_THAT(text, HasSubstr("please report it with the command line and the output of "
                                "`fxcpp doctor`"));
    EXPECT_THAT(text, Not(HasSubstr("frame #")));
  }
}

/// A call that fails although it was told to write something.
struct FailingCall {
  const char* name;
  /// "FX" stands for the file with `graph`, "CUT", "FLIPPED" and "PICKLE" for files that are no
  /// model any more, "OUT" for the output.
  std::vector<std::string> args;
  std::string output;  ///< name of the file that must not appear
  int status;
  std::vector<std::string> parts;  ///< what the paragraph says: stage, found, wanted
  std::string graph = "";          ///< text of a .fx file
};
std::ostream& operator<<(std::ostream& out, const FailingCall& call) { return out << call.name; }
class FailingOutput : public testing::TestWithParam<FailingCall> {};

/// A file that stands under `name` in a FailingCall, or `name` itself.
std::string broken_file(const TemporaryFolder& folder, const std::string& name) {
  std::string bytes = read_file(digits());
  if (name == "CUT") return folder.write("cut.pt2", bytes.substr(0, bytes.size() / 2));
  if (name == "FLIPPED") {
    bytes[bytes.find("torch.ops.aten.relu")] ^= 1;
    return folder.write("flipped.pt2", bytes);
  }
  if (name == "PICKLE") return folder.write("model.pth", std::string("\x80\x02}q\0.", 6));
  return name;
}

TEST_P(FailingOutput, LeavesOneParagraphAndNoFile) {
  const FailingCall& call = GetParam();
  const TemporaryFolder folder, out;
  std::vector<std::string> args = call.args;
  for (std::string& arg : args) {
    if (arg == "FX") arg = folder.write("graph.fx", call.graph);
    if (arg == "OUT") arg = out.file(call.output);
    arg = broken_file(folder, arg);
  }
  const ToolResult result = run_tool(args);
  EXPECT_EQ(result.status, call.status) << result.err;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("fxcpp " + args[0] + ": error: "));
  for (const std::string& part : call.parts) EXPECT_THAT(result.err, HasSubstr(part));
  EXPECT_THAT(result.err, HasSubstr("To mend it: "));
  EXPECT_THAT(result.err, Not(HasSubstr("\n\n")));
  EXPECT_THAT(out.names(), IsEmpty());
}

const std::string kUnknownOperator =
    "fx 1\n%x = placeholder[target=x]\n"
    "%triple = call_function[target=zoo::triple](args = (%x,), kwargs = {})\n"
    "return (%triple,)\n";
const std::string kUnknownModule =
    "fx 1\n%x = placeholder[target=x]\n"
    "%linear = call_module[target=linear](args = (%x,), kwargs = {})\n"
    "return %linear\n";
const std::string kShapesThatDoNotFit =
    "fx 1\n%x = placeholder[target=x]\n%y = placeholder[target=y]\n"
    "%mm = call_function[target=aten::mm](args = (%x, %y), kwargs = {})\n"
    "return (%mm,)\n";
const std::string kNoReturn = "fx 1\n%x = placeholder[target=x]\n";

INSTANTIATE_TEST_SUITE_P(
    Calls, FailingOutput,
    testing::Values(
        FailingCall{"no_program", {"graph", "/nonexistent.pt2", "-o", "OUT"}, "g.fx", 4, {"open"}},
        FailingCall{"truncated",
                    {"run", "CUT", "-o", "OUT"},
                    "y.npy",
                    4,
                    {"cut.pt2", "[FX405]", "copy or export the file again"}},
        FailingCall{"corrupt",
                    {"opt", "FLIPPED", "--passes", "dce", "-o", "OUT"},
                    "g.fx",
                    4,
                    {"flipped.pt2", "checksum", "[FX408]"}},
        FailingCall{"foreign",
                    {"graph", "PICKLE", "-o", "OUT"},
                    "g.py",
                    4,
                    {"model.pth' is a Python pickle", "[FX404]"}},
        FailingCall{"unknown_operator_in_pt2",
                    {"run", zoo("custom_operator"), "-o", "OUT"},
                    "y.npy",
                    3,
                    {"zoo::triple", "[FX417]"}},
        FailingCall{"dtype",
                    {"run", digits(), "-i", "x=i64[1,1,8,8]:ones", "-o", "OUT"},
                    "y.npy",
                    2,
                    {"input x: dtype f32 wanted, found i64"}},
        FailingCall{"shape",
                    {"run", digits(), "-i", "x=f32[1,2,8,8]:ones", "-o", "OUT"},
                    "y.npy",
                    2,
                    {"input x: size 1 wanted in dimension 1, found 2: [1, 2, 8, 8]"}},
        FailingCall{"name",
                    {"run", digits(), "-i", "image=f32[1,1,8,8]:ones", "-o", "OUT"},
                    "y.npy",
                    2,
                    {"the model has no input 'image'", "It takes x: f32[s77, 1, 8, 8]"}},
        FailingCall{"too_many",
                    {"run", digits(), "-i", "f32[1,1,8,8]:ones", "-i", "f32[1]:1", "-o", "OUT"},
                    "y.npy",
                    2,
                    {"one input too many: 2 inputs given"}},
        FailingCall{"too_few",
                    {"run", "FX", "-i", "x=f32[2,2]:ones", "-o", "OUT"},
                    "y.npy",
                    2,
                    {"input y: the file does not say what it is"},
                    kShapesThatDoNotFit},
        FailingCall{"unknown_pass",
                    {"opt", digits(), "--passes", "cze", "-o", "OUT"},
                    "g.fx",
                    2,
                    {"there is no pass 'cze'", "did you mean 'cse'?"}},
        FailingCall{"unknown_operator",
                    {"run", "FX", "-i", "x=f32[2]:ones", "-o", "OUT"},
                    "y.npy",
                    3,
                    {"this process has no operator 'zoo::triple'", "While executing %triple",
                     "To mend it: load the library that registers the operator"},
                    kUnknownOperator},
        FailingCall{"unknown_operator_in_cpp",
                    {"graph", "FX", "--format", "cpp", "-o", "OUT"},
                    "g.cpp",
                    3,
                    {"cannot write C++ code for %triple", "zoo::triple"},
                    kUnknownOperator},
        FailingCall{"unknown_module_in_cpp",
                    {"graph", "FX", "-o", "OUT"},
                    "g.cpp",
                    3,
                    {"cannot write C++ code for %linear", "there is no module at that path"},
                    kUnknownModule},
        FailingCall{"node_fails",
                    {"run", "FX", "-i", "x=f32[2,3]:ones", "-i", "y=f32[2,3]:ones", "-o", "OUT"},
                    "y.npy",
                    3,
                    {"While executing %mm", "x: Tensor f32[2, 3]", "cannot be multiplied"},
                    kShapesThatDoNotFit},
        FailingCall{"pass_fails",
                    {"opt", "FX", "--passes", "shape_prop", "-i", "x=f32[2,3]:ones", "-i",
                     "y=f32[2,3]:ones", "-o", "OUT"},
                    "g.fx",
                    3,
                    {"shape_prop", "%mm", "cannot be multiplied"},
                    kShapesThatDoNotFit},
        FailingCall{"no_output",
                    {"graph", "FX", "-o", "OUT"},
                    "g.txt",
                    4,
                    {"graph.fx: wanted exactly one output node at the end of the graph, found 0"},
                    kNoReturn},
        FailingCall{"foreign_input",
                    {"run", digits(), "-i", "x=@" + source("README.md"), "-o", "OUT"},
                    "y.npy",
                    4,
                    {"README.md': it is not in a known format, a .npy file is wanted"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fx::cli_test
