// --format json of every verb: one complete document that a parser takes, with the fields that
// docs/cli.md promises, also when the verdict is bad.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using testing::HasSubstr;

struct JsonCall {
  const char* name;
  std::vector<std::string> args;
  std::vector<std::string> fields;  ///< of the document, in any order
  int status = 0;
};
std::ostream& operator<<(std::ostream& out, const JsonCall& call) { return out << call.name; }

std::vector<JsonCall> json_calls() {
  const std::vector<std::string> info = {
      "file",     "file_bytes",  "format",   "program",   "torch_version", "export_schema",
      "inputs",   "outputs",     "symbols",  "in_spec",   "out_spec",      "mutated",
      "buffers",  "constants",   "nodes",    "operators", "parameters",    "weight_bytes",
      "warnings", "unsupported", "supported"};
  auto with = [](std::vector<std::string> fields, const std::string& more) {
    fields.push_back(more);
    return fields;
  };
  const std::vector<std::string> check = {"file",   "backend", "against", "seed",
                                          "inputs", "verdict", "outputs"};
  std::vector<std::string> nodes = check;
  nodes.insert(nodes.end(), {"nodes", "departing_nodes", "first_departing_node"});
  return {
      {"info", {"info", digits()}, info},
      {"info_weights", {"info", digits(), "--weights"}, {"file", "weights"}},
      {"info_modules", {"info", digits(), "--depth", "1"}, {"file", "modules"}},
      {"info_unsupported", {"info", zoo("custom_operator")}, {"supported", "unsupported"}},
      {"graph", {"graph", digits()}, {"file", "nodes"}},
      {"graph_after", {"graph", digits(), "--after", "fuse_conv_bn,dce"}, {"file", "nodes"}},
      {"opt",
       {"opt", digits(), "--passes", "fuse_conv_bn,dce", "--print-changed"},
       {"file", "pipeline", "passes", "changed", "operators", "nodes_before", "nodes_after",
        "verification", "diffs"}},
      {"opt_mismatch",
       {"opt", digits(), "--passes", "fuse_conv_bn", "--rtol", "0", "--atol", "0"},
       {"file", "verification"},
       1},
      {"run", {"run", digits()}, {"file", "backend", "inputs", "outputs", "symbols"}},
      {"run_not_finite",
       {"run", zoo("relu"), "-i", "f32[3,4]:nan,inf,1,2,3,4,5,6,7,8,9,10"},
       {"outputs"}},
      {"check", {"check", digits()}, check},
      {"check_nodes", {"check", digits(), "--all-nodes"}, nodes},
      {"check_mismatch",
       {"check", digits(), "--passes", "fuse_conv_bn", "--rtol", "0", "--atol", "0", "--all-nodes"},
       with(nodes, "passes"),
       1},
      {"passes", {"passes"}, {"passes"}},
      {"passes_one", {"passes", "constant_fold"}, {"passes"}},
      {"doctor", {"doctor"}, {"checks", "ok", "warnings", "failures"}},
  };
}

class JsonOutput : public testing::TestWithParam<JsonCall> {};

TEST_P(JsonOutput, IsOneCompleteDocument) {
  std::vector<std::string> args = GetParam().args;
  args.insert(args.end(), {"--format", "json"});
  const ToolResult result = run_tool(args);
  ASSERT_EQ(result.status, GetParam().status) << result.err << result.out;
  // Duplicate keys, which parsers drop, would be lost fields.
  std::vector<std::set<std::string>> open;
  std::size_t documents = 0;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::key) {
      EXPECT_TRUE(open.back().insert(parsed.get<std::string>()).second) << parsed;
    }
    if (event == Json::parse_event_t::object_end) {
      open.pop_back();
      documents += open.empty();
    }
    return true;
  };
  const Json json = Json::parse(result.out, watch, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(documents, 1u);
  EXPECT_TRUE(result.out.ends_with("}\n"));
  EXPECT_EQ(json.begin().key(), "schema_version");
  EXPECT_EQ(json.at("schema_version"), 1);
  EXPECT_EQ(json.at("command"), args[0]);
  for (const std::string& field : GetParam().fields) EXPECT_TRUE(json.contains(field)) << field;
}

INSTANTIATE_TEST_SUITE_P(Verbs, JsonOutput, testing::ValuesIn(json_calls()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(JsonOutputs, NoVerbIsLeftOut) {
  std::set<std::string> verbs;
#define FXCPP_VERB(name, arguments, summary) verbs.insert(#name);
#include "tools/fxcpp/verbs.def"
#undef FXCPP_VERB
  for (const JsonCall& call : json_calls()) verbs.erase(call.args[0]);
  EXPECT_THAT(verbs, testing::IsEmpty());
}

TEST(JsonOutputs, GraphKeepsEveryNodeWithItsArguments) {
  const Json json = run_tool({"graph", zoo("arguments"), "--format", "json"}).json();
  const std::string text = run_tool({"graph", zoo("arguments"), "--format", "fx"}).out;
  for (const Json& node : json.at("nodes")) {
    if (node.at("op") == "output") continue;
    EXPECT_THAT(text, HasSubstr("%" + node.at("name").get<std::string>() + " ="));
  }
  EXPECT_GE(json.at("nodes").size(), 3u);
}

}  // namespace
}  // namespace fx::cli_test
