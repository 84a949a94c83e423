// Whole graphs: sizes and targets, attributes for backends, sources of nodes, a canonical form.
#include "fx/passes/graph_manipulation.h"

#include "fx/base/error.h"
#include "fx/capture/tracer.h"
#include "fx/passes/canonicalize.h"
#include "fx/passes/merge_matmul.h"
#include "fx/passes/partition_cudagraphs.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/source_partitions.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<Node*>& nodes) {
  Names out;
  for (const Node* node : nodes) out.emplace_back(node->name());
  return out;
}

Names names_of(const Graph& graph) { return names_of(graph.nodes().to_vector()); }

TEST(GraphManipulation, P_035_E_008_replace_target_nodes_with) {
  auto gm = symbolic_trace([](auto x, auto y) { return (x + y) + (y - x); });
  EXPECT_EQ(replace_target_nodes_with(*gm, Opcode::kCallFunction, Target::function("operator.add"),
                                      Opcode::kCallFunction, Target::function("operator.mul")),
            2);
  gm->recompile();
  const at::Tensor x = torch::randn({3}), y = torch::randn({3});
  EXPECT_VALUES_EQ(Value(x * y * (y - x)), gm->forward({Value(x), Value(y)}));
  EXPECT_EQ(count_calls(gm->graph(), "operator.add"), 0u);
  EXPECT_EQ(replace_target_nodes_with(*gm, Opcode::kCallFunction, Target::function("operator.add"),
                                      Opcode::kCallMethod, Target::string("mul")),
            0);
}

TEST(GraphManipulation, P_035_sizes) {
  torch::nn::Sequential model(torch::nn::Linear(4, 5), torch::nn::ReLU());
  auto gm = symbolic_trace(*model);
  const Node& linear = *gm->graph().find_nodes(Opcode::kCallModule).at(0);
  try {
    get_size_of_node(*gm, linear);
    FAIL();
  } catch (const PassError& error) {
    EXPECT_EQ(error.text(), "Node " + std::string(linear.name()) +
                                " has no tensor metadata associated with it! Check that shape "
                                "propagation has run");
  }
  const Values inputs{Value(torch::randn({2, 4}))};
  const auto sizes = get_size_of_all_nodes(*gm, &inputs);
  EXPECT_EQ(sizes.size(), 3u);
  EXPECT_EQ(sizes.at(std::string(linear.name())),
            (SizeBytes{.output_size = 2 * 5 * 4, .total_size = (2 * 5 + 4 * 5 + 5) * 4}));
  EXPECT_EQ(*linear.meta().get<SizeBytes>("size_bytes"), sizes.at(std::string(linear.name())));
  EXPECT_EQ(get_tensor_meta(linear).shape, (std::vector<std::int64_t>{2, 5}));
}

