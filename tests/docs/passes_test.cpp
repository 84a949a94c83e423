// The snippets of docs/passes.md.

#include <fx/fx.h>
#include <fx/graph/text.h>
#include <fx/passes/const_subgraphs.h>
#include <fx/passes/decompose.h>
#include <fx/passes/graph_drawer.h>
#include <fx/passes/graph_transform_observer.h>
#include <fx/passes/minimizer.h>
#include <fx/passes/mkldnn_layout.h>
#include <fx/passes/partitioner.h>
#include <fx/passes/pass_manager.h>
#include <fx/passes/pass_wrappers.h>
#include <fx/passes/reinplace.h>
#include <fx/passes/source_partitions.h>
#include <fx/passes/splitter.h>
#include <fx/passes/type_check.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>
#include <set>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

std::shared_ptr<fx::GraphModule> network() {
  return fx::symbolic_trace([](auto x, auto y) {
    auto a = sin(x) + sin(x);
    return relu(a * y) + 1;
  });
}

TEST(PassesPage, running_them) {
  Page page("passes.md");
  auto module = network();
  fx::GraphModule& gm = *module;
  Capture captured;
  // [run]
  fx::run_passes(gm, "remove_dropout,fuse_conv_bn,constant_fold(max_bytes=1048576)");

  fx::PassManager manager("cse,dce", {.until_stable = true});
  fx::PipelineResult result = manager.run(gm);
  std::cout << (result.changed ? "changed" : "unchanged") << " by " << result.passes.size()
            << " runs\n";
  // [end]
  page.expect_output("run", captured.text());
  EXPECT_EQ(gm.graph().find_calls("torch.sin").size(), 1u);
}

TEST(PassesPage, writing_one) {
  auto module = network();
  fx::GraphModule& gm = *module;
  // [own]
  fx::Pass relu_to_gelu("relu_to_gelu", [](fx::GraphModule& gm) {
    bool changed = false;
    for (fx::Node& node : gm.graph().nodes())
      if (node.calls("torch.relu")) {
        node.set_target("torch.nn.functional.gelu");
        changed = true;
      }
    return changed;
  });
  fx::PassManager manager({relu_to_gelu, fx::Pass(fx::find_pass("dce"))});
  manager.run(gm);
  // [end]
  EXPECT_EQ(gm.graph().find_calls("torch.nn.functional.gelu").size(), 1u);
  // [pattern]
  auto matches =
      fx::replace_pattern(gm, [](auto x) { return x + 1; }, [](auto x) { return sigmoid(x); });
  // [end]
  EXPECT_EQ(matches.size(), 1u);
  int lines = 0;
  // [wrappers]
  fx::Pass logged = fx::log_hook(fx::Pass(fx::find_pass("cse")),
                                 [&](const std::string& line) { lines += !line.empty(); });
  fx::PassManager(std::vector{fx::loop_pass(logged, 2)}).run(gm);
  // [end]
  EXPECT_EQ(lines, 2);
}

TEST(PassesPage, in_place) {
  Page page("passes.md");
  Capture captured;
  // [reinplace]
  auto gm = fx::make_fx([](const at::Tensor& x) { return (x * 2 + 1).relu(); }, {torch::rand({3})});
  fx::reinplace(*gm, {torch::rand({3})});
  gm->recompile();
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("reinplace", captured.text());
}

TEST(PassesPage, splits_and_partitions) {
  auto module = network();
  fx::GraphModule& gm = *module;
  // [split]
  // Two halves, each a submodule of its own: submod_0, submod_1.
  int i = 0, half = static_cast<int>(gm.graph().size() / 2);
  auto split = fx::split_module(gm, [&](const fx::Node&) { return i++ < half ? 0 : 1; });
  // [end]
  EXPECT_NE(split->find_submodule("submod_1"), nullptr);
  const fx::Value x = torch::rand({3}), y = torch::rand({3});
  // [splitter]
  // Between an accelerator, which knows sin and add, and the CPU.
  fx::Splitter splitter(gm, {x, y}, fx::support_targets({"torch.sin", "operator.add"}));
  auto parts = splitter.split();  // _run_on_acc_0, _run_on_cpu_1, _run_on_acc_2
  // [end]
  EXPECT_NE(parts->find_submodule("_run_on_acc_2"), nullptr);
  // [partition]
  // What a backend can run becomes a submodule a region: fused_0, fused_1, ...
  fx::CapabilityBasedPartitioner partitioner(
      gm, fx::support_targets({"operator.add", "torch.relu", "operator.getitem"}));
  std::vector<fx::Node*> calls = partitioner.partition_and_fuse();
  // [end]
  EXPECT_EQ(calls.size(), 1u);
}

