// The snippets of docs/guide/patterns.md.

#include <fx/fx.h>
#include <fx/graph/tensor_meta.h>
#include <fx/interpret/transformer.h>
#include <fx/passes/extract.h>
#include <fx/passes/pass_manager.h>
#include <fx/passes/replace_modules.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

namespace nn = fx::nn;

TEST(PatternsPage, every_occurrence_is_replaced) {
  Page page("guide/patterns.md");
  Capture captured;
  // [replace]
  auto gm = fx::symbolic_trace([](auto x) {
    auto first = sigmoid(x) * x;  // which operand of + comes first is up to the C++ compiler
    return first + sigmoid(x + 1) * (x + 1);
  });
  fx::PassManager("cse").run(*gm);  // both (x + 1) become one node
  auto matches = fx::replace_pattern(
      *gm, [](auto x) { return sigmoid(x) * x; },
      [](fx::Proxy x) { return fx::record_call("aten::silu", {x}); });
  std::cout << matches.size() << " matches\n" << gm->graph() << "\n";
  // [end]
  page.expect_output("replace", captured.text());
}

TEST(PatternsPage, a_filter_refuses_matches) {
  Page page("guide/patterns.md");
  Capture captured;
  // [filter]
  auto gm = fx::symbolic_trace([](auto x) { return relu(relu(x + 1) * 2); });
  auto reads_a_product = [](const fx::PatternMatch& match, const fx::Graph&, const fx::Graph&) {
    const fx::Node* input = match.placeholders.at(0).node_or_null();
    return input && input->calls("operator.mul");
  };
  auto matches = fx::replace_pattern(
      *gm, [](auto x) { return relu(x); }, [](auto x) { return tanh(x); },
      {.filters = {reads_a_product}});
  std::cout << matches.size() << " match\n" << gm->graph() << "\n";
  // [end]
  page.expect_output("filter", captured.text());
}

TEST(PatternsPage, a_pass_is_a_function) {
  Page page("guide/patterns.md");
  Capture captured;
  // [own_pass]
  fx::Pass halve("halve", [](fx::GraphModule& gm) {
    bool changed = false;
    for (fx::Node& node : gm.graph().nodes())
      if (node.calls("operator.truediv") && node.arg(1) == fx::Argument(2)) {
        node.set_target("operator.mul");
        node.update_arg(1, 0.5);
        changed = true;
      }
    return changed;
  });
  auto gm = fx::symbolic_trace([](auto x) { return x / 2 + relu(x) / 3; });
  fx::PassManager manager({halve, fx::Pass(fx::find_pass("dce"))});
  fx::PipelineResult result = manager.run(*gm);
  for (const fx::PassStatistics& pass : result.passes)
    std::cout << pass.name << (pass.changed ? " changed the graph\n" : " changed nothing\n");
  // [end]
  page.expect_output("own_pass", captured.text());
}

TEST(PatternsPage, what_fails_is_undone) {
  Page page("guide/patterns.md");
  Capture captured;
  // [undone]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) + 1; });
  fx::Pass wrong("wrong", [](fx::GraphModule& module) {
    module.graph().find_node("relu")->set_target("torch.tanh");
  });
  fx::PassManagerOptions options;
  options.example_inputs = fx::Values{torch::tensor({-1.0, 2.0})};
  options.verify_results = true;
  try {
    fx::PassManager({wrong}, options).run(*gm);
  } catch (const fx::PassError& error) {
    std::cout << error.what() << "\n"
              << "still there: " << gm->graph().find_node("relu")->target().str() << "\n";
  }
  // [end]
  page.expect_output("undone", captured.text());
}

TEST(PatternsPage, shapes_for_given_inputs) {
  Page page("guide/patterns.md");
  Capture captured;
  // [shapes]
  auto gm = fx::symbolic_trace([](auto x) { return x.flatten(1).sum(1); });
  fx::ShapeProp(*gm).propagate({torch::ones({2, 3, 4})});
  for (const fx::Node& node : gm->graph().nodes())
    if (const auto* meta = node.meta().get<fx::TensorMeta>("tensor_meta"))
      std::cout << node.name() << ": " << at::IntArrayRef(meta->shape) << "\n";
  // [end]
  page.expect_output("shapes", captured.text());
}

TEST(PatternsPage, modules_are_replaced) {
  Page page("guide/patterns.md");
  Capture captured;
  // [modules]
  nn::Sequential net(nn::Linear(4, 4), nn::ReLU(), nn::Linear(4, 4), nn::ReLU());
  auto gm = fx::symbolic_trace(net);
  fx::PassResult result = fx::replace_modules<torch::nn::ReLUImpl>(
      *gm, [](auto&) { return std::make_shared<torch::nn::GELUImpl>(); });
  gm->recompile();
  std::cout << result.rewrites << " modules replaced\n";
  // [end]
  page.expect_output("modules", captured.text());
}

TEST(PatternsPage, S4_70_a_part_of_a_network) {
  Page page("guide/patterns.md");
  Capture captured;
  // [extract]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x + 1).sum(); });
  auto features = fx::extract_outputs(*gm, {"relu"});
  std::cout << fx::to_string((*features)(torch::tensor({-3.0, 3.0}))) << "\n";
  // [end]
  page.expect_output("extract", captured.text());
}

// [transformer]
/// Emits torch.tanh for torch.sigmoid, and everything else as it was.
struct TanhForSigmoid : fx::Transformer {
  using fx::Transformer::Transformer;
  fx::Value call_function(const fx::Target& target, fx::Values args, fx::KwValues kwargs) override {
    if (target == "torch.sigmoid")
      return fx::Transformer::call_function(fx::Target::function("torch.tanh"), args, kwargs);
    return fx::Transformer::call_function(target, args, kwargs);
  }
};
// [end]

TEST(PatternsPage, a_transformer_makes_a_new_graph) {
  Page page("guide/patterns.md");
  Capture captured;
  // [use_transformer]
  auto gm = fx::symbolic_trace([](auto x) { return sigmoid(x) + 1; });
  std::cout << TanhForSigmoid(*gm).transform()->graph() << "\n";
  // [end]
  page.expect_output("use_transformer", captured.text());
}

}  // namespace
}  // namespace fx::docs_test