TEST(ParamFetch, P_013_E_032_attributes_for_lowering) {
  torch::nn::Sequential model(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, {3, 2}).stride(2).padding(1).groups(1)),
      torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(4).eps(1e-3)),
      torch::nn::ReLU(torch::nn::ReLUOptions(true)), torch::nn::MaxPool2d(2),
      torch::nn::AdaptiveAvgPool2d(1),
      torch::nn::Linear(torch::nn::LinearOptions(1, 2).bias(false)));
  auto gm = symbolic_trace(*model);
  lift_lowering_attrs_to_nodes(*gm);
  std::vector<Names> keys;
  using Attributes = std::map<std::string, Value>;
  std::vector<const Attributes*> found;
  for (const Node* node : gm->graph().find_nodes(Opcode::kCallModule)) {
    found.push_back(node->meta().get<Attributes>("attrs_for_lowering"));
    ASSERT_TRUE(found.back());
    keys.emplace_back();
    for (const auto& [key, value] : *found.back()) keys.back().push_back(key);
  }
  EXPECT_EQ(keys[0], (Names{"bias", "dilation", "groups", "kernel_size", "name", "padding",
                            "padding_mode", "stride", "weight"}));
  EXPECT_EQ(keys[1], (Names{"bias", "eps", "name", "running_mean", "running_var", "weight"}));
  EXPECT_EQ(keys[2], (Names{"inplace", "name"}));
  EXPECT_EQ(keys[3], (Names{"ceil_mode", "dilation", "kernel_size", "name", "padding",
                            "return_indices", "stride"}));
  EXPECT_EQ(keys[4], Names{"name"});
  EXPECT_EQ(keys[5], (Names{"bias", "name", "weight"}));
  EXPECT_EQ(found[0]->at("name").toStringRef(), "torch.nn.Conv2d");
  EXPECT_EQ(found[0]->at("kernel_size").toIntVector(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(found[0]->at("padding").toIntVector(), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(found[0]->at("padding_mode").toStringRef(), "zeros");
  EXPECT_DOUBLE_EQ(found[1]->at("eps").toDouble(), 1e-3);
  EXPECT_TRUE(found[2]->at("inplace").toBool());
  EXPECT_TRUE(found[5]->at("bias").isNone());
  EXPECT_THROW(extract_attrs_for_lowering(torch::nn::GELUImpl()), PassError);
}

TEST(MergeMatmul, X_020_E_033_products_of_different_sizes) {
  auto gm = parse_module(R"(
%a = placeholder[target=a]
%b = placeholder[target=b]
%c = placeholder[target=c]
%early = call_function[target=torch.matmul](args = (%a, %c))
%relu = call_function[target=torch.relu](args = (%early,))
%sin = call_function[target=torch.sin](args = (%b,))
%late = call_function[target=torch.matmul](args = (%sin, %c))
%more = call_function[target=torch.matmul](args = (%b, %c))
%third = call_method[target=t](args = (%relu,))
return (%third, %late, %more)
)");
  const Values inputs{Value(torch::randn({2, 3})), Value(torch::randn({5, 3})),
                      Value(torch::randn({3, 4}))};
  const Value expected = gm->forward(inputs);
  EXPECT_FALSE(merge_matmul(*gm).changed);  // they need not be matrices
  ShapeProp(*gm).propagate(inputs);
  EXPECT_EQ(merge_matmul(*gm).rewrites, 3);
  EXPECT_EQ(count_calls(gm->graph(), "torch.matmul"), 1u);
  gm->graph().lint({.strict = true});
  gm->recompile();
  EXPECT_VALUES_EQ(expected, gm->forward(inputs));
  // With other numbers of rows.
  const Value swapped = gm->forward({inputs[1], inputs[0], inputs[2]});
  EXPECT_VALUES_EQ(Value(torch::matmul(inputs[0].toTensor(), inputs[2].toTensor())),
                   swapped.toTuple()->elements()[2]);
  EXPECT_FALSE(merge_matmul(*gm).changed);
}

TEST(MergeMatmul, X_020_dependencies_through_effects) {
  // The second product depends on the first one through memory.
  auto gm = parse_module(R"(
%a = placeholder[target=a]
%c = placeholder[target=c]
%buffer = call_function[target=aten::zeros_like](args = (%a,))
%first = call_function[target=aten::mm](args = (%a, %c))
%copy = call_function[target=aten::copy_](args = (%buffer, %first))
%sin = call_function[target=aten::sin](args = (%buffer,))
%second = call_function[target=aten::mm](args = (%sin, %c))
return %second
)");
  EXPECT_FALSE(merge_matmul(*gm).changed);
}

// Many graphs with products of few right-hand sides.
TEST(MergeMatmul, X_020_random_graphs) {
  std::uint32_t state = 5;
  auto random = [&](std::size_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  std::int64_t merged = 0;
  for (int round = 0; round < 40; ++round) {
    auto graph = std::make_shared<Graph>();
    std::vector<Node*> values{&graph->placeholder("x"), &graph->placeholder("y")};
    Node* right[] = {values[0], values[1]};
    for (int i = 0; i < 12; ++i) {
      Node& input = *values[random(values.size())];
      values.push_back(random(2) ? &graph->call_function("aten::mm", {input, *right[random(2)]})
                                 : &graph->call_function("aten::tanh", {input}));
    }
    graph->output(Argument::tuple({*values[values.size() - 1], *values[values.size() - 3]}));
    GraphModule gm(graph);
    const Values inputs{Value(torch::rand({3, 3}) / 3), Value(torch::rand({3, 3}) / 3)};
    const Value expected = gm.forward(inputs);
    merged += merge_matmul(gm).rewrites;
    graph->lint({.strict = true});
    gm.recompile();
    EXPECT_VALUES_EQ(expected, gm.forward(inputs));
  }
  EXPECT_GT(merged, 40);
}

struct LinearReluLinear : torch::nn::Module {
  torch::nn::Linear linear1{3, 3}, linear2{3, 5};
  torch::nn::ReLU relu;
  LinearReluLinear() {
    register_module("linear1", linear1);
    register_module("linear2", linear2);
    register_module("relu", relu);
  }
  std::shared_ptr<GraphModule> traced() {
    auto graph = std::make_shared<Graph>();
    Node* value = &graph->placeholder("x");
    for (const char* path : {"linear1", "linear1", "relu", "linear2"})
      value = &graph->call_module(path, {*value});
    graph->output(*value);
    return std::make_shared<GraphModule>(*this, graph);
  }
};

TEST(SourcePartitions, P_042_R_085_modules_of_a_traced_graph) {
  LinearReluLinear model;
  auto gm = model.traced();
  const auto found =
      get_source_partitions(gm->graph(), {"torch.nn.Linear", "torch.nn.modules.activation.ReLU"});
  ASSERT_EQ(found.size(), 2u);
  const auto& linears = found.at("torch.nn.Linear");
  const auto& relus = found.at("torch.nn.modules.activation.ReLU");
  ASSERT_EQ(linears.size(), 3u);  // one module is called twice
  ASSERT_EQ(relus.size(), 1u);
  EXPECT_FALSE(check_subgraphs_connected(linears[0], relus[0]));
  EXPECT_TRUE(check_subgraphs_connected(linears[1], relus[0]));
  EXPECT_FALSE(check_subgraphs_connected(linears[2], relus[0]));
  EXPECT_TRUE(check_subgraphs_connected(relus[0], linears[2]));
  EXPECT_EQ(names_of(linears[1].input_nodes), Names{"linear1"});
  EXPECT_EQ(names_of(linears[1].output_nodes), Names{"linear1_1"});
  EXPECT_EQ(get_source_partitions(gm->graph(), {"torch.nn.Linear"},
                                  [](const Node& node) { return node.name() != "linear2"; })
                .at("torch.nn.Linear")
                .size(),
            2u);
  EXPECT_TRUE(get_source_partitions(gm->graph(), {"torch.nn.GELU"}).empty());
}

TEST(SourcePartitions, P_042_R_085_origins_in_the_meta) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=w]
%t = call_function[target=aten::t](args = (%w,))
%mm = call_function[target=aten::mm](args = (%x, %t))
%relu = call_function[target=aten::relu](args = (%mm,))
%mm_1 = call_function[target=aten::mm](args = (%relu, %t))
return %mm_1
)");
  Graph& graph = gm->graph();
  auto node = [&](const char* name) -> Node& { return *graph.find_node(name); };
  const Names all{"torch.nn.Linear", "torch.nn.functional.linear", "linear", "relu"};
  using Stack = std::vector<std::pair<std::string, std::string>>;
  // As exported programs have it: the module at the end of the stack, and the function.
  for (const char* name : {"w", "t", "mm"})
    node(name).meta().set("nn_module_stack",
                          Stack{{"", "Model"}, {"lin", "torch.nn.modules.linear.Linear"}});
  node("relu").meta().set("torch_fn", std::string("relu_1;function.relu"));
  node("mm_1").meta().set("torch_fn",
                          std::pair<std::string, std::string>("linear_2", "builtin.linear"));
  auto found = get_source_partitions(graph, all);
  EXPECT_EQ(names_of(found.at("torch.nn.Linear").at(0).nodes), (Names{"t", "mm"}));
  EXPECT_EQ(names_of(found.at("relu").at(0).nodes), Names{"relu"});
  EXPECT_EQ(names_of(found.at("linear").at(0).nodes), Names{"mm_1"});
  // What the source says of the call goes before all others.
  for (const char* name : {"w", "t", "mm"})
    node(name).meta().set("source_fn_stack", Stack{{"call", "torch.nn.functional.linear"}});
  found = get_source_partitions(graph, all);
  const SourcePartition& linear = found.at("torch.nn.functional.linear").at(0);
  EXPECT_EQ(names_of(linear.nodes), (Names{"w", "t", "mm"}));
  EXPECT_EQ(names_of(linear.params), Names{"w"});
  EXPECT_EQ(names_of(linear.input_nodes), Names{"x"});
  EXPECT_EQ(names_of(linear.output_nodes), (Names{"t", "mm"}));
  EXPECT_FALSE(found.contains("torch.nn.Linear"));
}

