// The snippets of docs/guide/graph.md and docs/guide/editing.md.

#include <fx/fx.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

namespace nn = fx::nn;

struct Scaled : torch::nn::Module {
  at::Tensor scale = register_parameter("scale", torch::ones({4}));
  nn::Linear linear = register_module("linear", nn::Linear(4, 4));
};

TEST(GraphPage, S0_33_all_six_kinds_of_nodes) {
  Page page("guide/graph.md");
  Scaled net;
  Capture captured;
  // [kinds]
  auto graph = std::make_shared<fx::Graph>();
  fx::Node& x = graph->placeholder("x");
  fx::Node& scale = graph->get_attr("scale");
  fx::Node& linear = graph->call_module("linear", {x});
  fx::Node& mul = graph->call_function("operator.mul", {linear, scale});
  fx::Node& clamp = graph->call_method("clamp", {mul}, {{"min", 0.0}});
  graph->output(clamp);
  fx::GraphModule gm(net, graph);  // takes `scale` and `linear` over from the module `net`
  gm.graph().print_tabular();
  // [end]
  page.expect_output("kinds", captured.text());
  for (const char* kind :
       {"placeholder", "get_attr", "call_function", "call_method", "call_module", "output"})
    EXPECT_TRUE(page.says("| `" + std::string(kind) + "` |")) << kind;
  for (const char* field : {"| op |", "| target |", "| args |", "| kwargs |"})
    EXPECT_TRUE(page.says(field)) << field;
}

TEST(GraphPage, walking_and_finding) {
  Page page("guide/graph.md");
  Capture captured;
  // [find]
  auto gm = fx::symbolic_trace([](auto x) {
    auto first = relu(x);
    return first + relu(first * 2);
  });
  fx::Graph& graph = gm->graph();
  for (fx::Node& node : graph.nodes()) std::cout << node.name() << " ";
  std::cout << "\n";
  for (fx::Node* node : graph.find_calls("torch.relu")) std::cout << node->format_node() << "\n";
  std::cout << "returned: " << graph.output_node().arg(0).node().name() << "\n";
  // [end]
  page.expect_output("find", captured.text());
}

TEST(GraphPage, text_reads_back) {
  Page page("guide/graph.md");
  Capture captured;
  // [text]
  auto gm = fx::symbolic_trace([](auto x) { return x * 0.5; });
  std::string text = fx::to_text(gm->graph());
  std::cout << text;
  std::shared_ptr<fx::Graph> read = fx::parse_text(text);
  std::cout << std::boolalpha << read->same_structure(gm->graph()) << "\n";
  // [end]
  page.expect_output("text", captured.text());
}

TEST(GraphPage, code_in_two_languages) {
  Page page("guide/graph.md");
  Capture captured;
  // [code]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) * 2; }, {.class_name = "Doubled"});
  std::cout << gm->python_code() << gm->code();
  // [end]
  page.expect_output("code", captured.text());
}

TEST(EditingPage, S1_02_update_arg_and_what_can_go_wrong) {
  Page page("guide/editing.md");
  EXPECT_TRUE(page.says("torch.fx of PyTorch 2.15"));
  Capture captured;
  // [update_arg_errors]
  auto gm = fx::symbolic_trace([](auto x) { return clamp(x + 1, fx::kw("max", 5)); });
  fx::Node& add = *gm->graph().find_node("add");
  fx::Node& clamp = *gm->graph().find_node("clamp");
  try {
    add.update_arg(2, 10);
  } catch (const fx::GraphError& error) {
    std::cout << error.what() << "\n";
  }
  try {
    clamp.update_arg("maximum", 10);
  } catch (const fx::GraphError& error) {
    std::cout << error.what() << "\n";
  }
  // [end]
  page.expect_output("update_arg_errors", captured.text());
}

TEST(EditingPage, S1_63_chosen_users_are_replaced_by_a_filter) {
  Page page("guide/editing.md");
  Capture captured;
  // [filter]
  auto gm = fx::symbolic_trace([](auto x) {
    auto y = x + 1;
    return y * 2 - y;
  });
  fx::Graph& graph = gm->graph();
  fx::Node& add = *graph.find_node("add");
  auto at = graph.inserting_after(add);
  fx::Node& relu = graph.call_function("torch.relu", {add});
  // All users but the new node itself, which would otherwise read its own result.
  auto changed = add.replace_all_uses_with(relu, [&](fx::Node& user) { return &user != &relu; });
  for (fx::Node* user : changed) std::cout << "changed " << user->name() << "\n";
  graph.lint();
  // [end]
  page.expect_output("filter", captured.text());
  EXPECT_TRUE(page.says("`update_arg` changes one argument of one node"));
}

TEST(EditingPage, S1_72_delete_and_rebuild_with_lint_in_the_recipe) {
  Page page("guide/editing.md");
  EXPECT_TRUE(page.says("graph.lint();"));
  EXPECT_TRUE(page.says("Nothing is done for you"));
}

TEST(EditingPage, S1_76_S1_82_S1_83_each_way_with_its_costs) {
  Page page("guide/editing.md");
  EXPECT_TRUE(page.says("several nodes read the value"));
  EXPECT_TRUE(page.says("A pass has to be right for every graph"));
  for (const char* way : {"[update_arg]", "[replace_all_uses_with]", "[Insert a node]",
                          "[Replace a node]", "[A pattern or a pass]"})
    EXPECT_TRUE(page.says(way)) << way;
}

// [diagnose]
/// What can be checked of an edited module without running it; empty when all is well.
std::string diagnose(fx::GraphModule& gm) {
  try {
    gm.graph().lint({.strict = true});
  } catch (const fx::LintError& error) {
    return error.what();
  }
  for (fx::Node& node : gm.graph().nodes())
    if (node.num_users() == 0 && !node.is_impure())
      return std::string(node.name()) + " is computed, but nobody reads it";
  if (gm.needs_recompile()) return "the graph changed: call recompile()";
  return "";
}
// [end]

TEST(EditingPage, S1_41_the_checklist_and_a_helper_for_what_a_program_can_check) {
  Page page("guide/editing.md");
  for (const char* step :
       {"1. **Value.**", "2. **Place.**", "3. **Recompiled.**", "4. **Lint.**", "5. **Traced.**"})
    EXPECT_TRUE(page.says(step)) << step;
  Capture captured;
  // [use_diagnose]
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  fx::Node& add = *gm->graph().find_node("add");
  gm->graph().find_node("mul")->update_arg(0, *gm->graph().find_node("x"));
  std::cout << diagnose(*gm) << "\n";
  gm->graph().erase_node(add);
  std::cout << diagnose(*gm) << "\n";
  gm->recompile();
  std::cout << (diagnose(*gm).empty() ? "fine" : "not fine") << "\n";
  // [end]
  page.expect_output("use_diagnose", captured.text());
}

}  // namespace
}  // namespace fx::docs_test