TEST(PassesPage, constant_parts) {
  auto graph = fx::parse_text(R"(fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%scale = call_function[target=torch.exp](args = (%w,))
%out = call_function[target=torch.mul](args = (%x, %scale))
return %out
)");
  fx::GraphModule gm(graph);
  gm.set_parameter("w", torch::zeros({2}));
  gm.eval();
  // [const]
  auto folded = fx::split_const_subgraphs(gm);
  fx::Value first = (*folded)(torch::ones({2}));  // computes exp(w) once, for all runs
  // [end]
  EXPECT_TRUE(folded->has_folding_been_run());
  EXPECT_TRUE(torch::equal(first.toTensor(), torch::ones({2})));
}

TEST(PassesPage, which_operator_is_wrong) {
  Page page("passes.md");
  auto module = network();
  fx::GraphModule& gm = *module;
  const fx::Value x = torch::rand({3}), y = torch::rand({3});
  Capture captured;
  // [minimizer]
  auto run_on_backend = [](fx::GraphModule& part, const fx::Values& inputs) {
    for (fx::Node& node : part.graph().nodes())
      if (node.calls("operator.mul")) node.set_target("operator.truediv");  // its mistake
    return fx::run_part(part, inputs);
  };
  fx::Minimizer minimizer(gm, {x, y}, fx::run_part, run_on_backend,
                          {.method = fx::TraverseMethod::kBinary});
  for (fx::Node* culprit : minimizer.minimize()) std::cout << culprit->format_node() << "\n";
  // [end]
  page.expect_output("minimizer", captured.text());
}

TEST(PassesPage, looking_at_graphs) {
  auto module = network();
  fx::GraphModule& gm = *module;
  // [drawer]
  std::string dot = fx::FxGraphDrawer(gm, "network").get_dot_graph();  // for `dot -Tsvg`

  fx::GraphTransformObserver observer(gm, "cse");
  observer.apply_gm_pass([](fx::GraphModule& gm) { fx::run_passes(gm, "cse"); });
  std::set<std::string> gone = observer.erased_nodes();
  // [end]
  EXPECT_EQ(gone, std::set<std::string>{"sin_1"});
  EXPECT_NE(dot.find("digraph \"network\""), std::string::npos);
  // [sources]
  auto sources = fx::get_source_partitions(gm.graph(), {"torch.relu", "torch.nn.Linear"});
  // [end]
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources.at("torch.relu").at(0).nodes.size(), 1u);
}

TEST(PassesPage, types_of_shapes) {
  Page page("passes.md");
  fx::nn::Sequential net(fx::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)),
                         fx::nn::ReLU(), fx::nn::Flatten());
  auto module = fx::symbolic_trace(net);
  fx::GraphModule& gm = *module;
  Capture captured;
  // [types]
  gm.graph().placeholders()[0]->set_type("TensorType[Dyn, 3, Dyn, 32]");
  fx::infer_symbolic_types(gm);
  for (const fx::Node& node : gm.graph().nodes())
    std::cout << node.name() << ": " << node.type() << "\n";
  // [end]
  page.expect_output("types", captured.text());
}

TEST(PassesPage, for_inference) {
  torch::NoGradGuard no_grad;
  fx::nn::Sequential net(fx::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3)), fx::nn::BatchNorm2d(8),
                         fx::nn::ReLU(), fx::nn::MaxPool2d(2));
  net->eval();
  auto module = fx::symbolic_trace(net);
  fx::GraphModule& gm = *module;
  const torch::Tensor x = torch::randn({1, 3, 8, 8});
  const torch::Tensor wanted = gm(x).toTensor();
  // [inference]
  fx::optimize_for_inference(gm, {.heuristic = fx::mkldnn_autotuner({x})});
  gm.recompile();
  // [end]
  EXPECT_TRUE(torch::allclose(gm(x).toTensor(), wanted, 1e-4, 1e-5));
  EXPECT_EQ(gm.graph().find_nodes(fx::Opcode::kCallModule, fx::Target::string("1")).size(), 0u);
}

TEST(PassesPage, decompositions) {
  auto module = fx::make_fx([](at::Tensor x) { return torch::silu(x); }, {torch::ones({3})});
  fx::GraphModule& gm = *module;
  const torch::Tensor x = torch::randn({3});
  // [decompose]
  fx::DecompositionTable table;
  table["aten::silu"] = [](fx::Values args, fx::KwValues) -> fx::Value {
    at::Tensor x = args[0].toTensor();
    return x * torch::sigmoid(x);
  };
  auto simple = fx::decompose(gm, table, {x});
  // [end]
  // [run_decompositions]
  auto core = fx::run_decompositions(gm, {x});
  // [end]
  EXPECT_EQ(core->graph().find_calls("aten::silu").size(), 0u);
  EXPECT_TRUE(torch::allclose((*core)(x).toTensor(), torch::silu(x)));
  EXPECT_EQ(simple->graph().find_calls("aten::silu").size(), 0u);
  EXPECT_TRUE(torch::allclose((*simple)(x).toTensor(), torch::silu(x)));
}

}  // namespace
}  // namespace fx::docs_test
