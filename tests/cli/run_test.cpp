// `fxcpp run`: accuracy on real data, generated inputs, files in and out.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "fx/io/npy.h"
#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Run, DigitsReachTheAccuracyThatPythonMeasured) {
  std::ifstream in(source("models/digits_expected.json"));
  const Json expected = Json::parse(in);
  for (const char* backend : {"plan", "interpret"}) {
    const TemporaryFolder folder;
    const std::string path = folder.file("logits.npy");
    const ToolResult result =
        run_tool({"run", digits(), "-i", "x=@" + source("models/digits_test_x.npy"), "-o", path,
                  "--backend", backend});
    ASSERT_EQ(result.status, 0) << result.err;
    const at::Tensor logits = io::read_npy(path);
    const at::Tensor labels = io::read_npy(source("models/digits_test_y.npy"));
    EXPECT_EQ(logits.argmax(1).eq(labels).sum().item<std::int64_t>(),
              expected.at("correct").get<std::int64_t>());
    EXPECT_TRUE(logits.allclose(io::read_npy(source("models/digits_logits.npy")),
                                expected.at("logits_rtol").get<double>(),
                                expected.at("logits_atol").get<double>()));
    EXPECT_THAT(folder.names(), ElementsAre("logits.npy"));
  }
}

TEST(Run, GeneratedInputsAreToldAndFollowTheSeed) {
  const ToolResult first = run_tool({"run", digits()});
  EXPECT_EQ(first.status, 0);
  EXPECT_THAT(first.err, HasSubstr("s77 = 1 (the smallest in 1 <= s77 <= 4096"));
  EXPECT_THAT(first.err, HasSubstr("input x: Tensor f32[1, 1, 8, 8] generated (randn, seed 0)"));
  EXPECT_EQ(run_tool({"run", digits()}).out, first.out);
  EXPECT_NE(run_tool({"run", digits(), "--seed", "1"}).out, first.out);
  const ToolResult spelled = run_tool({"run", digits(), "-i", "f32[1,1,8,8]:randn"});
  EXPECT_EQ(spelled.out, first.out) << "the grammar says how inputs are generated";
}

TEST(Run, DimSetsTheSymbol) {
  const Json json = run_tool({"run", digits(), "--dim", "s77=3", "--format", "json"}).json();
  EXPECT_EQ(json.at("symbols").at("s77"), 3);
  EXPECT_EQ(json.at("outputs").at(0).at("shape"), Json::array({3, 10}));
  EXPECT_EQ(json.at("inputs").at(0).at("source"), "randn, seed 0");
}

TEST(Run, SymbolsAreReadOffTheInputsGiven) {
  const ToolResult result =
      run_tool({"run", zoo("dynamic_batch"), "-i", "x=f32[3,6]:ones", "-q", "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = result.json();
  EXPECT_EQ(json.at("inputs").at(1).at("shape").at(0), 3) << "y shares the batch of x";
}

TEST(Run, SmallOutputsShowTheirValues) {
  const ToolResult result =
      run_tool({"run", zoo("relu"), "-i", "f32[3,4]:1,-1,2,-2,3,-3,4,-4,5,-5,6,-6"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("relu"));
  EXPECT_THAT(result.out, HasSubstr("[1., 0., 2., 0.]"));
  const Json json = run_tool({"run", zoo("relu"), "-i", "f32[3,4]:1,-1,2,-2,3,-3,4,-4,5,-5,6,-6",
                              "--format", "json"})
                        .json();
  EXPECT_EQ(json.at("outputs").at(0).at("values").at(2), Json::array({5.0, 0.0, 6.0, 0.0}));
  EXPECT_EQ(json.at("outputs").at(0).at("max"), 6.0);
}

TEST(Run, StatisticsLeaveOutAndCountWhatIsNotFinite) {
  const Json json = run_tool({"run", zoo("relu"), "-i", "f32[3,4]:nan,inf,1,2,0,0,0,0,0,0,0,0",
                              "--format", "json"})
                        .json();
  const Json& output = json.at("outputs").at(0);
  EXPECT_EQ(output.at("nan_count"), 1);
  EXPECT_EQ(output.at("inf_count"), 1);
  EXPECT_EQ(output.at("max"), 2.0);
  EXPECT_EQ(output.at("values").at(0).at(0), "nan");
}

TEST(Run, SeveralOutputsGoIntoAFolder) {
  const TemporaryFolder folder;
  const std::string target = folder.file("out/");
  const ToolResult result = run_tool({"run", zoo("multiple_outputs"), "-i",
                                      "@" + source("tests/io/zoo/multiple_outputs.0.in0.npy"), "-o",
                                      target, "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json outputs = result.json().at("outputs");
  ASSERT_EQ(outputs.size(), 8u);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor expected =
        io::read_npy(source("tests/io/zoo/multiple_outputs.0.out" + std::to_string(i) + ".npy"));
    const at::Tensor written = io::read_npy(outputs[i].at("file").get<std::string>());
    EXPECT_TRUE(written.allclose(expected)) << i;
    EXPECT_EQ(written.scalar_type(), expected.scalar_type()) << i;
  }
}

TEST(Run, StructuredInputsAreFlatOnTheCommandLine) {
  const std::string base = source("tests/io/zoo/dict_io.0.");
  const ToolResult result =
      run_tool({"run", zoo("dict_io"), "-i", "@" + base + "in0.npy", "-i", "@" + base + "in1.npy"});
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST(Run, ConstantInputsNeedNoValue) {
  const ToolResult result = run_tool({"run", zoo("constant_inputs")});
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST(Run, OutputsThatAreNoTensorsAreShown) {
  const ToolResult result = run_tool({"run", zoo("odd_outputs")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("= None"));
  EXPECT_THAT(result.out, HasSubstr("= 3"));
}

TEST(Run, NothingIsWrittenWhenTheRunFails) {
  const TemporaryFolder folder;
  const ToolResult result =
      run_tool({"run", digits(), "-i", "x=f64[1,1,8,8]:ones", "-o", folder.file("y.npy")});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace fx::cli_test
