// Constant folding, fusing and comparing, as far as text tests cannot say it.

#include "fx/capture/make_fx.h"
#include "fx/capture/nn.h"
#include "fx/passes/compare.h"
#include "fx/passes/constant_fold.h"
#include "fx/passes/fuse_conv_bn.h"
#include "fx/passes/pass_manager.h"
#include "fx/passes/quantize_weights.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

// --- constant folding
// -------------------------------------------------------------------------------

std::shared_ptr<GraphModule> with_constant_part() {
  auto module = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=w]
%b = get_attr[target=b]
%add = call_function[target=aten::add.Tensor](args = (%w, %b))
%exp = call_function[target=aten::exp](args = (%add,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %exp))
return %mul
)");
  module->set_parameter("w", torch::tensor({1.0f, 2.0f}).set_requires_grad(true));
  module->set_buffer("b", torch::tensor({0.5f, 0.25f}));
  module->eval();
  module->recompile();
  return module;
}

// F14: in one module, in place; F11: what only the folded part used stays owned.
TEST(ConstantFold, F14_InPlaceAndStateKept) {
  const auto module = with_constant_part();
  Graph* graph = &module->graph();
  const Node* x = graph->find_node("x");
  const auto state = module->state_dict();
  const PassResult result = constant_fold(*module);
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.rewrites, 2);
  EXPECT_EQ(&module->graph(), graph);
  EXPECT_EQ(graph->find_node("x"), x);
  EXPECT_EQ(module->state_dict().size(), state.size());
  for (std::size_t i = 0; i < state.size(); ++i)
    EXPECT_TRUE(module->state_dict()[i].second.is_same(state[i].second));
  EXPECT_EQ(module->attr_kind("_folded0"), GraphOwner::AttrKind::kConstant);
  EXPECT_FALSE(module->find_tensor("_folded0").requires_grad());
  EXPECT_TRUE(torch::allclose(module->find_tensor("_folded0"), torch::tensor({1.5f, 2.25f}).exp()));
}

// R-063: the attribute takes the place of the folded node, metadata included.
TEST(ConstantFold, R063_KeepsMetadata) {
  const auto module = with_constant_part();
  module->graph().find_node("exp")->meta().set("note", "from exp");
  module->graph().find_node("mul")->meta().set("note", "from mul");
  constant_fold(*module);
  EXPECT_EQ(*module->graph().find_nodes(Opcode::kGetAttr)[0]->meta().get<std::string>("note"),
            "from exp");
  EXPECT_EQ(*module->graph().find_node("mul")->meta().get<std::string>("note"), "from mul");
}

// R-066: nodes that are not to be folded.
TEST(ConstantFold, R066_Skip) {
  const auto module = with_constant_part();
  ConstantFoldOptions options;
  options.skip = [](const Node& node) { return node.calls("aten::add"); };
  EXPECT_FALSE(constant_fold(*module, options).changed);
  options.skip = [](const Node& node) { return node.calls("aten::exp"); };
  EXPECT_EQ(constant_fold(*module, options).rewrites, 1);
}

// R-068: a call of a nested graph, pure or not.
TEST(ConstantFold, R068_NestedGraphs) {
  for (const bool pure : {true, false}) {
    auto inner = pure ? parse_module(
                            "%x = placeholder[target=x]\n%r = call_function[target=aten::exp](args "
                            "= (%x,))\nreturn %r\n")
                      : parse_module(
                            "%x = placeholder[target=x]\n%r = "
                            "call_function[target=aten::rand_like](args = (%x,))\nreturn %r\n");
    auto module = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=w]
%m = call_module[target=inner](args = (%w,))
%r = call_function[target=aten::mul.Tensor](args = (%x, %m))
return %r
)");
    module->set_buffer("w", torch::ones(2));
    module->set_submodule("inner", inner);
    module->recompile();
    EXPECT_EQ(constant_fold(*module).changed, pure);
  }
}

// Nothing is evaluated with gradients, and nothing of a trained model is folded in training mode.
TEST(ConstantFold, TrainingKeepsGradients) {
  const auto module = with_constant_part();
  module->train();
  EXPECT_FALSE(constant_fold(*module).changed);
  const at::Tensor y = (*module)(torch::ones(2)).toTensor();
  y.sum().backward();
  EXPECT_TRUE(module->find_tensor("w").grad().defined());
  module->eval();
  EXPECT_TRUE(constant_fold(*module).changed);
}

// A folded tensor that the caller writes to would be wrong in the next run.
TEST(ConstantFold, CallersMayWriteToResults) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n%w = get_attr[target=w]\n%e = "
      "call_function[target=aten::exp](args = (%w,))\n%v = call_function[target=aten::view](args = "
      "(%e, [2]))\nreturn (%x, %v)\n");
  module->set_buffer("w", torch::zeros({2, 1}));
  module->recompile();
  constant_fold(*module);
  module->recompile();
  for (int run = 0; run < 2; ++run) {
    const at::Tensor result = elements((*module)(torch::ones(1)))[1].toTensor();
    EXPECT_TRUE(torch::equal(result, torch::ones(2)));
    result.fill_(9);
  }
}

