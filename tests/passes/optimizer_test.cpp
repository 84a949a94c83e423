// What articles promise of passes: fusion, quantisation, removal of what does nothing.
#include "fx/passes/graph_optimizer.h"
#include "fx/passes/quantize_weights.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

// conv, bn, relu, dropout, a second head that is not used, and a flat linear classifier.
std::shared_ptr<GraphModule> classifier() {
  torch::manual_seed(0);
  auto module = parse_module(
      "%x = placeholder[target=x]\n"
      "%conv = call_module[target=conv](args = (%x,))\n"
      "%bn = call_module[target=bn](args = (%conv,))\n"
      "%relu = call_function[target=torch.relu](args = (%bn,))\n"
      "%drop = call_module[target=drop](args = (%relu,))\n"
      "%one = call_function[target=operator.mul](args = (%drop, 1))\n"
      "%unused = call_module[target=head](args = (%drop,))\n"
      "%flat = call_method[target=flatten](args = (%one, 1))\n"
      "%out = call_module[target=out](args = (%flat,))\n"
      "return %out\n");
  module->set_submodule("conv", std::make_shared<torch::nn::Conv2dImpl>(3, 8, 3));
  module->set_submodule("bn", std::make_shared<torch::nn::BatchNorm2dImpl>(8));
  module->set_submodule("drop", std::make_shared<torch::nn::DropoutImpl>(0.5));
  module->set_submodule("head", std::make_shared<torch::nn::Conv2dImpl>(8, 1, 1));
  module->set_submodule("out", std::make_shared<torch::nn::LinearImpl>(8 * 4 * 4, 10));
  for (int i = 0; i < 3; ++i) module->forward({torch::randn({4, 3, 6, 6}) + i});  // statistics
  module->eval();
  module->recompile();
  return module;
}

Names operations(const GraphModule& module) {
  Names out;
  for (const Node& node : module.graph().nodes())
    if (!node.is_placeholder() && !node.is_output() && node.op() != Opcode::kGetAttr)
      out.emplace_back(node.name());
  return out;
}

TEST(Passes, S0_67_S3_09_quantise_fuse_and_remove) {
  const auto original = classifier();
  const Values input{torch::randn({2, 3, 6, 6})};
  const Value expected = original->forward(input);

  auto fused = original->deep_copy();
  EXPECT_EQ(run_passes(*fused, "fuse_conv_bn").passes[0].rewrites, 1);
  EXPECT_EQ(fused->graph().find_node("bn"), nullptr);
  EXPECT_VALUES_EQ(expected, fused->forward(input));

  auto smaller = original->deep_copy();
  run_passes(*smaller, "shape_prop,remove_dropout,remove_noops,dce", {.example_inputs = input});
  EXPECT_EQ(operations(*smaller), (Names{"conv", "bn", "relu", "flat", "out"}));
  EXPECT_VALUES_EQ(expected, smaller->forward(input));

  auto quantised = original->deep_copy();
  EXPECT_EQ(run_passes(*quantised, "quantize_weights(min_numel=100)").passes[0].rewrites, 2);
  EXPECT_EQ(compare_values(expected, quantised->forward(input), {.rtol = 0, .atol = 0.05}), "");
}

// |w' - w| <= m / 254 in each channel, so |y' - y| <= m / 254 * sum |x| for a linear layer.
TEST(Passes, S4_72_quantised_weights_stay_within_their_bound) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    torch::manual_seed(seed);
    auto module = parse_module(
        "%x = placeholder[target=x]\n%y = call_module[target=lin](args = (%x,))\nreturn %y\n");
    auto linear = std::make_shared<torch::nn::LinearImpl>(64, 32);
    const at::Tensor weight = linear->weight.detach().clone();
    module->set_submodule("lin", linear);
    module->eval();
    const at::Tensor x = torch::randn({5, 64});
    const at::Tensor expected = module->forward({x}).toTensor().detach();
    ASSERT_EQ(run_passes(*module, "quantize_weights").passes[0].rewrites, 1);
    EXPECT_EQ(module->find_tensor("lin.weight_int8").scalar_type(), at::kChar);
    EXPECT_EQ(module->find_tensor("lin.weight_int8").numel(), weight.numel());
    const at::Tensor bound =
        std::get<0>(weight.abs().max(1)) / 254 * x.abs().sum(1, /*keepdim=*/true);
    const at::Tensor error = (module->forward({x}).toTensor() - expected).abs();
    EXPECT_TRUE((error <= bound * 1.001 + 1e-6).all().item<bool>());
    EXPECT_GT(error.max().item<double>(), 0) << "quantised, so not the same";
    EXPECT_TRUE(torch::equal(linear->weight, weight)) << "the original layer keeps its weight";
  }
}

TEST(Passes, weights_that_are_zero_or_empty) {
  const QuantizedWeight zero = quantize_per_channel(torch::zeros({2, 3}));
  EXPECT_TRUE(torch::equal(zero.scales, torch::ones({2})));
  EXPECT_TRUE(torch::equal(zero.values, torch::zeros({2, 3}, torch::kChar)));
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{3, 0}, {0, 3}}) {
    auto module = parse_module(
        "%x = placeholder[target=x]\n%w = get_attr[target=w]\n"
        "%y = call_function[target=aten::linear](args = (%x, %w))\nreturn %y\n");
    module->set_parameter("w", torch::empty(shape));
    module->eval();
    module->recompile();
    const Values input{torch::rand({2, shape[1]})};
    const Value expected = module->forward(input);
    EXPECT_EQ(run_passes(*module, "quantize_weights(min_numel=0)").passes[0].rewrites, 1);
    EXPECT_VALUES_EQ(expected, module->forward(input));
  }
}