TEST(Canonicalize, P_036_order_and_names) {
  const char* one = R"(
%x = placeholder[target=x]
%w = get_attr[target=w]
%first = call_function[target=torch.sin](args = (%x,))
%second = call_function[target=torch.add](args = (%x, %w))
%third = call_function[target=torch.mul](args = (%first, %second))
return %third
)";
  const char* other = R"(
%given = placeholder[target=x]
%plus = call_function[target=torch.add](args = (%given, %weight))
%sine = call_function[target=torch.sin](args = (%given,))
%out = call_function[target=torch.mul](args = (%sine, %plus))
return %out
)";
  std::string moved(other);
  moved.insert(moved.find("%plus"), "%weight = get_attr[target=w]\n");
  const auto a = parse_text("fx 1\n" + std::string(one));
  const auto b = parse_text("fx 1\n" + moved);
  std::map<std::string, std::string> renamed;
  const auto canonical = canonicalized(*a, {}, &renamed);
  EXPECT_EQ(names_of(*canonical), (Names{"x", "w", "add", "sin", "mul", "output"}));
  EXPECT_EQ(renamed.at("third"), "mul");
  EXPECT_FALSE(renamed.contains("x"));
  EXPECT_TRUE(canonical->same_structure(*canonicalized(*b)));
  EXPECT_EQ(canonical_hash(*a), canonical_hash(*b));
  EXPECT_FALSE(a->same_structure(*b));
  // A second time changes nothing; what differs stays different.
  EXPECT_EQ(canonicalized(*canonical)->str(), canonical->str());
  std::string changed(one);
  changed.replace(changed.find("torch.sin"), 9, "torch.cos");
  EXPECT_NE(canonical_hash(*a), canonical_hash(*parse_text("fx 1\n" + changed)));
  // Callers pass keywords by the names of placeholders.
  EXPECT_EQ(names_of(*canonicalized(*b))[0], "given");
  EXPECT_EQ(names_of(*canonicalized(*b, {.keep_placeholder_names = false}))[0], "x");
}

