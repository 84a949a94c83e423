// What cpp_test printed of some programs: see minimise_test.cpp, which says which.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/graph/text.h"
#include "tests/random/literals.h"
#include "tests/random/relu_off.h"

namespace fx::fuzz {
namespace {

// clang-format off
TEST(Printed, relu_off) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%input0 = placeholder[target=input0]
%relu = call_function[target=torch.relu](args = (%input0,), kwargs = {})
return %relu
)fx"));
  module->eval();
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(floats(at::kDouble, {}, {0.0}));
  EXPECT_NE(check_passes(program, std::vector{relu_off()}, false), "");
}

TEST(Printed, conv1d_and_norm) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%dropout = call_function[target=torch.dropout](args = (%x0, 0.5, False), kwargs = {})
%tanh = call_method[target=tanh](args = (%dropout,), kwargs = {})
%unsqueeze = call_method[target=unsqueeze](args = (%tanh, 0), kwargs = {})
%unsqueeze_1 = call_function[target=aten::unsqueeze](args = (%unsqueeze, 0), kwargs = {})
%unsqueeze_2 = call_function[target=aten::unsqueeze](args = (%unsqueeze_1, 0), kwargs = {})
%layer0 = call_module[target=layer0](args = (%unsqueeze_2,), kwargs = {})
%layer1 = call_module[target=layer1](args = (%layer0,), kwargs = {})
%unsqueeze_3 = call_function[target=torch.unsqueeze](args = (%dropout, -1), kwargs = {})
%amin = call_function[target=torch.amin](args = (%x1, [0], True), kwargs = {})
return %unsqueeze_1
)fx"));
  module->eval();
  const auto module_made0 = std::make_shared<torch::nn::Conv1dImpl>(torch::nn::Conv1dOptions(1, 4, {1}).bias(false));
  module_made0->to(at::kDouble);
  module_made0->train(false);
  module->set_submodule("layer0", module_made0);
  const auto module_made1 = std::make_shared<torch::nn::BatchNorm1dImpl>(4);
  module_made1->to(at::kDouble);
  module_made1->train(false);
  module->set_submodule("layer1", module_made1);
  fill(*module, "layer0.weight", floats(at::kDouble, {4, 1, 1}, {0.9921875, 0.9921875, 0.9921875, 0.9921875}));
  fill(*module, "layer1.weight", floats(at::kDouble, {4}, {0.9921875, 0.9921875, 0.9921875, 0.9921875}));
  fill(*module, "layer1.bias", floats(at::kDouble, {4}, {0.9921875, 0.9921875, 0.9921875, 0.9921875}));
  fill(*module, "layer1.running_mean", floats(at::kDouble, {4}, {1.4315745830535889, 0.9406096935272217, 2.0824697017669678, 1.7166290283203125}));
  fill(*module, "layer1.running_var", floats(at::kDouble, {4}, {1.8530921936035156, 0.7355601787567139, 2.3824799060821533, 0.6903789043426514}));
  fill(*module, "layer1.num_batches_tracked", floats(at::kDouble, {}, {0.5834932327270508}));
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(floats(at::kDouble, {}, {1.7058680057525635}));
  program.inputs.emplace_back(integers(at::kInt, {1}, {4}));
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, conv2d_and_norm) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%clone = call_function[target=torch.clone](args = (%x1,), kwargs = {})
%slice_tensor = call_function[target=aten::slice.Tensor](args = (%x0, 1, 2, 2, 2), kwargs = {})
%nested2 = call_module[target=nested2](args = (%x1,), kwargs = {})
%exp = call_function[target=torch.exp](args = (%x1,), kwargs = {})
return (%x0,)
)fx"));
  module->eval();
  const auto module_0 = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%input0 = placeholder[target=input0]