TEST(Passes, S1_78_the_manager_lints_after_each_pass) {
  std::vector<std::string> log;
  auto module = classifier();
  PassManager manager("remove_dropout,fuse_conv_bn,dce");
  manager.add_check([&](const GraphModule& checked) {
    checked.graph().lint();
    log.push_back(std::to_string(checked.graph().size()));
  });
  manager.run(*module);
  EXPECT_EQ(log.size(), 4u) << "before the first pass and after each";
  // A pass that breaks the graph is found out by lint, and its work is undone.
  auto broken = classifier();
  const std::string before = to_text(broken->graph());
  PassManager bad({Pass("breaks", [](GraphModule& m) {
    Node& relu = *m.graph().find_node("relu");
    m.graph().find_node("conv")->update_arg(0, relu);
    return true;
  })});
  EXPECT_FX_ERROR(bad.run(*broken), PassError, kPassBrokeGraph, "breaks");
  EXPECT_EQ(to_text(broken->graph()), before);
}

// fuse_conv_bn gives functional convolutions a bias by update_arg.
TEST(Passes, S1_79_update_arg_inside_a_pass) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n"
      "%w = get_attr[target=w]\n%g = get_attr[target=g]\n%b = get_attr[target=b]\n"
      "%m = get_attr[target=m]\n%v = get_attr[target=v]\n"
      "%conv = call_function[target=aten::conv2d](args = (%x, %w, None))\n"
      "%bn = call_function[target=aten::batch_norm](args = (%conv, %g, %b, %m, %v, False, 0.1, "
      "1e-05, False))\n"
      "return %bn\n");
  torch::manual_seed(3);
  module->set_parameter("w", torch::randn({4, 2, 3, 3}));
  for (const char* name : {"g", "b", "m"}) module->set_buffer(name, torch::randn({4}));
  module->set_buffer("v", torch::rand({4}) + 0.5);
  module->eval();
  module->recompile();
  const Values input{torch::randn({1, 2, 5, 5})};
  const Value expected = module->forward(input);
  ASSERT_EQ(run_passes(*module, "fuse_conv_bn").passes[0].rewrites, 1);
  EXPECT_EQ(module->graph().find_node("conv")->arg(2).node().op(), Opcode::kGetAttr)
      << "the bias that it did not have";
  EXPECT_VALUES_EQ(expected, module->forward(input));
  // And in a pass of one's own.
  run_passes(*module, "dce");
  Pass swap("swap", [](GraphModule& m) {
    for (Node& node : m.graph().nodes())
      if (node.calls("torch.sub")) {
        const Argument first = node.arg(0);
        node.update_arg(0, node.arg(1));
        node.update_arg(1, first);
      }
  });
  auto difference =
      symbolic_trace([](Proxy x, Proxy y) { return record_call("torch.sub", {x, y}); });
  PassManager({swap}).run(*difference);
  EXPECT_VALUES_EQ(difference->forward({torch::full({1}, 5.0), torch::full({1}, 2.0)}),
                   Value(torch::full({1}, -3.0)));
}

TEST(GraphOptimizer, S1_80_W_23_fuse_remove_dropout_dce_and_patterns) {
  auto module = classifier();
  const Values input{torch::randn({2, 3, 6, 6})};
  const Value expected = module->forward(input);
  GraphOptimizer optimizer;
  optimizer.add_pattern(
      "relu_to_clamp", [](auto x) { return relu(x); },
      [](auto x) { return record_call("torch.clamp_min", {x, 0.0}); });
  Names order;
  for (const Pass& pass : optimizer.passes()) order.push_back(pass.name());
  EXPECT_EQ(order, (Names{"remove_dropout", "fuse_conv_bn", "constant_fold", "remove_noops",
                          "relu_to_clamp", "cse", "dce"}));
  const PipelineResult result = optimizer.optimize(*module);
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(module->graph().find_calls("torch.relu").size(), 0u);
  EXPECT_EQ(module->graph().find_calls("torch.clamp_min").size(), 1u);
  EXPECT_EQ(module->graph().find_node("bn"), nullptr);
  EXPECT_EQ(module->graph().find_node("drop"), nullptr);
  EXPECT_EQ(module->graph().find_node("unused"), nullptr);
  EXPECT_VALUES_EQ(expected, module->forward(input));
  EXPECT_FALSE(optimizer.optimize(*module).changed) << "a second run finds nothing";

  const auto original = classifier();
  const auto copy = optimize_for_inference(*original);
  EXPECT_NE(original->graph().find_node("bn"), nullptr);
  EXPECT_EQ(copy->graph().find_node("bn"), nullptr);
  EXPECT_VALUES_EQ(original->forward(input), copy->forward(input));
}

}  // namespace
}  // namespace fx
