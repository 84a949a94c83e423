// `fxcpp opt`, `fxcpp passes`, and pipelines in `check` and `graph`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fx/passes/pass.h"
#include "tests/cli/tool.h"
#include "tools/fxcpp/line_diff.h"

namespace fx::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Opt, FusingBatchNormsIsCountedAndVerified) {
  const ToolResult result =
      run_tool({"opt", digits(), "--passes", "fuse_conv_bn,dce", "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.out << result.err;
  const Json json = result.json();
  EXPECT_EQ(json.at("changed"), true);
  EXPECT_EQ(json.at("passes").at(0).at("name"), "fuse_conv_bn");
  EXPECT_EQ(json.at("passes").at(0).at("rewrites"), 3);
  bool found = false;
  for (const Json& row : json.at("operators")) {
    if (row.at("name") != "aten::batch_norm") continue;
    found = true;
    EXPECT_EQ(row.at("before"), 3);
    EXPECT_EQ(row.at("after"), 0);
    EXPECT_EQ(row.at("delta"), -3);
  }
  EXPECT_TRUE(found);
  EXPECT_LT(json.at("nodes_after"), json.at("nodes_before"));
  EXPECT_EQ(json.at("verification").at("verdict"), "pass");
  EXPECT_EQ(json.at("verification").at("outputs").at(0).at("name"), "linear");
}

TEST(Opt, RulesOfAPassAreCounted) {
  const std::vector<std::string> args = {"opt", source("tests/text/simplify.fx"), "--passes",
                                         "simplify(use_metadata=false)", "--no-verify"};
  const ToolResult table = run_tool(args);
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, testing::ContainsRegex("\n  idempotent +2\n"));
  std::vector<std::string> with_json = args;
  with_json.insert(with_json.end(), {"--format", "json"});
  const Json json = run_tool(with_json).json();
  EXPECT_EQ(json.at("passes").at(0).at("rewrites"), 9);
  EXPECT_EQ(json.at("passes").at(0).at("rules").at("idempotent"), 2);
  EXPECT_EQ(json.at("passes").at(0).at("rules").size(), 8u);
}

TEST(Opt, PrintChangedShowsTheLinesOfEachPass) {
  const ToolResult result =
      run_tool({"opt", digits(), "--passes", "fuse_conv_bn,dce", "--print-changed"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("after fuse_conv_bn\n"));
  EXPECT_THAT(result.out, testing::ContainsRegex("\n-.*batch_norm"));
  EXPECT_THAT(result.out, HasSubstr("PASS: 1 output agrees before and after"));
}

TEST(Opt, AVerificationThatFailsHasStatus1AndWritesNothing) {
  // Folded batch norms round differently: no tolerance at all lets that fail.
  const TemporaryFolder folder;
  const ToolResult result =
      run_tool({"opt", digits(), "--passes", "fuse_conv_bn", "--rtol", "0", "--atol", "0", "-i",
                "x=@" + source("models/digits_test_x.npy"), "-o", folder.file("m.fx")});
  EXPECT_EQ(result.status, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr("FAIL: the passes changed the outputs"));
  EXPECT_THAT(result.out, HasSubstr("linear: element ["));
  EXPECT_TRUE(folder.names().empty());
}

TEST(Opt, TheGraphIsWrittenInTheFormatOfTheName) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.fx");
  const ToolResult result =
      run_tool({"opt", digits(), "--passes", "fuse_conv_bn,dce", "-o", path, "--no-verify"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("weights stay in the model's file"));
  EXPECT_THAT(result.err, Not(HasSubstr("generated"))) << "nothing is run, so nothing is needed";
  EXPECT_THAT(read_file(path), Not(HasSubstr("batch_norm")));
  EXPECT_EQ(read_file(path),
            run_tool({"graph", digits(), "--after", "fuse_conv_bn,dce", "--format", "fx"}).out);
}

TEST(Opt, TheModelIsWrittenWithItsWeightsAndReadByEveryVerb) {
  for (const std::string name : {"m.fxa", "m.pt2"}) {
    const TemporaryFolder folder;
    const std::string path = folder.file(name), x = "x=@" + source("models/digits_test_x.npy");
    const ToolResult result =
        run_tool({"opt", digits(), "--passes", "fuse_conv_bn,dce", "-o", path, "-i", x});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("the model with its weights"));
    EXPECT_EQ(folder.names(), std::vector<std::string>{name});
    const Json operators = run_tool({"graph", path, "--format", "json"}).json();
    EXPECT_THAT(operators.dump(), Not(HasSubstr("batch_norm")));
    EXPECT_EQ(
        run_tool({"check", path, "-i", x, "--against", source("models/digits_logits.npy")}).status,
        0);
    const Json info = run_tool({"info", path, "--format", "json"}).json();
    EXPECT_EQ(info["format"], name == "m.fxa" ? "fxa" : "torch.export");
    EXPECT_EQ(info["inputs"][0]["type"], "f32[s77, 1, 8, 8]");
    EXPECT_EQ(run_tool({"info", path}).status, 0);
    if (name == "m.fxa") {
      EXPECT_EQ(run_tool({"graph", path, "--format", "fx"}).out,
                run_tool({"graph", digits(), "--after", "fuse_conv_bn,dce", "--format", "fx"}).out);
    }
  }
}

TEST(Opt, StructuredModelsTakeShapePropagation) {
  for (const char* name : {"dict_io", "keyword_inputs", "namedtuple_io"}) {
    const ToolResult result = run_tool({"opt", zoo(name), "--passes", "shape_prop,dce"});
    EXPECT_EQ(result.status, 0) << name << result.err;
  }
}

TEST(Check, ARewrittenNodeIsNoFaultAsLongAsTheOutputsAgree) {
  const std::string input = "x=@" + source("models/digits_test_x.npy");
  const ToolResult result = run_tool({"check", digits(), "--passes", "fuse_conv_bn", "-i", input,
                                      "--rtol", "1e-4", "--all-nodes", "--format", "json"});
  EXPECT_EQ(result.status, 0) << result.out;
  const Json json = result.json();
  EXPECT_EQ(json.at("verdict"), "pass");
  EXPECT_TRUE(json.at("first_departing_node").is_null());
  // The convolution is compared with the batch norm that went into it, a relu with itself, and
  // weights with nothing.
  std::map<std::string, std::string> references;
  for (const Json& node : json.at("nodes"))
    references.emplace(node.at("name"), node.at("reference"));
  EXPECT_EQ(references.at("conv2d"), "batch_norm");
  EXPECT_EQ(references.at("relu"), "relu");
  EXPECT_FALSE(references.contains("p_conv1_weight"));
}

TEST(Check, TheFirstDepartingNodeFeedsTheOutputThatDiffers) {
  const std::string input = "x=@" + source("models/digits_test_x.npy");
  const std::vector<std::string> call = {"check",  digits(), "--passes",   "fuse_conv_bn",
                                         "-i",     input,    "--rtol",     "0",
                                         "--atol", "0",      "--all-nodes"};
  std::vector<std::string> as_json = call;
  as_json.insert(as_json.end(), {"--format", "json"});
  const ToolResult exact = run_tool(as_json);
  EXPECT_EQ(exact.status, 1) << exact.out;
  const Json json = exact.json();
  EXPECT_EQ(json.at("verdict"), "fail");
  EXPECT_GT(json.at("departing_nodes"), 0);
  EXPECT_EQ(json.at("first_departing_node"), "conv2d");
  EXPECT_THAT(run_tool(call).out,
              HasSubstr("depart; the first is conv2d, which stands for batch_norm\n"));
}

TEST(Passes, TheTableIsThatOfTheLibrary) {
  const Json json = run_tool({"passes", "--format", "json"}).json();
  ASSERT_EQ(json.at("passes").size(), all_passes().size());
  for (std::size_t i = 0; i < all_passes().size(); ++i) {
    EXPECT_EQ(json.at("passes").at(i).at("name"), all_passes()[i].name);
    EXPECT_EQ(json.at("passes").at(i).at("options").size(), all_passes()[i].options.size());
  }
  EXPECT_THAT(run_tool({"passes", "constant_fold"}).out, HasSubstr("max_bytes"));
}

TEST(LineDiff, ShowsWhatWentAndWhatCame) {
  auto text = [](const std::string& before, const std::string& after) {
    std::string out;
    for (const cli::DiffLine& line : cli::diff_lines(before, after))
      out += line.mark + line.text + "\n";
    return out;
  };
  EXPECT_EQ(text("a\nb\nc\n", "a\nb\nc\n"), "");
  EXPECT_EQ(text("a\nb\nc\n", "a\nx\nc\n"), " a\n-b\n+x\n c\n");
  EXPECT_EQ(text("", "a\n"), "+a\n");
  EXPECT_EQ(text("a\nb\nc\nd\ne\nf\n", "b\nc\nd\ne\n"), "-a\n b\n@...\n e\n-f\n");
  EXPECT_EQ(text("a\nb\nc\n", "b\nc\na\n"), "-a\n b\n c\n+a\n");
}

}  // namespace
}  // namespace fx::cli_test