%sub = call_function[target=operator.sub](args = (%input0, 0), kwargs = {})
%minimum = call_function[target=aten::minimum](args = (%input0, %input0), kwargs = {})
%sub_1 = call_function[target=operator.sub](args = (%input0, 0), kwargs = {})
%div_scalar = call_function[target=aten::div.Scalar](args = (%minimum, 1), kwargs = {})
%tanh = call_function[target=torch.tanh](args = (%input0,), kwargs = {})
%unsqueeze = call_function[target=aten::unsqueeze](args = (%tanh, 0), kwargs = {})
%unsqueeze_1 = call_function[target=aten::unsqueeze](args = (%unsqueeze, 0), kwargs = {})
%unsqueeze_2 = call_function[target=aten::unsqueeze](args = (%unsqueeze_1, 0), kwargs = {})
%unsqueeze_3 = call_function[target=aten::unsqueeze](args = (%unsqueeze_2, 0), kwargs = {})
%block_layer0 = call_module[target=block.layer0](args = (%unsqueeze_3,), kwargs = {})
%block_layer1 = call_module[target=block.layer1](args = (%block_layer0,), kwargs = {})
return %block_layer1
)fx"));
  module_0->eval();
  const auto module_0_made0 = std::make_shared<torch::nn::Conv2dImpl>(torch::nn::Conv2dOptions(1, 2, {1, 1}).bias(true));
  module_0_made0->to(at::kDouble);
  module_0_made0->train(false);
  module_0->set_submodule("block.layer0", module_0_made0);
  const auto module_0_made1 = std::make_shared<torch::nn::BatchNorm2dImpl>(2);
  module_0_made1->to(at::kDouble);
  module_0_made1->train(false);
  module_0->set_submodule("block.layer1", module_0_made1);
  fill(*module_0, "block.layer0.weight", floats(at::kDouble, {2, 1, 1, 1}, {0.9921875, 0.9921875}));
  fill(*module_0, "block.layer0.bias", floats(at::kDouble, {2}, {0.9921875, 0.9921875}));
  fill(*module_0, "block.layer1.weight", floats(at::kDouble, {2}, {0.9921875, 0.9921875}));
  fill(*module_0, "block.layer1.bias", floats(at::kDouble, {2}, {0.9921875, 0.9921875}));
  fill(*module_0, "block.layer1.running_mean", floats(at::kDouble, {2}, {2.082939624786377, 1.6098687648773193}));
  fill(*module_0, "block.layer1.running_var", floats(at::kDouble, {2}, {1.775566577911377, 1.2038993835449219}));
  fill(*module_0, "block.layer1.num_batches_tracked", floats(at::kDouble, {}, {2.4632956981658936}));
  module->set_submodule("nested2", module_0);
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(integers(at::kInt, {3, 3}, {-3, 3, 2147483647, 2147483647, -5, 2147483647, 2, 7, -10}));
  program.inputs.emplace_back(floats(at::kDouble, {}, {0.3859834671020508}));
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, linear_and_norm) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%x2 = placeholder[target=x2]
%x3 = placeholder[target=x3]
%tanh = call_function[target=aten::tanh](args = (%x1,), kwargs = {})
%unsqueeze = call_function[target=aten::unsqueeze](args = (%tanh, 0), kwargs = {})
%flatten = call_function[target=torch.flatten](args = (%unsqueeze, 1), kwargs = {})
%layer0 = call_module[target=layer0](args = (%flatten,), kwargs = {})
%layer1 = call_module[target=layer1](args = (%layer0,), kwargs = {})
%to_dtype = call_function[target=aten::to.dtype](args = (%x2, torch.bfloat16), kwargs = {})
return (%unsqueeze, 2.5, %x1, [%unsqueeze, %flatten, %x2, %x2])
)fx"));
  module->eval();
  const auto module_made0 = std::make_shared<torch::nn::LinearImpl>(torch::nn::LinearOptions(3, 3).bias(true));
  module_made0->train(false);
  module->set_submodule("layer0", module_made0);
  const auto module_made1 = std::make_shared<torch::nn::BatchNorm1dImpl>(3);
  module_made1->train(false);
  module->set_submodule("layer1", module_made1);
  fill(*module, "layer0.weight", floats(at::kFloat, {3, 3}, {0.9921875, -0.09375, -0.8125, 0.9921875, -0.203125, -0.03125, 0.9921875, 0.3203125, 0.46875}));
  fill(*module, "layer0.bias", floats(at::kFloat, {3}, {0.9921875, 0.9921875, 0.9921875}));
  fill(*module, "layer1.weight", floats(at::kFloat, {3}, {0.9921875, 0.9921875, 0.9921875}));
  fill(*module, "layer1.bias", floats(at::kFloat, {3}, {0.9921875, 0.9921875, 0.9921875}));
  fill(*module, "layer1.running_mean", floats(at::kFloat, {3}, {1.238274335861206, 1.8125965595245361, 1.1877961158752441}));
  fill(*module, "layer1.running_var", floats(at::kFloat, {3}, {2.2104859352111816, 2.2603609561920166, 1.0996923446655273}));
  fill(*module, "layer1.num_batches_tracked", floats(at::kFloat, {}, {1.3377933502197266}));
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(at::empty_strided({2, 2, 3}, {1, 2, 4}, at::kFloat).copy_(floats(at::kFloat, {2, 2, 3}, {-0.756218433380127, 1.5639684200286865, -1.5093789100646973, -1.3361256122589111, -0.4682645797729492, 0.8419172763824463, 1.202470302581787, -1.0765984058380127, 0.9657514095306396, 0.5619871616363525, 1.1663832664489746, -1.6950457096099854})));
  program.inputs.emplace_back(floats(at::kFloat, {3}, {0.5881590843200684, 1.4092357158660889, -0.3824279308319092}));
  program.inputs.emplace_back(floats(at::kDouble, {1, 2, 1, 3}, {1.6641149520874023, 0.9913744926452637, -0.6265459060668945, -1.0711865425109863, -0.5228006839752197, -0.5680243968963623}));
  program.inputs.emplace_back(integers(at::kInt, {3, 2}, {-2, -2, -8, 6, 2, -2}));
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, layer_norm_module) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%zero_ = call_function[target=aten::zero_](args = (%x0,), kwargs = {})
%select = call_function[target=torch.select](args = (%zero_, 1, 0), kwargs = {})
%tril = call_method[target=tril](args = (%x1,), kwargs = {})
%layer0 = call_module[target=layer0](args = (%x0,), kwargs = {})
return [%x1, (%tril,)]
)fx"));
  module->eval();
  const auto module_made0 = std::make_shared<torch::nn::LayerNormImpl>(torch::nn::LayerNormOptions({1}));
  module_made0->train(false);
  module->set_submodule("layer0", module_made0);
  fill(*module, "layer0.weight", floats(at::kFloat, {1}, {0.9921875}));
  fill(*module, "layer0.bias", floats(at::kFloat, {1}, {0.9921875}));
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(at::empty_strided({2, 2, 3, 1}, {1, 6, 2, 12}, at::kFloat).copy_(floats(at::kFloat, {2, 2, 3, 1}, {-1.5270030498504639, 1.087195873260498, 0.5677618980407715, -0.3306305408477783, -1.4920990467071533, 1.0833196640014648, 0.3000144958496094, -1.0990290641784668, 0.004205465316772461, -0.3604564666748047, -1.8688299655914307, 1.3402633666992188})));
  program.inputs.emplace_back(floats(at::kFloat, {2, 3, 2, 2}, {0.6765949726104736, 0.6765949726104736, -1.1463568210601807, -1.1463568210601807, -0.0, -0.0, 0.5735430717468262, 0.5735430717468262, -0.08346986770629883, -0.08346986770629883, 1.8565537929534912, 1.8565537929534912, -0.4164607524871826, -0.4164607524871826, 1.402529001235962, 1.402529001235962, -1.8790950775146484, -1.8790950775146484, -1.7259044647216797, -1.7259044647216797, 1.8306891918182373, 1.8306891918182373, 1.0413320064544678, 1.0413320064544678}));
  program.writes = true;
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, embedding_module) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%x2 = placeholder[target=x2]
%x3 = placeholder[target=x3]
%alias = call_function[target=aten::alias](args = (%x0,), kwargs = {})
%to = call_method[target=to](args = (%x0, torch.int64), kwargs = {})
%and_ = call_function[target=operator.and_](args = (%to, 3), kwargs = {})
%layer0 = call_module[target=layer0](args = (%and_,), kwargs = {})
%permute = call_function[target=aten::permute](args = (%to, [1, 2, 3, 0]), kwargs = {})
%sub = call_function[target=operator.sub](args = (%x3, %x1), kwargs = {})
%select_int = call_function[target=aten::select.int](args = (%and_, 3, 0), kwargs = {})
return %alias
)fx"));
  module->eval();
  const auto module_made0 = std::make_shared<torch::nn::EmbeddingImpl>(4, 3);
  module_made0->train(false);
  module->set_submodule("layer0", module_made0);
  fill(*module, "layer0.weight", floats(at::kFloat, {4, 3}, {0.9921875, -0.9609375, -0.0859375, 0.9921875, 0.6015625, -0.015625, 0.9921875, -0.1015625, -0.671875, 0.9921875, 0.53125, 0.0625}));
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(integers(at::kByte, {2, 1, 1, 1}, {161, 139}));
  program.inputs.emplace_back(floats(at::kDouble, {}, {0.14620423316955566}));
  program.inputs.emplace_back(floats(at::kBFloat16, {2, 2, 2}, {0.515625, 1.4375, -1.1015625, NAN, 0.435546875, -1.75, -0.42578125, -0.251953125}));
  program.inputs.emplace_back(integers(at::kLong, {1}, {-9}));
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, activation_module) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%stack = call_function[target=aten::stack](args = ([%x0, %x0],), kwargs = {})
%sign = call_function[target=aten::sign](args = (%x1,), kwargs = {})
%sign_1 = call_method[target=sign](args = (%sign,), kwargs = {})
%stack_1 = call_function[target=aten::stack](args = ([%x0, %x0],), kwargs = {})
%layer0 = call_module[target=layer0](args = (%sign_1,), kwargs = {})
%layer0_1 = call_module[target=layer0](args = (%sign_1,), kwargs = {})
return (%layer0_1,)
)fx"));
  module->eval();
  const auto module_made0 = std::make_shared<torch::nn::ReLUImpl>(torch::nn::ReLUOptions(false));
  module_made0->train(false);
  module->set_submodule("layer0", module_made0);
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(at::empty_strided({3, 3}, {1, 3}, at::kFloat).copy_(floats(at::kFloat, {3, 3}, {0.7937445640563965, -0.7757835388183594, -INFINITY, -0.07934212684631348, -1.3078997135162354, -1.136845588684082, 0.8695363998413086, NAN, 0.5648729801177979})));
  program.inputs.emplace_back(floats(at::kFloat, {}, {0.0}));
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, dropout_module) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%topk = call_function[target=aten::topk](args = (%x1, 1, 0), kwargs = {})
%getitem = call_function[target=operator.getitem](args = (%topk, 0), kwargs = {})
%squeeze_dim = call_function[target=aten::squeeze.dim](args = (%x1, -1), kwargs = {})
%layer0 = call_module[target=layer0](args = (%x0,), kwargs = {})
%slice_tensor = call_function[target=aten::slice.Tensor](args = (%getitem, 0, -1, 9223372036854775807, 2), kwargs = {})
%mean = call_method[target=mean](args = (%getitem, [0]), kwargs = {keepdim: True})
return (%x0,)
)fx"));
  module->eval();
  const auto module_made0 = std::make_shared<torch::nn::DropoutImpl>(0.5);
  module_made0->train(false);
  module->set_submodule("layer0", module_made0);
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(floats(at::kFloat, {}, {0.6016056537628174}));
  program.inputs.emplace_back(floats(at::kFloat, {2, 1}, {-0.6079070568084717, -1.8441522121429443}));
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, identity_module) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%slice_tensor = call_function[target=aten::slice.Tensor](args = (%x0, 0, 0, 1), kwargs = {})
%fill__scalar = call_function[target=aten::fill_.Scalar](args = (%slice_tensor, 3), kwargs = {})
%getitem = call_function[target=operator.getitem](args = (%x0, (None, slice(None, 2, None))), kwargs = {})
%layer0 = call_module[target=layer0](args = (%fill__scalar,), kwargs = {})
%transpose = call_method[target=transpose](args = (%x0, 2, 3), kwargs = {})
return [%layer0, %layer0, %x0, {'key0': %layer0, 'key1': %transpose, 'key2': %transpose}]
)fx"));
  module->eval();
  const auto module_made0 = std::make_shared<torch::nn::IdentityImpl>();
  module_made0->train(false);
  module->set_submodule("layer0", module_made0);
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(at::empty_strided({1, 3, 1, 3}, {1, 1, 1, 3}, at::kFloat).copy_(floats(at::kFloat, {1, 3, 1, 3}, {0.09580230712890625, 1.3766205310821533, 0.3026432991027832, -0.0, 0.640841007232666, -0.987144947052002, 1.0595147609710693, -0.6830191612243652, 1.723761796951294})));
  program.writes = true;
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, nested) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%nested0 = call_module[target=nested0](args = (%x1,), kwargs = {})
%clone = call_function[target=aten::clone](args = (%x1,), kwargs = {})
%imul = call_function[target=operator.imul](args = (%nested0, %clone), kwargs = {})
return [%clone, %x0]
)fx"));
  module->eval();
  const auto module_0 = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%input0 = placeholder[target=input0]
