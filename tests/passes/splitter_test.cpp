// Splitting by tags, and between an accelerator and the CPU.
#include "fx/passes/splitter.h"

#include <random>

#include "fx/base/error.h"
#include "fx/passes/graph_manipulation.h"
#include "fx/passes/shape_prop.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<Node*>& nodes) {
  Names out;
  for (const Node* node : nodes) out.emplace_back(node->name());
  return out;
}

Names names_of(const Graph& graph) {
  Names out;
  for (const Node& node : graph.nodes()) out.emplace_back(node.name());
  return out;
}

Names children_of(const GraphModule& gm) {
  Names out;
  for (const auto& child : gm.named_children()) out.push_back(child.key());
  return out;
}

std::shared_ptr<GraphModule> child(const GraphModule& gm, const std::string& name) {
  return std::dynamic_pointer_cast<GraphModule>(gm.find_submodule(name));
}

void tag_all(GraphModule& gm, const std::map<std::string, std::string>& tags) {
  for (const auto& [name, tag] : tags) set_tag(*gm.graph().find_node(name), tag);
}

// --- split_by_tags -------------------------------------------------------------------------------

TEST(SplitByTags, R_073_node_meta_is_kept) {
  auto gm = symbolic_trace([](auto x, auto y) {
    x = x + x;
    y = y * y;
    return x - y;
  });
  for (Node& node : gm->graph().nodes()) node.meta().set("name", std::string(node.name()));
  tag_all(*gm, {{"add", "a"}, {"mul", "b"}, {"sub", "c"}});
  const auto split = split_by_tags(*gm, {"a", "b", "c"});
  EXPECT_EQ(children_of(*split), (Names{"a", "b", "c"}));
  for (const std::string& name : children_of(*split))
    for (const Node& node : child(*split, name)->graph().nodes()) {
      if (node.is_output()) continue;
      ASSERT_TRUE(node.meta().get<std::string>("name"));
      EXPECT_EQ(*node.meta().get<std::string>("name"), node.name());
    }
  for (const Node* node : split->graph().placeholders())
    EXPECT_EQ(*node->meta().get<std::string>("name"), node->name());
  const Values inputs{Value(torch::randn({3})), Value(torch::randn({3}))};
  EXPECT_VALUES_EQ(gm->forward(inputs), split->forward(inputs));
}

struct FourLinears : torch::nn::Module {
  torch::nn::Linear linear1{2, 3}, linear2{4, 3}, linear3{6, 3}, linear4{3, 6};
  FourLinears() {
    register_module("linear1", linear1);
    register_module("linear2", linear2);
    register_module("linear3", linear3);
    register_module("linear4", linear4);
  }
};

TEST(SplitByTags, P_028_R_073_order_of_tags_and_mapping) {
  FourLinears root;
  auto graph = std::make_shared<Graph>();
  std::vector<Argument> parts;
  for (int i = 1; i <= 3; ++i) graph->placeholder("x" + std::to_string(i));
  for (int i = 1; i <= 3; ++i)
    parts.emplace_back(graph->call_module("linear" + std::to_string(i),
                                          {*graph->find_node("x" + std::to_string(i))}));
  Node& cat = graph->call_function("torch.cat", {Argument::list(std::move(parts))});
  graph->output(graph->call_module("linear4", {cat}));
  GraphModule gm(root, graph);
  tag_all(gm, {{"linear1", "red"},
               {"linear2", "blue"},
               {"linear3", "green"},
               {"cat", "green"},
               {"linear4", "green"}});
  std::map<std::string, std::string> mapping;
  const auto split = split_by_tags(gm, {"red", "blue", "green"}, {}, &mapping);
  EXPECT_EQ(children_of(*split), (Names{"red", "blue", "green"}));
  EXPECT_EQ(mapping, (std::map<std::string, std::string>{{"linear1", "red.linear1"},
                                                         {"linear2", "blue.linear2"},
                                                         {"linear3", "green.linear3"},
                                                         {"linear4", "green.linear4"}}));
  EXPECT_EQ(names_of(child(*split, "green")->graph()),
            (Names{"x3", "linear1", "linear2", "linear3", "cat", "linear4", "output"}));
  const Values inputs{Value(torch::randn({1, 2})), Value(torch::randn({2, 4})),
                      Value(torch::randn({3, 6}))};
  const Value result = split->forward(inputs);
  EXPECT_TRUE(result.isTensor());  // one result stays a tensor ...
  EXPECT_VALUES_EQ(gm.forward(inputs), result);
  // ... or becomes a tuple inside.
  const auto tuples = split_by_tags(gm, {"red", "blue", "green"}, {.return_tuple = true});
  EXPECT_EQ(child(*tuples, "red")->graph().output_node().arg(0).kind(), Argument::Kind::kTuple);
  EXPECT_VALUES_EQ(gm.forward(inputs), tuples->forward(inputs));
}

