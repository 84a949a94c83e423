// Arguments by name, operators for torch functions, and types of nodes.
#include "fx/passes/normalize.h"

#include "fx/base/error.h"
#include "fx/passes/annotate_types.h"
#include "fx/passes/named_arguments.h"
#include "fx/passes/shape_prop.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using Names = std::vector<std::string>;

Names keys_of(const Node& node) {
  Names out;
  for (const KwArg& kwarg : node.kwargs()) out.push_back(kwarg.key.str());
  return out;
}

// E_038: an operator and an overload of it give the same keywords; torch functions say "input".
TEST(NormalizeArgs, E_038_operators_and_torch_functions) {
  for (const char* target : {"aten::resize_as_", "torch.resize_as_"}) {
    auto gm = parse_module(std::string("%a = placeholder[target=a]\n%b = placeholder[target=b]\n") +
                           "%c = call_function[target=" + target +
                           "](args = (%a,), kwargs = {the_template: %b})\nreturn %c\n");
    EXPECT_EQ(normalize_args(*gm).rewrites, 1);
    const Node& call = *gm->graph().find_node("c");
    const bool is_torch = std::string_view(target).starts_with("torch");
    EXPECT_EQ(keys_of(call), (Names{is_torch ? "input" : "self", "the_template", "memory_format"}));
    EXPECT_EQ(call.kwargs()[0].value.node().name(), "a");
    EXPECT_EQ(call.kwargs()[1].value.node().name(), "b");
    EXPECT_FALSE(normalize_args(*gm).changed);
  }
}

TEST(NormalizeArgs, X_008_E_027_names_types_and_meta_stay) {
  auto gm = symbolic_trace([](auto x, auto y) { return relu(x + y); });
  for (Node& node : gm->graph().nodes()) node.meta().set("my_key", std::string(node.name()) + "!");
  gm->graph().find_node("x")->set_type("torch.Tensor");
  Names names;
  for (const Node& node : gm->graph().nodes()) names.emplace_back(node.name());
  const Values inputs{Value(torch::randn({3})), Value(torch::randn({3}))};
  const Value expected = gm->forward(inputs);
  EXPECT_TRUE(normalize_args(*gm).changed);
  gm->recompile();
  EXPECT_VALUES_EQ(expected, gm->forward(inputs));
  EXPECT_EQ(gm->graph().find_node("x")->type(), "torch.Tensor");
  Names kept;
  for (const Node& node : gm->graph().nodes()) {
    kept.emplace_back(node.name());
    EXPECT_EQ(*node.meta().get<std::string>("my_key"), std::string(node.name()) + "!");
  }
  EXPECT_EQ(kept, names);
}

// Calls of modules get the names of their forward's parameters.
TEST(NormalizeArgs, G_106_X_008_modules) {
  struct Model : torch::nn::Module {
    torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 4, 3)};
    torch::nn::BatchNorm2d bn{4};
    torch::nn::MaxPool2d pool{2};
    torch::nn::Bilinear bilinear{6, 6, 2};
    Model() {
      register_module("conv", conv);
      register_module("bn", bn);
      register_module("pool", pool);
      register_module("bilinear", bilinear);
    }
  };
  Model root;
  auto graph = std::make_shared<Graph>();
  Node* value = &graph->placeholder("x");
  for (const char* path : {"conv", "bn", "pool"}) value = &graph->call_module(path, {*value});
  Node& flat = graph->call_function("torch.flatten", {*value, 2});
  Node& twice = graph->call_module("bilinear", {flat, flat});
  graph->output(twice);
  GraphModule gm(root, graph);
  gm.eval();
  const Values inputs{Value(torch::randn({2, 3, 6, 8}))};
  const Value expected = gm.forward(inputs);
  EXPECT_EQ(normalize_args(gm).rewrites, 5);
  for (const Node& node : graph->nodes())
    if (node.op() == Opcode::kCallModule || node.op() == Opcode::kCallFunction) {
      EXPECT_EQ(node.num_args(), 0u) << node.format_node();
    }
  EXPECT_EQ(keys_of(*graph->find_node("conv")), Names{"input"});
  EXPECT_EQ(keys_of(twice), (Names{"input1", "input2"}));
  EXPECT_EQ(keys_of(flat), (Names{"input", "start_dim", "end_dim"}));
  graph->lint({.strict = true});
  gm.recompile();
  EXPECT_VALUES_EQ(expected, gm.forward(inputs));
}