%clone = call_method[target=clone](args = (%input0,), kwargs = {})
%add_out = call_function[target=aten::add.out](args = (%clone, %clone), kwargs = {out: %input0})
%add_out_1 = call_function[target=aten::add.out](args = (%clone, %clone), kwargs = {out: %input0})
return %add_out_1
)fx"));
  module_0->eval();
  module->set_submodule("nested0", module_0);
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(floats(at::kFloat, {}, {1.493384599685669}));
  program.inputs.emplace_back(floats(at::kDouble, {1, 3, 3, 1}, {-1.7976931348623157e+308, 0.8436760902404785, 1.5170087814331055, 0.1945972442626953, 1.2047710418701172, -0.0, 0.5251355171203613, 5e-324, 1.7976931348623157e+308}));
  program.writes = true;
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, functional_conv_and_norm) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%x1 = placeholder[target=x1]
%x2 = placeholder[target=x2]
%tanh = call_function[target=torch.tanh](args = (%x2,), kwargs = {})
%unsqueeze = call_method[target=unsqueeze](args = (%tanh, 0), kwargs = {})
%state0 = get_attr[target=state0]
%conv1d = call_function[target=torch.conv1d](args = (%unsqueeze, %state0), kwargs = {})
%state1 = get_attr[target=state1]
%state2 = get_attr[target=state2]
%batch_norm = call_function[target=aten::batch_norm](args = (%conv1d, None, None, %state1, %state2, False, 0.1, 1e-05, False), kwargs = {})
return {'key0': %x2, 'key1': {'key0': %state1, 'key1': 2.5, 'key2': %batch_norm, 'key3': %state0}, 'key2': %state2}
)fx"));
  module->eval();
  module->set_buffer("state0", floats(at::kDouble, {2, 3, 1}, {0.9921875, -0.90625, -0.8046875, 0.9921875, 0.4609375, 0.515625}));
  module->set_buffer("state1", floats(at::kDouble, {2}, {0.011791229248046875, 1.4961988925933838}));
  module->set_buffer("state2", floats(at::kDouble, {2}, {0.9576892852783203, 1.581214427947998}));
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(floats(at::kDouble, {1, 3}, {0.706993818283081, 0.8525898456573486, 1.8022572994232178}));
  program.inputs.emplace_back(integers(at::kBool, {1, 1}, {1}));
  program.inputs.emplace_back(floats(at::kDouble, {3, 1}, {0.706993818283081, 0.8525898456573486, 1.8022572994232178}));
  EXPECT_EQ(check_runs(program), "");
}

TEST(Printed, new_attribute) {
  const auto module = std::make_shared<GraphModule>(parse_text(R"fx(fx 1
%x0 = placeholder[target=x0]
%add = call_function[target=operator.add](args = (%x0, 0), kwargs = {})
%block_state0 = get_attr[target=block.state0]
%flip = call_method[target=flip](args = (%block_state0, [0]), kwargs = {})
%diagonal = call_function[target=aten::diagonal](args = (%flip,), kwargs = {})
%mul = call_function[target=operator.mul](args = (%diagonal, 2.0), kwargs = {})
return {'key0': (%block_state0, %diagonal, %diagonal), 'key1': %x0, 'key2': %x0}
)fx"));
  module->eval();
  module->set_buffer("block.state0", floats(at::kDouble, {1, 3}, {1.7454698085784912, -0.16574573516845703, -0.9122552871704102}));
  module->recompile();
  Program program;
  program.module = module;
  program.inputs.emplace_back(floats(at::kFloat, {}, {-0.29419469833374023}));
  EXPECT_EQ(check_runs(program), "");
}
// clang-format on

}  // namespace
}  // namespace fx::fuzz