TEST(SplitByTags, P_028_attributes_unused_tags_and_errors) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& w = graph->create_node(Opcode::kGetAttr, Target::string("w"));
  Node& add = graph->call_function("torch.add", {x, w});
  Node& mul = graph->call_function("torch.mul", {add, w});
  graph->output(Argument::tuple({mul, w}));
  torch::nn::Module root;
  root.register_parameter("w", torch::randn({3}));
  GraphModule gm(root, graph);
  set_tag(add, "first");
  set_tag(mul, "second");
  const auto split = split_by_tags(gm, {"nobody", "first", "second"});
  EXPECT_EQ(children_of(*split), (Names{"first", "second"}));
  // Each part reads the attribute itself.
  EXPECT_EQ(child(*split, "first")->graph().placeholders().size(), 1u);
  EXPECT_EQ(child(*split, "second")->graph().find_nodes(Opcode::kGetAttr).size(), 1u);
  EXPECT_TRUE(child(*split, "second")->find_tensor("w").is_same(root.parameters()[0]));
  const Values inputs{Value(torch::randn({3}))};
  EXPECT_VALUES_EQ(gm.forward(inputs), split->forward(inputs));

  auto message = [&](const Names& tags) {
    try {
      split_by_tags(gm, tags);
    } catch (const PassError& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadPartition);
      return error.text();
    }
    return std::string("no error");
  };
  EXPECT_EQ(message({"second", "first"}), "second needs results of first, which comes after it");
  EXPECT_EQ(message({"first"}),
            "split_by_tags: node 'mul' has the tag 'second', which is not among those to split by");
  mul.meta().erase("tag");
  EXPECT_EQ(message({"first", "second"}), "split_by_tags: node 'mul' has no tag");
}

// --- nodes on the boundary -----------------------------------------------------------------------

// A chain or fan of operators; those with "int" in front of the name give no tensor.
struct Drawn {
  Graph graph;
  Node& make(const std::string& name, const std::vector<Node*>& inputs) {
    Args args(inputs.begin(), inputs.end());
    Node& node = graph.create_node(Opcode::kCallFunction, Target::function("some_call"),
                                   std::move(args), {}, name);
    node.meta().set("type", std::string(name.starts_with("int") ? "int" : "Tensor"));
    return node;
  }
};

TEST(MoveNonTensorNodes, P_029_P_048_R_096_what_moves) {
  {  // basic case
    Drawn g;
    Node& a = g.make("int_a", {});
    Node& b = g.make("b", {&a});
    Node& c = g.make("c", {&a});
    std::vector<Subgraph> parts{{true, {&a}}, {true, {&b, &c}}};
    EXPECT_EQ(names_of(move_non_tensor_nodes_on_boundary(parts)), Names{"int_a"});
    EXPECT_TRUE(parts[0].nodes.empty());
    EXPECT_EQ(names_of(parts[1].nodes), (Names{"b", "c", "int_a"}));
  }
  {  // from the accelerator to the CPU
    Drawn g;
    Node& a = g.make("int_a", {});
    Node& b = g.make("b", {&a});
    std::vector<Subgraph> parts{{true, {&a}}, {false, {&b}}};
    EXPECT_EQ(names_of(move_non_tensor_nodes_on_boundary(parts)), Names{"int_a"});
  }
  {  // a chain: each follows its user, and so do nodes that depend on one that moves
    Drawn g;
    Node& a = g.make("int_a", {});
    Node& b = g.make("int_b", {&a});
    Node& other = g.make("other", {&b});
    Node& c = g.make("int_c", {&b});
    Node& d = g.make("d", {&c});
    std::vector<Subgraph> parts{{true, {&a, &b, &other, &c}}, {true, {&d}}};
    EXPECT_EQ(names_of(move_non_tensor_nodes_on_boundary(parts)),
              (Names{"int_c", "int_b", "other", "int_a"}));
    EXPECT_TRUE(parts[0].nodes.empty());
  }
}

