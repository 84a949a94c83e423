// `fxcpp info` and `fxcpp graph`: what they tell of known files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fx/graph/text.h"
#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Json info(std::vector<std::string> args) {
  args.insert(args.begin(), "info");
  args.insert(args.end(), {"--format", "json"});
  const ToolResult result = run_tool(args);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.json();
}

TEST(Info, DigitsAreCountedRight) {
  const Json json = info({digits(), "--weights"});
  EXPECT_EQ(json.at("file_bytes"), std::filesystem::file_size(digits()));
  EXPECT_THAT(json.at("torch_version").get<std::string>(), StartsWith("2."));
  const Json& input = json.at("inputs").at(0);
  EXPECT_EQ(input.at("name"), "x");
  EXPECT_EQ(input.at("dtype"), "f32");
  EXPECT_EQ(input.at("shape"), Json::array({"s77", 1, 8, 8}));
  EXPECT_EQ(json.at("symbols").at(0), (Json{{"name", "s77"}, {"min", 1}, {"max", 4096}}));
  EXPECT_EQ(json.at("outputs").at(0).at("shape"), Json::array({"s77", 10}));
  EXPECT_EQ(json.at("parameters").at("elements"), 24122);
  EXPECT_EQ(json.at("parameters").at("bytes"), 24122 * 4);
  EXPECT_EQ(json.at("buffers").at("elements"), 227);
  EXPECT_EQ(json.at("supported"), true);

  std::uint64_t elements = 0, bytes = 0;
  for (const Json& weight : json.at("weights")) {
    elements += weight.at("elements").get<std::uint64_t>();
    bytes += weight.at("bytes").get<std::uint64_t>();
  }
  EXPECT_EQ(elements, 24122u + 227u);
  EXPECT_EQ(bytes, json.at("weight_bytes"));

  std::size_t calls = 0;
  for (const Json& op : json.at("operators")) calls += op.at("calls").get<std::size_t>();
  EXPECT_EQ(calls, json.at("nodes").at("call_function"));
}

TEST(Info, OperatorsInsideOfGraphsCount) {
  const auto calls = [](const Json& json, const std::string& name) {
    for (const Json& row : json.at("operators"))
      if (row.at("name") == name) return row.at("calls").get<int>();
    return 0;
  };
  const Json cond = info({zoo("cond")});
  EXPECT_EQ(cond.at("graphs"), 3);
  EXPECT_EQ(calls(cond, "aten::sin"), 1);
  EXPECT_EQ(calls(cond, "aten::cos"), 1);
  EXPECT_EQ(calls(cond, "aten::sub.Tensor"), 1);
  EXPECT_EQ(info({digits()}).at("graphs"), 1);
  EXPECT_THAT(run_tool({"info", zoo("cond")}).out, HasSubstr("operators in 3 graphs"));
}

TEST(Info, FlopsFollowFromTheSizesInTheFile) {
  const Json flops = info({digits()}).at("flops");
  // Three convolutions and a layer, for a batch of one; torch.utils.flop_counter agrees.
  const std::uint64_t conv1 = 2 * 16 * 8 * 8 * 9, conv2 = 2 * 32 * 8 * 8 * 16 * 9,
                      conv3 = 2 * 64 * 4 * 4 * 32 * 9, head = 2 * 64 * 10;
  EXPECT_EQ(flops.at("total"), conv1 + conv2 + conv3 + head);
  EXPECT_EQ(flops.at("symbols"), (Json{{"s77", 1}}));
  EXPECT_EQ(flops.at("operators").at(0),
            (Json{{"name", "aten::conv2d"}, {"flops", conv1 + conv2 + conv3}}));
  EXPECT_EQ(flops.at("calls_of_unknown_size"), 0);
  EXPECT_THAT(run_tool({"info", digits()}).out, HasSubstr(" FLOPs a call for s77 = 1"));
  // A cell of [2, 4] by [4, 4] in a scan; a loop counts as one step.
  EXPECT_EQ(info({zoo("scan")}).at("flops").at("total"), 2 * (2 * 2 * 4 * 4)) << "two steps";
  EXPECT_EQ(info({zoo("while_loop")}).at("flops").at("has_loops"), true);
}

TEST(Info, TiedWeightsAndViewsCountOnce) {
  const Json json = info({zoo("tied_weights"), "--weights"});
  EXPECT_EQ(json.at("parameters").at("tensors"), 2);
  EXPECT_EQ(json.at("parameters").at("elements"), 60);
  EXPECT_EQ(json.at("parameters").at("bytes"), 240);
  // Two halves of one [5, 12] tensor.
  EXPECT_EQ(json.at("buffers").at("elements"), 60);
  EXPECT_EQ(json.at("buffers").at("bytes"), 240);
  EXPECT_EQ(json.at("weights").at(1).at("shared_with"), "embed.weight");
}

