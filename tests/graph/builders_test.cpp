#include "fx/graph/builders.h"

#include <torch/torch.h>

#include "fx/graph/tensor_meta.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

TEST(GeometryNodes, G_025_sizes_strides_and_offsets_are_read_when_the_graph_runs) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  const at::Tensor sample = torch::arange(24).view({4, 6}).slice(0, 1).t();
  x.meta().set("val", sample);
  Node& size = create_size_node(*graph, x, 0);
  Node& last = create_size_node(*graph, x, -1);
  Node& stride = create_stride_node(*graph, x, 1);
  Node& offset = create_storage_offset_node(*graph, x);
  graph->output(Argument::tuple({size, last, stride, offset}));
  EXPECT_EQ(size.target(), "aten::sym_size.int");
  EXPECT_EQ(*size.meta().get<std::int64_t>("val"), 6);
  EXPECT_EQ(*last.meta().get<std::int64_t>("val"), 3);
  EXPECT_EQ(*stride.meta().get<std::int64_t>("val"), 6);
  EXPECT_EQ(*offset.meta().get<std::int64_t>("val"), 6);
  GraphModule module(graph);
  EXPECT_EQ(to_string(module(sample)), "(6, 3, 6, 6)");
  EXPECT_EQ(to_string(module(torch::ones({2, 5}))), "(2, 5, 1, 0)");
  EXPECT_FX_ERROR(create_size_node(*graph, x, 2), GraphError, kIndexOutOfRange,
                  "node x has 2 dimensions, dimension 2 is out of range");
  Node& unknown = create_size_node(*graph, size, 7);
  EXPECT_FALSE(unknown.meta().contains("val")) << "nothing is known of it before it runs";
  set_tensor_meta(size, NestedTensorMeta(Value(torch::ones({3, 9}))));
  EXPECT_EQ(*create_size_node(*graph, size, 1).meta().get<std::int64_t>("val"), 9);
}

// torch.fx's test_construct_root_dict.
TEST(RootDict, F_075_M_002_targets_are_looked_up_in_a_dict) {
  auto linear = std::make_shared<torch::nn::LinearImpl>(3, 3);
  const at::Tensor zam = torch::rand({4, 3});
  auto build = [] {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& called = graph->call_module("foo.bar.baz", {x});
    graph->output(graph->call_function("torch.add", {called, graph->get_attr("zip.zap.zam")}));
    return graph;
  };
  auto module = make_graph_module({{"foo.bar.baz", linear}, {"zip.zap.zam", zam}}, build());
  EXPECT_THAT(module->python_code(), ::testing::HasSubstr("self.foo.bar.baz(x)"));
  const at::Tensor x = torch::rand({3, 3});
  EXPECT_TRUE(torch::equal((*module)(torch::rand({4, 3}).mul_(0)).toTensor(),
                           linear->forward(torch::zeros({4, 3})) + zam));
  EXPECT_EQ(module->find_submodule("foo.bar.baz"), linear);
  EXPECT_TRUE(module->find_tensor("zip.zap.zam").is_same(zam));
  EXPECT_EQ(module->attr_kind("zip.zap.zam"), GraphOwner::AttrKind::kBuffer);
  EXPECT_EQ(module->graph().owner(), module.get());
  EXPECT_FX_ERROR(make_graph_module({{"foo.bar.baz", linear}}, build()), GraphError,
                  kMissingAttribute,
                  "referenced target zip.zap.zam but that target was not provided in root!");
}

TEST(RootDict, F_178_F_179_buffers_and_parameters_from_a_dict_and_from_a_module) {
  struct Net : torch::nn::Module {
    Net() {
      register_parameter("my_param", torch::rand({2}));
      register_buffer("my_buff", torch::rand({2}));
    }
  } net;
  auto build = [] {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& add = graph->call_function("operator.add", {x, graph->get_attr("my_param")});
    graph->output(graph->call_function("operator.add", {add, graph->get_attr("my_buff")}));
    return graph;
  };
  const at::Tensor param = net.named_parameters()["my_param"];
  const at::Tensor buffer = net.named_buffers()["my_buff"];
  auto from_dict = make_graph_module({{"my_param", param}, {"my_buff", buffer}}, build());
  auto from_module = std::make_shared<GraphModule>(net, build());
  const at::Tensor x = torch::rand({2});
  for (const auto& module : {from_dict, from_module}) {
    EXPECT_TRUE(torch::equal((*module)(x).toTensor(), x + param + buffer));
    ASSERT_EQ(module->named_parameters().size(), 1u);
    EXPECT_TRUE(module->named_parameters()["my_param"].is_same(param));
    ASSERT_EQ(module->named_buffers().size(), 1u);
    EXPECT_TRUE(module->named_buffers()["my_buff"].is_same(buffer));
  }
}

TEST(RootDict, parts_go_into_modules_that_are_there_before) {
  auto block = std::make_shared<torch::nn::Module>();
  block->register_buffer("inside", torch::ones({2}));
  auto graph = std::make_shared<Graph>();
  Node& extra = graph->get_attr("block.a.extra");
  Node& inside = graph->get_attr("block.inside");
  graph->get_attr("block");
  graph->output(graph->call_function("torch.add", {extra, inside}));
  auto module = make_graph_module({{"block", block}, {"block.a.extra", torch::ones({2})}}, graph);
  EXPECT_EQ(module->find_submodule("block"), block);
  EXPECT_TRUE(torch::equal(module->forward({}).toTensor(), torch::full({2}, 2.f)));
}

// Other kinds of roots do not compile.
TEST(RootDict, M_003_a_root_is_a_module_or_a_dict) {
  static_assert(!std::is_constructible_v<GraphModule, int, std::shared_ptr<Graph>>);
  static_assert(!std::is_constructible_v<GraphModule, std::string, std::shared_ptr<Graph>>);
  static_assert(
      std::is_constructible_v<GraphModule, const torch::nn::Module&, std::shared_ptr<Graph>>);
}

}  // namespace
}  // namespace fx