TEST(MoveNonTensorNodes, P_029_P_048_R_096_what_stays) {
  auto nothing_moves = [](std::vector<Subgraph> parts) {
    return move_non_tensor_nodes_on_boundary(parts).empty();
  };
  Drawn g;
  Node& tensor = g.make("a", {});
  Node& user = g.make("b", {&tensor});
  EXPECT_TRUE(nothing_moves({{true, {&tensor}}, {true, {&user}}}));  // a tensor
  Node& number = g.make("int_c", {});
  Node& reader = g.make("d", {&number});
  EXPECT_TRUE(nothing_moves({{false, {&number}}, {true, {&reader}}}));  // not of the accelerator
  EXPECT_TRUE(nothing_moves({{true, {&number, &reader}}}));             // one subgraph
  EXPECT_TRUE(nothing_moves({{true, {}}, {true, {}}}));                 // empty ones
  Node& reader_2 = g.make("e", {&number});
  EXPECT_TRUE(nothing_moves({{true, {&number}}, {true, {&reader}}, {true, {&reader_2}}}));
  // What depends on it reaches into a third subgraph.
  Node& start = g.make("int_f", {});
  Node& inside = g.make("int_g", {&start});
  Node& to = g.make("h", {&start});
  Node& third = g.make("i", {&inside});
  std::vector<Subgraph> parts{{true, {&start, &inside}}, {true, {&to}}, {true, {&third}}};
  EXPECT_EQ(names_of(move_non_tensor_nodes_on_boundary(parts)), (Names{"int_g"}));
  EXPECT_EQ(names_of(parts[0].nodes), (Names{"int_f"}));
}

// --- the splitter --------------------------------------------------------------------------------

std::shared_ptr<GraphModule> diamond() {
  return parse_module(R"(
%a = placeholder[target=a]
%sin = call_function[target=aten::sin](args = (%a,))
%cos = call_function[target=aten::cos](args = (%a,))
%add = call_function[target=aten::add.Tensor](args = (%sin, %cos))
return %add
)");
}

TEST(Splitter, P_030_accelerator_and_cpu) {
  auto gm = diamond();
  const Values inputs{Value(torch::randn({4}))};
  Splitter splitter(*gm, inputs, support_targets({"aten::sin", "aten::cos"}));
  const auto split = splitter.split();
  EXPECT_EQ(children_of(*split), (Names{"_run_on_acc_0", "_run_on_cpu_1"}));
  EXPECT_EQ(names_of(child(*split, "_run_on_acc_0")->graph()),
            (Names{"a", "sin", "cos", "output"}));
  EXPECT_EQ(splitter.node_submodule_map().at("add"), "_run_on_cpu_1");
  EXPECT_EQ(splitter.node_submodule_map().at("sin"), "_run_on_acc_0");
  EXPECT_VALUES_EQ(gm->forward(inputs), split->forward(inputs));
  EXPECT_EQ(tag_of(*gm->graph().find_node("sin")), "");  // the original is not tagged
  // A CPU node that is ready comes first.
  Splitter other(*gm, inputs, support_targets({"aten::cos", "aten::add"}));
  EXPECT_EQ(children_of(*other.split()), (Names{"_run_on_cpu_0", "_run_on_acc_1"}));
}

