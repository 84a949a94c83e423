// `fxcpp check`: verdicts, the worst element, needed tolerances, nodes.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fx/io/npy.h"
#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using testing::HasSubstr;

std::string digits_input() { return "x=@" + source("models/digits_test_x.npy"); }

TEST(Check, DigitsAgreeWithPythonsLogits) {
  const ToolResult result = run_tool(
      {"check", digits(), "-i", digits_input(), "--against", source("models/digits_logits.npy")});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("PASS"));
}

/// The logits with one element changed, as a file.
std::string wrong_reference(const TemporaryFolder& folder, double by) {
  const at::Tensor logits = io::read_npy(source("models/digits_logits.npy"));
  logits[123][4].add_(by);
  const std::string path = folder.file("wrong.npy");
  io::write_npy(path, logits);
  return path;
}

TEST(Check, AWrongReferenceFailsAndNamesTheWorstElement) {
  const TemporaryFolder folder;
  const std::vector<std::string> call = {"check",        digits(),    "-i",
                                         digits_input(), "--against", wrong_reference(folder, 0.5)};
  const ToolResult result = run_tool(call);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("FAIL"));
  EXPECT_THAT(result.out, HasSubstr("linear: element [123, 4] is "));
  EXPECT_THAT(result.out, HasSubstr("1 of 4000 elements is outside"));

  std::vector<std::string> as_json = call;
  as_json.insert(as_json.end(), {"--format", "json"});
  const ToolResult json_result = run_tool(as_json);
  EXPECT_EQ(json_result.status, 1);
  const Json json = json_result.json();
  EXPECT_EQ(json.at("verdict"), "fail");
  const Json& output = json.at("outputs").at(0);
  EXPECT_EQ(output.at("worst_index"), Json::array({123, 4}));
  EXPECT_EQ(output.at("mismatches"), 1);
  EXPECT_NEAR(output.at("max_abs_error").get<double>(), 0.5, 1e-4);
  EXPECT_NEAR(output.at("worst_expected").get<double>() - output.at("worst_actual").get<double>(),
              0.5, 1e-4);
}

TEST(Check, TheToleranceThatIsSaidToBeNeededIsEnough) {
  const TemporaryFolder folder;
  const std::vector<std::string> call = {
      "check", digits(), "-i", digits_input(), "--against", wrong_reference(folder, 0.25)};
  const std::string out = run_tool(call).out;
  for (const std::string option : {"--rtol", "--atol"}) {
    const std::size_t at = out.find(option + " ");
    ASSERT_NE(at, std::string::npos) << out;
    const std::size_t from = at + option.size() + 1;
    const std::string value = out.substr(from, out.find_first_of(" \n", from) - from);
    std::vector<std::string> with = call;
    with.insert(with.end(), {option, value});
    EXPECT_EQ(run_tool(with).status, 0) << option << " " << value;
    with.back() = std::to_string(std::stod(value) * 0.98);
    EXPECT_EQ(run_tool(with).status, 1) << option << " " << value;
  }
}

TEST(Check, ShapeAndDtypeOfTheReferenceCount) {
  const TemporaryFolder folder;
  const at::Tensor logits = io::read_npy(source("models/digits_logits.npy"));
  io::write_npy(folder.file("double.npy"), logits.to(at::kDouble));
  io::write_npy(folder.file("short.npy"), logits.narrow(0, 0, 7));
  const ToolResult dtype =
      run_tool({"check", digits(), "-i", digits_input(), "--against", folder.file("double.npy")});
  EXPECT_EQ(dtype.status, 1);
  EXPECT_THAT(dtype.out, HasSubstr("linear: dtype f32 found, f64 expected"));
  const ToolResult shape =
      run_tool({"check", digits(), "-i", digits_input(), "--against", folder.file("short.npy")});
  EXPECT_EQ(shape.status, 1);
  EXPECT_THAT(shape.out, HasSubstr("linear: shape [400, 10] found, [7, 10] expected"));
}

TEST(Check, ReferencesByOutputName) {
  const std::string base = source("tests/io/zoo/multiple_outputs.0.");
  const ToolResult info = run_tool({"info", zoo("multiple_outputs"), "--format", "json"});
  const std::string second = info.json().at("outputs").at(1).at("name");
  const ToolResult result =
      run_tool({"check", zoo("multiple_outputs"), "-i", "@" + base + "in0.npy", "--against",
                second + "=" + base + "out1.npy"});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("1 output compared"));
  EXPECT_THAT(result.err, HasSubstr("has no reference file"));
  const ToolResult wrong = run_tool({"check", zoo("multiple_outputs"), "-i", "@" + base + "in0.npy",
                                     "--against", "nothing=" + base + "out1.npy"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("the model has no output 'nothing'"));
}

TEST(Check, EveryRunnableProgramOfTheZooAgreesNodeByNode) {
  const Json manifest = Json::parse(read_file(source("tests/io/zoo/manifest.json")));
  int checked = 0;
  for (const Json& model : manifest.at("models")) {
    if (model.at("expect") != "run") continue;
    SCOPED_TRACE(model.at("name").get<std::string>());
    // Inputs whose values matter come from the files of the zoo.
    std::vector<std::string> call = {"check", zoo(model.at("name")), "--all-nodes", "--format",
                                     "json"};
    for (const Json& input : model.at("calls").at(0).at("inputs")) {
      if (!input.contains("file")) continue;
      call.insert(call.end(),
                  {"-i", "@" + source("tests/io/zoo/" + input.at("file").get<std::string>())});
    }
    const ToolResult result = run_tool(call);
    EXPECT_EQ(result.status, 0) << result.out << result.err;
    if (result.status != 0) continue;
    const Json json = result.json();
    EXPECT_EQ(json.at("departing_nodes"), 0);
    EXPECT_TRUE(json.at("first_departing_node").is_null());
    ++checked;
  }
  EXPECT_GE(checked, 25);
}

}  // namespace
}  // namespace fx::cli_test
