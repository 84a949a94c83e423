// The snippets of docs/guide/troubleshooting.md, and what other pages have to say.

#include <fx/fx.h>
#include <fx/passes/compare.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

TEST(TroublePage, S2_23_name_kind_and_value_at_the_suspected_place) {
  Page page("guide/troubleshooting.md");
  Capture captured;
  // [look]
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  fx::Interpreter interpreter(*gm);
  interpreter.register_node_post_hook([](fx::Node& node, const fx::Value& value) {
    if (node.name() != "add") return;
    std::cout << node.format_node() << "\n"
              << "gives " << fx::describe(value) << ": " << fx::to_string(value) << "\n";
  });
  interpreter.run({torch::tensor({1.0, 2.0})});
  // [end]
  page.expect_output("look", captured.text());
}

TEST(TroublePage, the_first_node_that_differs) {
  Page page("guide/troubleshooting.md");
  Capture captured;
  // [difference]
  auto original = fx::symbolic_trace([](auto x) { return relu(x * 2) - 1; });
  auto edited = original->deep_copy();
  edited->graph().find_node("mul")->update_arg(1, 3);
  auto difference = fx::find_first_difference(*original, *edited, {torch::tensor({1.0, 2.0})});
  std::cout << difference->node << ": " << difference->difference << "\n";
  // [end]
  page.expect_output("difference", captured.text());
}

TEST(TroublePage, S2_22_a_module_of_three_nodes) {
  Page page("guide/troubleshooting.md");
  Capture captured;
  // [small]
  auto graph = std::make_shared<fx::Graph>();
  fx::Node& x = graph->placeholder("x");
  graph->output(graph->call_function("torch.relu", {x}));
  fx::GraphModule gm(graph);
  std::cout << fx::to_string(gm(torch::tensor({-1.0, 1.0}))) << "\n";
  // [end]
  page.expect_output("small", captured.text());
  EXPECT_EQ(graph->size(), 3u);
}

TEST(TroublePage, S0_30_S4_43_a_failing_graph_as_text_fails_the_same_way) {
  Page page("guide/troubleshooting.md");
  Capture captured;
  // [dump]
  auto gm = fx::symbolic_trace([](auto x) { return matmul(x, x.flatten()); });
  const std::string text = fx::to_text(gm->graph());
  std::cout << text;
  auto message = [](fx::GraphModule& module) -> std::string {
    try {
      module(torch::ones({2, 3}));
      return "none";
    } catch (const fx::Error& error) {
      return error.what();
    }
  };
  fx::GraphModule read_back(fx::parse_text(text));
  std::cout << message(read_back) << "\n"
            << (message(read_back) == message(*gm) ? "the same error" : "another error") << "\n";
  // [end]
  page.expect_output("dump", captured.text());
}

TEST(IndexPage, S1_01_names_what_the_project_stands_on) {
  Page page("index.md");
  for (const char* part : {"C++20", "LibTorch", "PyTorch", "CMake"})
    EXPECT_TRUE(page.says(part)) << part;
}

TEST(VersionsPage, S3_29_which_versions_fit_together) {
  Page page("guide/versions.md");
  EXPECT_TRUE(
      page.says("| LibTorch to build with and to run on | 2.9 or newer; tests run on 2.15 |"));
  EXPECT_TRUE(page.says("A version that is too old"));
}

TEST(NamesPage, names_of_torch_fx_and_ours) {
  Page page("guide/names.md");
  for (const char* name : {"`g.inserting_before(n)`", "`Interpreter`", "`symbolic_trace(m)`"})
    EXPECT_TRUE(page.says(name)) << name;
}

}  // namespace
}  // namespace fx::docs_test