// --- fusing
// -----------------------------------------------------------------------------------------

struct ConvNetImpl : torch::nn::Module {
  ConvNetImpl() {
    conv = register_module("conv", nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).bias(false)));
    bn = register_module("bn", nn::BatchNorm2d(8));
    head = register_module("head", nn::Conv2d(torch::nn::Conv2dOptions(8, 4, 1)));
    torch::NoGradGuard no_grad;
    bn->running_mean.normal_();
    bn->running_var.uniform_(0.5, 2.0);
    bn->weight.normal_();
    bn->bias.normal_();
  }
  template <typename T>
  T forward(T x) {
    return head(relu(bn(conv(x))));
  }
  static Proxy relu(const Proxy& x) { return fx::relu(x); }
  static at::Tensor relu(const at::Tensor& x) { return torch::relu(x); }

  nn::Conv2d conv{nullptr}, head{nullptr};
  nn::BatchNorm2d bn{nullptr};
};
TORCH_MODULE(ConvNet);

// S3-09, S4-73, S0-67: fused by modules; the model it was captured from stays as it is.
TEST(FuseConvBn, S4_73_TracedModel) {
  torch::manual_seed(3);
  ConvNet net;
  net->eval();
  const auto module = symbolic_trace(*net);
  ASSERT_EQ(module->graph().find_nodes(Opcode::kCallModule).size(), 3u);
  const at::Tensor x = torch::randn({2, 3, 8, 8});
  const at::Tensor expected = net->forward(x);
  const at::Tensor weight = net->conv->weight.clone();
  torch::manual_seed(5);
  const at::Tensor drawn = torch::rand(2);
  torch::manual_seed(5);
  run_passes(*module, "fuse_conv_bn");
  EXPECT_TRUE(torch::equal(torch::rand(2), drawn));
  EXPECT_EQ(module->graph().find_nodes(Opcode::kCallModule).size(), 2u);
  EXPECT_TRUE(torch::allclose((*module)(x).toTensor(), expected, 1e-5, 1e-5));
  EXPECT_TRUE(torch::equal(net->conv->weight, weight));
  EXPECT_FALSE(net->conv->bias.defined());
  EXPECT_TRUE(torch::equal(net->forward(x), expected));
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : module->state_dict()) keys.push_back(key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"conv.weight", "conv.bias", "head.weight", "head.bias"}));
}

TEST(FuseConvBn, CapturedModel) {
  torch::manual_seed(3);
  ConvNet net;
  net->eval();
  const at::Tensor x = torch::randn({2, 3, 8, 8});
  const auto module = make_fx(*net, {x});
  module->eval();
  const at::Tensor expected = net->forward(x);
  const PipelineResult result = run_passes(*module, "fuse_conv_bn");
  EXPECT_EQ(result.passes[0].rewrites, 1) << module->graph().str();
  EXPECT_TRUE(torch::allclose((*module)(x).toTensor(), expected, 1e-5, 1e-5));
  EXPECT_TRUE(torch::equal(net->forward(x), expected));
}

// In training mode the weights of a functional call go on changing.
TEST(FuseConvBn, TrainableWeights) {
  auto module = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=w]
%m = get_attr[target=m]
%v = get_attr[target=v]
%c = call_function[target=aten::conv1d](args = (%x, %w))
%n = call_function[target=aten::batch_norm](args = (%c, None, None, %m, %v, False, 0.1, 1e-05, False))
return %n
)");
  module->set_parameter("w", torch::randn({2, 3, 1}).set_requires_grad(true));
  module->set_buffer("m", torch::zeros(2));
  module->set_buffer("v", torch::ones(2));
  module->train();
  EXPECT_FALSE(fuse_conv_bn(*module).changed);
  module->eval();
  EXPECT_TRUE(fuse_conv_bn(*module).changed);
  EXPECT_TRUE(module->find_tensor("w").requires_grad());
  EXPECT_EQ(module->named_parameters().size(), 2u) << "the weight and the new bias";
}