TEST(Splitter, P_030_P_031_settings) {
  auto gm = diamond();
  const Values inputs{Value(torch::randn({4}))};
  const auto support = support_targets({"aten::sin"});
  auto children = [&](const SplitterOptions& options) {
    const auto split = Splitter(*gm, inputs, support, options).split();
    EXPECT_VALUES_EQ(gm->forward(inputs), split->forward(inputs));
    return children_of(*split);
  };
  EXPECT_EQ(children({}), (Names{"_run_on_cpu_0", "_run_on_acc_1", "_run_on_cpu_2"}));
  // A subgraph of one is too small: all is one on the CPU.
  EXPECT_EQ(children({.min_acc_module_size = 2}), Names{"_run_on_cpu_0"});
  EXPECT_EQ(children({.non_acc_submodule_name = "rest_"}),
            (Names{"rest_0", "_run_on_acc_1", "rest_2"}));
  try {
    Splitter(*gm, inputs, support, {.max_acc_splits = 2}).generate_split_results();
    FAIL();
  } catch (const PassError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("Cannot fulfill max_acc_splits limit."));
  }
  auto empty = parse_module("%x = placeholder[target=x]\nreturn %x\n");
  try {
    Splitter(*empty, inputs, support).split();
    FAIL();
  } catch (const PassError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("Couldn't create subgraphs"));
  }
}

TEST(Splitter, P_031_R_074_non_tensor_output_with_a_cpu_user) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%size = call_method[target=size](args = (%x, 0))
%mul = call_function[target=operator.mul](args = (%size, 2))
%sub = call_function[target=aten::sub.Tensor](args = (%x, %mul))
%relu = call_function[target=aten::relu](args = (%sub,))
return %relu
)");
  ShapeProp(*gm).propagate({Value(torch::ones({2}))});
  const Graph& graph = gm->graph();
  const Node& mul = *graph.find_node("mul");
  const auto support = support_targets({"size", "operator.mul", "aten::relu"});
  const AccNodes found = find_acc_nodes(*gm, support);
  EXPECT_FALSE(found.is_acc[mul.id()]);
  EXPECT_TRUE(found.is_acc[graph.find_node("relu")->id()]);
  EXPECT_EQ(found.tracker.of(mul), (Names{"init_acc|callable_and_operator_supported",
                                          "acc_del|non_tensor_output_with_cpu_user"}));
  EXPECT_EQ(found.tracker.to_map().at("mul")[1],
            "mul: acc_del|non_tensor_output_with_cpu_user sub");
  EXPECT_EQ(found.tracker.of(*graph.find_node("x")), Names{"init_cpu|not_callable"});
  EXPECT_THAT(found.tracker.text_of(mul, true),
              testing::HasSubstr("| sub: init_cpu|operator_support #\n"));
  // The other way round: what gets a number from the CPU runs there as well.
  const AccNodes inputs = find_acc_nodes(*gm, support_targets({"aten::sub", "aten::relu"}));
  EXPECT_EQ(inputs.tracker.of(*graph.find_node("sub")),
            (Names{"init_acc|callable_and_operator_supported", "acc_del|user_of_new_cpu_node"}));
  EXPECT_TRUE(find_acc_nodes(*gm, support, /*allow_non_tensor=*/true).is_acc[mul.id()]);
}