TEST(Canonicalize, P_036_effects_and_items) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%copy = call_function[target=aten::clone](args = (%x,))
%z = call_function[target=aten::sin](args = (%copy,))
%chunk = call_function[target=aten::chunk](args = (%x, 3))
%add = call_function[target=aten::add_.Tensor](args = (%copy, 1))
%c = call_function[target=operator.getitem](args = (%chunk, 2))
%a = call_function[target=operator.getitem](args = (%chunk, 0))
%b = call_function[target=aten::cos](args = (%copy,))
return (%z, %a, %b, %c)
)");
  const Values inputs{Value(torch::rand({3}))};
  const Value expected = gm->forward(inputs);
  const auto renamed = canonicalize_graph(*gm, {.group_getitems = true});
  gm->graph().lint({.strict = true});
  EXPECT_VALUES_EQ(expected, gm->forward(inputs));
  const Graph& graph = gm->graph();
  const Node& chunk = *graph.find_nodes(Opcode::kCallFunction, Target::function("aten::chunk"))[0];
  EXPECT_EQ(chunk.next()->arg(1), Argument(0));
  EXPECT_EQ(chunk.next()->next()->arg(1), Argument(2));
  EXPECT_EQ(renamed.at("z"), "sin");
  const auto place = [&](const char* target) {
    return graph.find_nodes(Opcode::kCallFunction, Target::function(target)).at(0);
  };
  EXPECT_TRUE(place("aten::sin")->comes_before(*place("aten::add_.Tensor")));
  EXPECT_TRUE(place("aten::add_.Tensor")->comes_before(*place("aten::cos")));
}

TEST(CudaGraphs, P_043_islands) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%n = placeholder[target=n]
%a = call_function[target=aten::sin](args = (%x,))
%b = call_function[target=aten::cos](args = (%a,))
%item = call_function[target=aten::item](args = (%n,))
%c = call_function[target=aten::mul.Tensor](args = (%b, %n))
return (%c, %item)
)");
  ShapeProp(*gm).propagate({Value(torch::rand({3})), Value(torch::tensor(2.0))});
  auto supported = [&] {
    Names out;
    for (const Node& node : gm->graph().nodes())
      if (cudagraphs_support()(*gm, node)) out.emplace_back(node.name());
    return out;
  };
  EXPECT_EQ(supported(), Names{});  // all is on the CPU
  auto move = [&](const char* name) {
    Node& node = *gm->graph().find_node(name);
    TensorMeta meta = *tensor_meta(node);
    meta.device = c10::Device(c10::DeviceType::CUDA, 0);
    node.meta().set("tensor_meta", meta);
  };
  for (const char* name : {"x", "a", "b", "c"}) move(name);
  EXPECT_EQ(supported(), (Names{"a", "b"}));  // c reads a number of the CPU
  // On the CPU nothing is fused.
  EXPECT_TRUE(
      partition_cudagraphs(*gm, {Value(torch::rand({3})), Value(torch::tensor(2.0))}).empty());
}

}  // namespace
}  // namespace fx