// The arithmetic is done in double: what is lost is one rounding.
TEST(FuseConvBn, DoublePrecision) {
  torch::manual_seed(1);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::Tensor weight = torch::randn({4, 3, 2, 2}).to(dtype);
    ChannelAffine bn{torch::randn(4), torch::rand(4) * 1e-3, torch::randn(4), torch::randn(4),
                     1e-5};
    const auto [fused, bias] = fuse_bn_into(weight, {}, bn);
    EXPECT_EQ(fused.scalar_type(), dtype);
    EXPECT_EQ(bias.scalar_type(), dtype);
    const at::Tensor scale =
        bn.weight.to(at::kDouble) / (bn.variance.to(at::kDouble) + bn.eps).sqrt();
    const at::Tensor exact = weight.to(at::kDouble) * scale.reshape({-1, 1, 1, 1});
    const at::Tensor exact_bias = bn.bias.to(at::kDouble) - bn.mean.to(at::kDouble) * scale;
    if (dtype == at::kDouble) {
      // The order of the operations is free: a few units in the last place of double.
      EXPECT_TRUE(torch::allclose(fused, exact, 1e-14, 1e-14));
      EXPECT_TRUE(torch::allclose(bias, exact_bias, 1e-14, 1e-14));
    } else {
      EXPECT_TRUE(torch::equal(fused, exact.to(dtype)));
      EXPECT_TRUE(torch::equal(bias, exact_bias.to(dtype)));
    }
  }
}

// Many layers: time grows with their number.
TEST(FuseConvBn, ManyLayers) {
  std::string text = "%x = placeholder[target=x]\n";
  std::string last = "%x";
  for (int i = 0; i < 300; ++i) {
    const std::string n = std::to_string(i);
    text += "%c" + n + " = call_module[target=layers.c" + n + "](args = (" + last + ",))\n%b" + n +
            " = call_module[target=layers.b" + n + "](args = (%c" + n + ",))\n";
    last = "%b" + n;
  }
  auto module = parse_module(text + "return " + last + "\n");
  for (int i = 0; i < 300; ++i) {
    module->set_submodule("layers.c" + std::to_string(i),
                          std::make_shared<torch::nn::Conv1dImpl>(2, 2, 1));
    module->set_submodule("layers.b" + std::to_string(i),
                          std::make_shared<torch::nn::BatchNorm1dImpl>(2));
  }
  module->eval();
  EXPECT_EQ(fuse_conv_bn(*module).rewrites, 300);
  EXPECT_EQ(module->graph().size(), 302u);
}

// --- attributes of nested modules that the graph around them uses
// -------------------------------------------------------------------------------------------------

// `inner` holds a layer and a normalization, which its graph calls or reads the tensors of. The
// graph around calls the same modules or reads the layer's weight, and may call `inner` as well.
std::shared_ptr<GraphModule> with_shared_layer(bool inner_calls, bool outer_calls,
                                               bool calls_inner) {
  auto inner = parse_module(inner_calls ? R"(
%x = placeholder[target=x]
%c = call_module[target=conv](args = (%x,))
%n = call_module[target=bn](args = (%c,))
return %n
)"
                                        : R"(
%x = placeholder[target=x]
%w = get_attr[target=conv.weight]
%m = get_attr[target=bn.running_mean]
%v = get_attr[target=bn.running_var]
%c = call_function[target=aten::conv1d](args = (%x, %w))
%n = call_function[target=aten::batch_norm](args = (%c, None, None, %m, %v, False, 0.1, 1e-05, False))
return %n
)");
  if (inner_calls) {
    inner->set_submodule("conv", std::make_shared<torch::nn::Conv1dImpl>(3, 3, 1));
    inner->set_submodule("bn", std::make_shared<torch::nn::BatchNorm1dImpl>(3));
  } else {
    inner->set_parameter("conv.weight", torch::randn({3, 3, 1}));
    inner->set_buffer("bn.running_mean", torch::zeros(3));
    inner->set_buffer("bn.running_var", torch::zeros(3));
  }
  inner->find_tensor("bn.running_mean").copy_(torch::tensor({1.0f, -2.0f, 3.0f}));
  inner->find_tensor("bn.running_var").fill_(4);
  const std::string own_use = outer_calls && inner_calls
                                  ? "%c = call_module[target=inner.conv](args = (%x,))\n"
                                    "%n = call_module[target=inner.bn](args = (%c,))\n"
                                  : "%w = get_attr[target=inner.conv.weight]\n"
                                    "%n = call_function[target=aten::conv1d](args = (%x, %w))\n";
  auto module = parse_module("%x = placeholder[target=x]\n" + own_use +
                             (calls_inner ? "%i = call_module[target=inner](args = (%x,))\n"
                                            "return (%n, %i)\n"
                                          : "return %n\n"));
  module->set_submodule("inner", inner);
  module->eval();
  module->recompile();
  return module;
}