TEST(Splitter, P_032_results_and_previews) {
  auto gm = diamond();
  const Values inputs{Value(torch::randn({4}))};
  Splitter splitter(*gm, inputs, support_targets({"aten::sin", "aten::cos"}));
  const SplitResult result = splitter.generate_split_results();
  EXPECT_EQ(result.non_acc_submodule_prefix, "_run_on_cpu_");
  ASSERT_EQ(result.submodule_inputs.size(), 2u);
  EXPECT_VALUES_EQ(inputs[0], result.submodule_inputs.at("_run_on_acc_0").at(0));
  EXPECT_VALUES_EQ(Value(inputs[0].toTensor().sin()),
                   result.submodule_inputs.at("_run_on_cpu_1").at(0));
  const std::string support = splitter.node_support_preview();
  EXPECT_EQ(support,
            "\nSupported node types in the model:\n"
            "aten::cos: ((torch.float32,), {})\naten::sin: ((torch.float32,), {})\n"
            "\nUnsupported node types in the model:\n"
            "aten::add.Tensor: ((torch.float32, torch.float32), {})\n");
  const std::string preview = splitter.split_preview();
  for (const char* line :
       {"Before removing small acc subgraphs, total 2 subgraphs are created: 1 acc subgraphs and 1 "
        "cpu subgraphs.",
        "_run_on_acc_0: 2 node(s)", "_run_on_cpu_1: 1 node(s)",
        "Processing acc submodule _run_on_acc_0",
        "Total input size in bytes is 16, total output size in bytes is 32"})
    EXPECT_THAT(preview, testing::HasSubstr(line));
}

// The CPU's nodes and the accelerator's alternate, but a read never crosses a write.
TEST(Splitter, effects_keep_their_order) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%copy = call_function[target=aten::clone](args = (%x,))
%sin = call_function[target=aten::sin](args = (%copy,))
%add = call_function[target=aten::add_.Tensor](args = (%copy, 1))
%sin_1 = call_function[target=aten::sin](args = (%copy,))
%out = call_function[target=aten::sub.Tensor](args = (%sin, %sin_1))
return %out
)");
  const Values inputs{Value(torch::randn({4}))};
  Splitter splitter(*gm, inputs, support_targets({"aten::sin"}));
  const auto split = splitter.split();
  EXPECT_EQ(children_of(*split), (Names{"_run_on_cpu_0", "_run_on_acc_1", "_run_on_cpu_2",
                                        "_run_on_acc_3", "_run_on_cpu_4"}));
  EXPECT_VALUES_EQ(gm->forward(inputs), split->forward(inputs));
}

// Random graphs with numbers among the values: the parts compute what the whole does.
TEST(Splitter, P_030_random_graphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    auto graph = std::make_shared<Graph>();
    std::vector<Node*> tensors{&graph->placeholder("x")}, numbers;
    for (int i = 0; i < 14; ++i) {
      Node& input = *tensors[random() % tensors.size()];
      switch (random() % 4) {
        case 0:
          numbers.push_back(&graph->call_method("size", {input, 0}));
          break;
        case 1:
          if (!numbers.empty()) {
            tensors.push_back(
                &graph->call_function("torch.add", {input, *numbers[random() % numbers.size()]}));
            break;
          }
          [[fallthrough]];
        case 2:
          tensors.push_back(&graph->call_function("torch.sin", {input}));
          break;
        default:
          tensors.push_back(
              &graph->call_function("torch.mul", {input, *tensors[random() % tensors.size()]}));
      }
    }
    graph->output(*tensors.back());
    GraphModule gm(graph);
    const Values inputs{Value(torch::randn({3}))};
    const bool moves = random() % 2 != 0;
    Splitter splitter(gm, inputs, support_targets({"torch.sin", "torch.add", "size"}),
                      {.allow_non_tensor = moves, .move_non_tensor_nodes_on_boundary = moves});
    const auto split = splitter.split();
    split->graph().lint({.strict = true});
    EXPECT_VALUES_EQ(gm.forward(inputs), split->forward(inputs));
    if (moves) continue;
    // Only tensors go in and out of the accelerator.
    for (const Node& node : split->graph().nodes()) {
      if (node.op() != Opcode::kCallModule || !node.target().str().starts_with("_run_on_acc_"))
        continue;
      const Graph& part = child(*split, node.target().str())->graph();
      for (const Node* input : part.placeholders())
        EXPECT_TRUE(is_node_output_tensor(*input)) << round << " " << input->name();
      for (const Node* result : part.output_node().all_input_nodes())
        EXPECT_TRUE(is_node_output_tensor(*result)) << round << " " << result->name();
    }
  }
}

}  // namespace
}  // namespace fx