// E_026: classes of torch::nn, each called by position and then by names.
TEST(NormalizeArgs, E_026_classes_of_modules) {
  namespace nn = torch::nn;
  const at::Tensor image = torch::rand({2, 4, 6, 6}), row = torch::rand({3, 4}),
                   line = torch::rand({2, 4, 8}), index = torch::tensor({1, 0, 2}),
                   target = torch::tensor({1, 0, 3});
  struct Case {
    std::shared_ptr<nn::Module> module;
    Values inputs;
    Names keys;
  };
  const std::vector<Case> cases{
      {nn::Linear(4, 3).ptr(), {row}, {"input"}},
      {nn::Bilinear(4, 4, 2).ptr(), {row, row}, {"input1", "input2"}},
      {nn::Conv1d(4, 2, 3).ptr(), {line}, {"input"}},
      {nn::Conv2d(4, 2, 3).ptr(), {image}, {"input"}},
      {nn::ConvTranspose2d(4, 2, 3).ptr(), {image}, {"input"}},
      {nn::BatchNorm2d(4).ptr(), {image}, {"input"}},
      {nn::GroupNorm(2, 4).ptr(), {image}, {"input"}},
      {nn::LayerNorm(nn::LayerNormOptions({4})).ptr(), {row}, {"input"}},
      {nn::InstanceNorm2d(4).ptr(), {image}, {"input"}},
      {nn::MaxPool2d(2).ptr(), {image}, {"input"}},
      {nn::AvgPool2d(2).ptr(), {image}, {"input"}},
      {nn::AdaptiveAvgPool2d(2).ptr(), {image}, {"input"}},
      {nn::ReLU().ptr(), {row}, {"input"}},
      {nn::ELU().ptr(), {row}, {"input"}},
      {nn::Softmax(1).ptr(), {row}, {"input"}},
      {nn::PReLU().ptr(), {row}, {"input"}},
      {nn::Dropout(0.5).ptr(), {row}, {"input"}},
      {nn::Embedding(5, 3).ptr(), {index}, {"input"}},
      {nn::Flatten().ptr(), {image}, {"input"}},
      {nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>({2, 2}))).ptr(),
       {image},
       {"input"}},
      {nn::CosineSimilarity().ptr(), {row, row}, {"x1", "x2"}},
      {nn::MSELoss().ptr(), {row, row}, {"input", "target"}},
      {nn::CrossEntropyLoss().ptr(), {row, target}, {"input", "target"}},
  };
  for (const Case& c : cases) {
    auto graph = std::make_shared<Graph>();
    Args args;
    for (std::size_t i = 0; i < c.inputs.size(); ++i)
      args.emplace_back(graph->placeholder("x" + std::to_string(i)));
    Node& call = graph->create_node(Opcode::kCallModule, Target::string("m"), std::move(args));
    graph->output(call);
    GraphModule gm(graph);
    gm.set_submodule("m", c.module);
    gm.eval();
    gm.recompile();
    const Value expected = gm.forward(c.inputs);
    EXPECT_EQ(normalize_args(gm).rewrites, 1) << c.module->name();
    EXPECT_EQ(call.num_args(), 0u);
    EXPECT_EQ(keys_of(call), c.keys) << c.module->name();
    gm.recompile();
    EXPECT_VALUES_EQ(expected, gm.forward(c.inputs)) << c.module->name();
  }
}

TEST(NormalizeArgs, E_037_quantized_embedding_bag) {
  auto gm = parse_module(R"(
%w = placeholder[target=w]
%i = placeholder[target=i]
%o = placeholder[target=o]
%bag = call_function[target=quantized::embedding_bag_byte_rowwise_offsets](args = (%w, %i, %o), kwargs = {include_last_offset: True})
return %bag
)");
  const auto keywords = normalized_arguments(*gm->graph().find_node("bag"));
  ASSERT_TRUE(keywords.has_value());
  Names keys;
  for (const KwArg& keyword : *keywords) keys.push_back(keyword.key.str());
  EXPECT_EQ(keys,
            (Names{"weight", "indices", "offsets", "scale_grad_by_freq", "mode", "pruned_weights",
                   "per_sample_weights", "compressed_indices_mapping", "include_last_offset"}));
}