void expect_same_after(const std::string& passes, double tolerance) {
  for (const bool inner_calls : {true, false})
    for (const bool outer_calls : {true, false})
      for (const bool calls_inner : {true, false}) {
        SCOPED_TRACE(passes + std::to_string(inner_calls) + std::to_string(outer_calls) +
                     std::to_string(calls_inner));
        torch::manual_seed(2);
        const auto module = with_shared_layer(inner_calls, outer_calls, calls_inner);
        const at::Tensor x = torch::randn({2, 3, 4});
        const Value expected = (*module)(x);
        run_passes(*module, passes);
        module->recompile();
        EXPECT_EQ(compare_values(expected, (*module)(x), {.rtol = tolerance, .atol = tolerance}),
                  "");
        const auto inner = std::dynamic_pointer_cast<GraphModule>(module->find_submodule("inner"));
        ASSERT_NE(inner, nullptr);
        EXPECT_NO_THROW(inner->graph().lint());
        EXPECT_NO_THROW(inner->forward({Value(x)}));
      }
}

TEST(NestedAttributes, QuantizedWhereTheGraphAroundUsesThem) {
  expect_same_after("quantize_weights(min_numel=1)", 0.05);
}

TEST(NestedAttributes, FusedWhereTheGraphAroundUsesThem) {
  expect_same_after("fuse_conv_bn", 1e-5);
}

TEST(NestedAttributes, UnusedOnesDeleted) {
  expect_same_after("constant_fold(remove_unused_attributes=true)", 0);
}

// What no other graph uses is replaced where it stands: nothing is left of the old weights.
TEST(NestedAttributes, DeletedWhereNobodyElseUsesThem) {
  for (const bool fuse : {true, false}) {
    const auto module = with_shared_layer(true, true, true);
    for (const char* name : {"n", "c"}) {
      Node& node = *module->graph().find_node(name);
      node.replace_all_uses_with(*module->graph().find_node("x"));
      module->graph().erase_node(node);
    }
    run_passes(*module, fuse ? "fuse_conv_bn" : "quantize_weights(min_numel=1)");
    EXPECT_EQ(module->find_tensor("inner.conv.weight").defined(), fuse);
    EXPECT_EQ(module->find_submodule("inner.bn") == nullptr, fuse);
    EXPECT_EQ(module->find_tensor("inner.conv.weight_int8").defined(), !fuse);
  }
}

// --- comparing
// --------------------------------------------------------------------------------------

// S0-69: the first node that differs between an original and a transformed module.
TEST(Compare, S0_69_FirstDifference) {
  auto original = symbolic_trace([](auto x) { return sin(relu(neg(x))) + 1; });
  auto changed = original->deep_copy();
  run_passes(*original, "shape_prop", {.example_inputs = Values{torch::randn({2, 3})}});
  const Values inputs = random_inputs(original->graph(), 4);
  EXPECT_EQ(inputs[0].toTensor().sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_VALUES_EQ(inputs[0], random_inputs(original->graph(), 4)[0]);
  EXPECT_FALSE(find_first_difference(*original, *changed, inputs).has_value());
  changed->graph().find_node("relu")->set_target("torch.sigmoid");
  const auto difference = find_first_difference(*original, *changed, inputs);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->node, "relu");
  EXPECT_THAT(difference->text, testing::HasSubstr("call_function[target=torch.relu]"));
  EXPECT_THAT(difference->text, testing::HasSubstr("call_function[target=torch.sigmoid]"));
  EXPECT_THAT(difference->difference, testing::HasSubstr("difference"));
  // Other names: at least the outputs are compared.
  auto renamed = symbolic_trace([](auto x) { return cos(x); });
  EXPECT_EQ(find_first_difference(*original, *renamed, inputs)->node, "output");
}

TEST(Compare, RandomInputs) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n%n = placeholder[target=n]\n%b = placeholder[target=b]\nreturn "
      "(%x, %n, %b)\n");
  EXPECT_FX_ERROR(random_inputs(module->graph()), PassError, kBadPassOption,
                  "random_inputs: placeholder 'x' has no tensor_meta; run shape_prop first");
  const at::Tensor probe = torch::rand(1);
  run_passes(*module, "shape_prop",
             {.example_inputs = Values{torch::zeros(2, at::kHalf), torch::zeros(3, at::kLong),
                                       torch::zeros(4, at::kBool)}});
  torch::manual_seed(1);
  const Values inputs = random_inputs(module->graph());
  const at::Tensor after = torch::rand(1);
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal(after, torch::rand(1)));
  EXPECT_EQ(inputs[0].toTensor().scalar_type(), at::kHalf);
  EXPECT_EQ(inputs[1].toTensor().scalar_type(), at::kLong);
  EXPECT_EQ(inputs[2].toTensor().scalar_type(), at::kBool);
}

TEST(Compare, RunOnCopiesKeepsInputs) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n%r = call_method[target=add_](args = (%x, 1.0))\nreturn %r\n");
  const at::Tensor x = torch::zeros(2);
  EXPECT_VALUES_EQ(run_on_copies(*module, {x}), torch::ones(2));
  EXPECT_TRUE(torch::equal(x, torch::zeros(2)));
}

}  // namespace
}  // namespace fx
