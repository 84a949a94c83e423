#include "fx/passes/fake_tensor_prop.h"

#include "fx/base/error.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/shape_prop.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

// What both record of each node, for modules that run on the CPU.
void expect_as_shape_prop(GraphModule& gm, const Values& inputs) {
  std::vector<std::pair<std::string, std::optional<TensorMeta>>> wanted;
  ShapeProp(gm).propagate(inputs);
  for (const Node& node : gm.graph().nodes()) {
    const TensorMeta* meta = tensor_meta(node);
    wanted.emplace_back(*node.meta().get<std::string>("type"),
                        meta ? std::optional(*meta) : std::nullopt);
  }
  FakeTensorProp(gm).propagate(inputs);
  std::size_t i = 0;
  for (const Node& node : gm.graph().nodes()) {
    const auto& [type, meta] = wanted[i++];
    EXPECT_EQ(*node.meta().get<std::string>("type"), type) << node.format_node();
    const TensorMeta* found = tensor_meta(node);
    ASSERT_EQ(found != nullptr, meta.has_value()) << node.format_node();
    if (!meta) continue;
    EXPECT_EQ(found->to_string(), meta->to_string()) << node.format_node();
    EXPECT_EQ(found->stride, meta->stride) << node.format_node();
    const auto* val = node.meta().get<at::Tensor>("val");
    ASSERT_TRUE(val) << node.format_node();
    EXPECT_TRUE(val->is_meta());
    EXPECT_EQ(val->sizes(), meta->shape);
  }
}

TEST(FakeTensorProp, P_004_as_shape_prop) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=w]
%mm = call_function[target=aten::mm](args = (%x, %w))
%t = call_method[target=t](args = (%mm,))
%zeros = call_function[target=aten::zeros](args = ([4, 1],))
%ones = call_function[target=torch.ones_like](args = (%t,))
%sum_1 = call_function[target=operator.add](args = (%t, %zeros))
%size = call_method[target=size](args = (%sum_1, 0))
%view = call_method[target=reshape](args = (%sum_1, %size, 1, -1))
%sort = call_function[target=aten::sort](args = (%view, 2))
%item = call_function[target=operator.getitem](args = (%sort, 1))
%long = call_method[target=to](args = (%view, torch.float64))
%rand = call_function[target=aten::rand_like](args = (%long,))
%relu = call_function[target=aten::relu](args = (%rand,))
%conv = call_function[target=aten::conv1d](args = (%relu, %relu))
return (%item, %conv, %ones)
)");
  gm->set_parameter("w", torch::rand({3, 4}));
  expect_as_shape_prop(*gm, {Value(torch::rand({2, 3}))});
}

TEST(FakeTensorProp, P_004_modules_and_writes) {
  torch::nn::Sequential model(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4),
                              torch::nn::ReLU(torch::nn::ReLUOptions(true)), torch::nn::Flatten(),
                              torch::nn::Linear(64, 5));
  auto gm = symbolic_trace(*model);  // in training: the statistics would be written
  const at::Tensor mean = model->named_buffers()["1.running_mean"].clone();
  expect_as_shape_prop(*gm, {Value(torch::rand({2, 3, 6, 6}))});
  EXPECT_TRUE(torch::equal(mean, model->named_buffers()["1.running_mean"]));
}

// Terabytes that nobody has.
TEST(FakeTensorProp, P_004_nothing_is_allocated) {
  auto gm = symbolic_trace([](auto x) { return sigmoid(x + x).sum(); });
  const at::Tensor huge =
      torch::empty({1 << 20, 1 << 20}, torch::TensorOptions().device(torch::kMeta));
  const Value result = FakeTensorProp(*gm).propagate({Value(huge)});
  EXPECT_TRUE(result.toTensor().is_meta());
  EXPECT_EQ(tensor_meta(*gm->graph().find_node("sigmoid"))->shape,
            (std::vector<std::int64_t>{1 << 20, 1 << 20}));
}

// The devices that tensors would be on: of the operands, or as asked for.
TEST(FakeTensorProp, P_004_devices) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%zeros = call_function[target=aten::zeros](args = ([3],), kwargs = {device: device(type='cuda', index=1)})
%sin = call_function[target=aten::sin](args = (%zeros,))
%number = call_function[target=aten::mul.Tensor](args = (%sin, 2))
%host = call_method[target=cpu](args = (%sin,))
%there = call_method[target=to](args = (%x, device(type='cuda', index=0)))
%mixed = call_function[target=aten::add.Tensor](args = (%host, %x))
return (%number, %mixed, %there)
)");
  FakeTensorProp(*gm).propagate({Value(torch::rand({3}))});
  auto device = [&](const char* name) {
    return tensor_meta(*gm->graph().find_node(name))->device.str();
  };
  EXPECT_EQ(device("x"), "cpu");
  EXPECT_EQ(device("zeros"), "cuda:1");
  EXPECT_EQ(device("sin"), "cuda:1");
  EXPECT_EQ(device("number"), "cuda:1");
  EXPECT_EQ(device("host"), "cpu");
  EXPECT_EQ(device("there"), "cuda:0");
  EXPECT_EQ(device("mixed"), "cpu");
}

// A shape that depends on values is an error, which names the node.
TEST(FakeTensorProp, P_004_values_are_not_known) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%found = call_function[target=aten::nonzero](args = (%x,))
return %found
)");
  try {
    FakeTensorProp(*gm).propagate({Value(torch::ones({3}))});
    FAIL();
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("%found"));
    EXPECT_THAT(error.what(), testing::HasSubstr("depends on the values"));
  }
  auto item = parse_module(
      "%x = placeholder[target=x]\n%i = call_method[target=item](args = (%x,))\n"
      "return %i\n");
  EXPECT_THROW(FakeTensorProp(*item).propagate({Value(torch::ones({}))}), RunError);
}

}  // namespace
}  // namespace fx