// E_025: with what shape_prop saw no argument of a call stays without a name, but for operators.
TEST(NormalizeArgs, E_025_a_network_of_functions) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%w = placeholder[target=w]
%b = placeholder[target=b]
%conv = call_function[target=torch.conv2d](args = (%x, %w, %b, [1, 1], [1, 1], [1, 1], 1))
%mean = call_function[target=torch.mean](args = (%conv, [2, 3]))
%var = call_function[target=torch.var](args = (%conv, [2, 3]))
%relu = call_function[target=torch.relu](args = (%conv,))
%pool = call_function[target=torch.max_pool2d](args = (%relu, [2, 2]))
%add = call_function[target=operator.add](args = (%pool, 1))
%max_1 = call_function[target=torch.max](args = (%add, 1))
%item = call_function[target=operator.getitem](args = (%max_1, 0))
%flat = call_function[target=torch.flatten](args = (%item, 1))
%scaled = call_function[target=torch.mul](args = (%flat, 0.5))
%cat = call_function[target=torch.cat](args = ([%scaled, %mean, %var], 1))
return %cat
)");
  const Values inputs{Value(torch::randn({2, 3, 6, 6})), Value(torch::randn({4, 3, 3, 3})),
                      Value(torch::randn({4}))};
  const Value expected = gm->forward(inputs);
  ShapeProp(*gm).propagate(inputs);
  normalize_args(*gm);
  for (const Node& node : gm->graph().nodes()) {
    if (node.op() != Opcode::kCallFunction) continue;
    const bool is_operator = node.target().str().starts_with("operator.");
    EXPECT_EQ(node.num_args() == 0, !is_operator) << node.format_node();
  }
  gm->recompile();
  EXPECT_VALUES_EQ(expected, gm->forward(inputs));
}

// E_036: over all operators that tests use, what is normalised runs and gives the same.
TEST(NormalizeArgs, E_036_many_operators) {
  const at::Tensor x = torch::rand({2, 3}) + 0.5, y = torch::rand({2, 3}) + 0.5;
  for (const char* call : {
           "aten::add.Tensor](args = (%x, %y), kwargs = {alpha: 2})",
           "torch.add](args = (%x, %y), kwargs = {alpha: 2})",
           "torch.addcmul](args = (%x, %x, %y), kwargs = {value: 3})",
           "torch.clamp](args = (%x, 0.6))",
           "torch.clamp](args = (%x,), kwargs = {max: 0.9})",
           "torch.cumsum](args = (%x, 1))",
           "torch.lerp](args = (%x, %y, 0.25))",
           "torch.logsumexp](args = (%x, [0, 1]))",
           "torch.nn.functional.gelu](args = (%x,), kwargs = {approximate: 'tanh'})",
           "torch.nn.functional.leaky_relu](args = (%x, 0.2))",
           "torch.norm](args = (%x, 2, [1]))",
           "torch.pow](args = (%x, 2))",
           "torch.pow](args = (2, %x))",
           "torch.roll](args = (%x, 1, 0))",
           "torch.softmax](args = (%x, 1))",
           "torch.sort](args = (%x,), kwargs = {dim: 0, descending: True})",
           "torch.std](args = (%x, [1], False))",
           "torch.sum](args = (%x,))",
           "torch.sum](args = (%x, [0], True))",
           "torch.topk](args = (%x, 2))",
           "torch.where](args = (%x, %x, %y))",
           "torch.linalg.norm](args = (%x,))",
           "torch.special.erf](args = (%x,))",
       }) {
    auto gm = parse_module(
        "%x = placeholder[target=x]\n%y = placeholder[target=y]\n"
        "%call = call_function[target=" +
        std::string(call) + "\nreturn %call\n");
    const Values inputs{std::string_view(call).starts_with("torch.where") ? Value(x > 1) : Value(x),
                        Value(y)};
    Value expected;
    ASSERT_NO_THROW(expected = ShapeProp(*gm).propagate(inputs)) << call;
    normalize_args(*gm);
    const Node& node = *gm->graph().find_node("call");
    EXPECT_EQ(node.num_args(), 0u) << node.format_node();
    gm->recompile();
    Value actual;
    ASSERT_NO_THROW(actual = gm->forward(inputs)) << node.format_node();
    EXPECT_VALUES_EQ(expected, actual) << node.format_node();
    const auto keywords = normalized_arguments(node);
    ASSERT_TRUE(keywords) << node.format_node();
  }
}