TEST(Info, EverythingUnsupportedIsListedAtOnce) {
  const Json json = info({zoo("custom_operator")});
  EXPECT_EQ(json.at("supported"), false);
  ASSERT_EQ(json.at("unsupported").size(), 2u);
  EXPECT_THAT(json.at("unsupported").at(0).get<std::string>(), HasSubstr("zoo::triple"));
  EXPECT_THAT(json.at("unsupported").at(1).get<std::string>(), HasSubstr("zoo::halve"));
  EXPECT_EQ(json.at("inputs").at(0).at("type"), "f32[3, 4]");
}

TEST(Info, ModulesWithTheirParameters) {
  const Json json = info({digits(), "--depth", "1"});
  std::uint64_t sum = 0;
  for (const Json& row : json.at("modules"))
    if (row.at("depth") == 1) sum += row.at("parameters").get<std::uint64_t>();
  EXPECT_EQ(sum, 24122u);
  EXPECT_EQ(json.at("modules").at(0).at("parameters"), 24122);
  EXPECT_EQ(info({digits(), "--depth", "0"}).at("modules").size(), 1u);
}

TEST(Info, BufferChangesAreTold) {
  const Json json = info({zoo("buffer_mutation_functional")});
  EXPECT_THAT(json.at("mutated"), testing::SizeIs(2));
}

TEST(Graph, TextIsWhatTorchFxPrints) {
  const ToolResult result = run_tool({"graph", zoo("relu")});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, StartsWith("graph():\n    %x : [num_users=1] = placeholder[target=x]\n"));
  EXPECT_THAT(run_tool({"graph", zoo("relu"), "--format", "table"}).out, StartsWith("opcode "));
  EXPECT_THAT(run_tool({"graph", zoo("relu"), "--format", "dot"}).out, HasSubstr("digraph"));
  EXPECT_THAT(run_tool({"graph", zoo("relu"), "--format", "cpp"}).out, HasSubstr("at::relu(x)"));
  EXPECT_THAT(run_tool({"graph", zoo("relu"), "--format", "python"}).out,
              HasSubstr("class Relu(torch.nn.Module):"));
}

TEST(Graph, FxTextParsesBackAndCanBeRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("relu.fx");
  const ToolResult result = run_tool({"graph", zoo("relu"), "-o", path});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("wrote " + path + " (fx)"));
  EXPECT_EQ(to_text(*parse_text(read_file(path))), read_file(path));
  EXPECT_EQ(run_tool({"graph", path, "--format", "fx"}).out, read_file(path));
  const ToolResult run = run_tool({"run", path, "-i", "x=f32[2]:-1,1"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("tensor([0., 1.])"));
  EXPECT_EQ(run_tool({"info", path}).status, 0);
}

TEST(Graph, TextFilesWithMistakesPointAtThem) {
  const TemporaryFolder folder;
  const std::string path = folder.write("bad.fx", "not a graph\n");
  const ToolResult result = run_tool({"graph", path});
  EXPECT_EQ(result.status, 4);
  EXPECT_THAT(result.err, HasSubstr(path));
  EXPECT_THAT(result.err, HasSubstr("line 1"));
}

TEST(Graph, ATextFileDoesNotSayWhatItsInputsAre) {
  const TemporaryFolder folder;
  const std::string path = folder.file("relu.fx");
  run_tool({"graph", zoo("relu"), "-o", path});
  const ToolResult result = run_tool({"run", path});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err,
              HasSubstr("input x: the file does not say what it is; give it with -i x="));
}

TEST(Graph, JsonHoldsAllNodesAndArguments) {
  const Json json = run_tool({"graph", digits(), "--format", "json"}).json();
  const Json nodes = info({digits()}).at("nodes");
  EXPECT_EQ(json.at("nodes").size(), nodes.at("total"));
  for (const Json& node : json.at("nodes")) {
    if (node.at("target") != "aten::conv2d") continue;
    EXPECT_TRUE(node.at("args").at(0).contains("node"));
    EXPECT_EQ(node.at("dtype"), "f32");
    EXPECT_EQ(node.at("module"), "conv1");
    EXPECT_THAT(node.at("stack_trace").get<std::string>(), HasSubstr("forward"));
    return;
  }
  FAIL() << "no convolution";
}

TEST(Graph, NoFileIsLeftWhenItCannotBeWritten) {
  const ToolResult result = run_tool({"graph", zoo("relu"), "-o", "/nonexistent/g.fx"});
  EXPECT_EQ(result.status, 4);
}

}  // namespace
}  // namespace fx::cli_test