// E_024: each of the twelve, of two tensors and of a tensor and a number.
TEST(NormalizeOperators, Q_014_X_009_E_024_twelve_functions) {
  const char* functions[] = {"add", "mul", "sub", "div", "floor_divide", "remainder",
                             "eq",  "ne",  "lt",  "le",  "gt",           "ge"};
  for (const char* function : functions)
    for (const bool with_number : {false, true}) {
      auto gm = parse_module(
          "%x = placeholder[target=x]\n%y = placeholder[target=y]\n"
          "%c = call_function[target=torch." +
          std::string(function) + "](args = (%x, " + (with_number ? "2" : "%y") +
          "))\nreturn %c\n");
      const Values inputs{Value(torch::randn({3, 4})), Value(torch::randn({3, 4}))};
      const Value expected = gm->forward(inputs);
      EXPECT_FALSE(normalize_operators(*gm).changed);
      EXPECT_EQ(normalize_operators(*gm, {.inputs_are_tensors = true}).rewrites, 1);
      EXPECT_TRUE(gm->graph().find_node("c")->target().str().starts_with("operator."));
      gm->recompile();
      EXPECT_VALUES_EQ(expected, gm->forward(inputs)) << function;
    }
}

// An input that shape_prop saw to be a number is none.
TEST(NormalizeOperators, X_009_numbers_stay_with_torch) {
  auto gm = parse_module(R"(
%n = placeholder[target=n]
%c = call_function[target=torch.add](args = (%n, 1))
%d = call_function[target=torch.mul](args = (%c, %n))
return %d
)");
  ShapeProp(*gm).propagate({Value(3)});
  EXPECT_EQ(normalize_operators(*gm, {.inputs_are_tensors = true}).rewrites, 1);
  EXPECT_EQ(gm->graph().find_node("c")->target(), "torch.add");  // a tensor, where 3 + 1 is none
  EXPECT_EQ(gm->graph().find_node("d")->target(), "operator.mul");
}

TEST(AnnotateTypes, X_010_E_028_schemas_modules_and_attributes) {
  torch::nn::Sequential model(torch::nn::Linear(4, 4), torch::nn::ReLU());
  auto gm = symbolic_trace(*model);
  EXPECT_EQ(annotate_types(*gm, {.annotate_modules = false}).rewrites, 0);
  EXPECT_EQ(annotate_types(*gm).rewrites, 2);
  Names without;
  for (const Node& node : gm->graph().nodes())
    if (node.type().empty()) without.emplace_back(node.name());
  EXPECT_EQ(without, (Names{"input_1", "output"}));  // an input may be anything
  auto other = parse_module(R"(
%x = placeholder[target=x]
%split = call_function[target=aten::split.Tensor](args = (%x, 2))
%sort = call_method[target=sort](args = (%x,))
%item = call_function[target=aten::item](args = (%x,))
%lstm = call_module[target=lstm](args = (%x,))
return (%split, %sort, %item, %lstm)
)");
  other->set_submodule("lstm", torch::nn::LSTM(3, 3).ptr());
  annotate_types(*other);
  auto type = [&](const char* name) { return other->graph().find_node(name)->type(); };
  EXPECT_EQ(type("split"), "List[torch.Tensor]");
  EXPECT_EQ(type("sort"), "Tuple[torch.Tensor, torch.Tensor]");
  EXPECT_EQ(type("item"), "");  // a number of some kind
  EXPECT_EQ(type("lstm"), "");  // a tuple of which the schema says nothing
}

TEST(AnnotateGetitemNodes, P_034_E_029_tuples_and_lists) {
  Graph graph;
  auto item_type = [&](const char* type, std::int64_t index) {
    Node& sequence = graph.placeholder("s", type);
    Node& item = graph.call_function("operator.getitem", {sequence, index});
    annotate_getitem_nodes(graph);
    return item.type();
  };
  EXPECT_EQ(item_type("Tuple[torch.Tensor, int]", 0), "torch.Tensor");
  EXPECT_EQ(item_type("Tuple[torch.Tensor, int]", 1), "int");
  EXPECT_EQ(item_type("Tuple[torch.Tensor, int]", -1), "int");
  EXPECT_EQ(item_type("typing.Tuple[Dict[str, int], List[int]]", 1), "List[int]");
  EXPECT_EQ(item_type("tuple[int, ...]", 7), "int");
  EXPECT_EQ(item_type("List[torch.Tensor]", 3), "torch.Tensor");
  EXPECT_EQ(item_type("list[float]", 0), "float");
  EXPECT_EQ(item_type("torch.Tensor", 0), "");
  EXPECT_EQ(item_type("", 0), "");
  EXPECT_EQ(annotate_getitem_nodes(graph), 0);
  try {
    item_type("Tuple[int]", 2);
    FAIL();
  } catch (const PassError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadExtract);
  }
}

}  // namespace
}  // namespace fx
