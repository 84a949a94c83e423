// split_module: what crosses partitions, names, order, and what must be refused.
#include "fx/passes/split_module.h"

#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

// Linear layer twice, a parameter, clamps and a sum: the example of torch.fx's documentation.
struct Net : torch::nn::Module {
  Net() {
    torch::manual_seed(0);
    param = register_parameter("param", torch::rand({3, 4}));
    linear = register_module("linear", torch::nn::Linear(4, 5));
  }
  at::Tensor param;
  torch::nn::Linear linear{nullptr};
};

std::shared_ptr<GraphModule> net() {
  static Net root;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& param = graph->get_attr("param");
  Node& add = graph->call_function("operator.add", {x, param});
  Node& linear = graph->call_module("linear", {add});
  Node& clamp = graph->call_method("clamp", {linear}, {{"min", 0.0}, {"max", 1.0}});
  Node& linear_1 = graph->call_module("linear", {y});
  Node& clamp_1 = graph->call_method("clamp", {linear_1}, {{"min", 0.0}, {"max", 1.0}});
  graph->output(graph->call_function("operator.add", {clamp, clamp_1}));
  for (Node& node : graph->nodes()) node.meta().set("mark", std::string(node.name()));
  return std::make_shared<GraphModule>(root, graph, "Net");
}

// 0, 1, 2, 0, 1, 2 ...
SplitCallback in_turn(int count) {
  return [count, next = 0](const Node&) mutable { return next++ % count; };
}

SplitCallback by_name(std::map<std::string, int> numbers) {
  return [numbers = std::move(numbers)](const Node& node) {
    return numbers.at(std::string(node.name()));
  };
}

void expect_same(const GraphModule& original, GraphModule& split, const Values& inputs) {
  for (const bool interpreted : {false, true}) {
    Values mine, theirs;
    for (const Value& input : inputs) {
      mine.push_back(clone_tensors(input));
      theirs.push_back(clone_tensors(input));
    }
    const Value expected = Interpreter(const_cast<GraphModule&>(original)).run(mine);
    EXPECT_VALUES_EQ(expected,
                     interpreted ? Interpreter(split).run(theirs) : split.forward(theirs));
    for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_VALUES_EQ(mine[i], theirs[i]);
  }
  split.graph().lint({.strict = true});
}

TEST(SplitModule, E_014_in_three) {
  const auto module = net();
  const std::string before = to_text(module->graph());
  const auto split = split_module(*module, in_turn(3));
  EXPECT_EQ(split->graph().str(),
            "graph():\n"
            "    %x : [num_users=1] = placeholder[target=x]\n"
            "    %y : [num_users=1] = placeholder[target=y]\n"
            "    %param : [num_users=1] = get_attr[target=param]\n"
            "    %submod_0 : [num_users=2] = call_module[target=submod_0](args = (%x, %param, %y), "
            "kwargs = {})\n"
            "    %getitem : [num_users=1] = call_function[target=operator.getitem](args = "
            "(%submod_0, 0), kwargs = {})\n"
            "    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = "
            "(%submod_0, 1), kwargs = {})\n"
            "    %submod_1 : [num_users=2] = call_module[target=submod_1](args = (%getitem, "
            "%getitem_1), kwargs = {})\n"
            "    %getitem_2 : [num_users=1] = call_function[target=operator.getitem](args = "
            "(%submod_1, 0), kwargs = {})\n"
            "    %getitem_3 : [num_users=1] = call_function[target=operator.getitem](args = "
            "(%submod_1, 1), kwargs = {})\n"
            "    %submod_2 : [num_users=1] = call_module[target=submod_2](args = (%getitem_2, "
            "%getitem_3), kwargs = {})\n"
            "    return submod_2");
  expect_same(*module, *split, {torch::rand({3, 4}), torch::rand({3, 4})});
  EXPECT_EQ(to_text(module->graph()), before);
  EXPECT_EQ(*split->meta().get<std::vector<std::string>>("partition_names"),
            (std::vector<std::string>{"submod_0", "submod_1", "submod_2"}));
  for (const char* name : {"submod_0", "submod_1", "submod_2"}) {
    const auto part = std::dynamic_pointer_cast<GraphModule>(split->find_submodule(name));
    ASSERT_TRUE(part);
    part->graph().lint({.strict = true});
    for (const Node& node : part->graph().nodes())
      EXPECT_TRUE(node.is_output() || node.meta().contains("mark")) << node.name();
  }
  EXPECT_EQ(split->class_name(), "Net");
  EXPECT_VALUES_EQ(Value(module->find_tensor("param")), Value(split->find_tensor("param")));
}

TEST(SplitModule, E_015_dead_code_in_its_own_partition) {
  auto module = symbolic_trace([](Proxy x) {
    Proxy kept = x * 2;
    (void)(x * 3);
    return kept + 1;
  });
  const auto split = split_module(*module, by_name({{"mul", 0}, {"mul_1", 1}, {"add", 2}}));
  EXPECT_EQ(split->graph().find_nodes(Opcode::kCallModule).size(), 3u);
  expect_same(*module, *split, {torch::rand({3})});
  EXPECT_VALUES_EQ(split->deep_copy()->forward({torch::ones({1})}), Value(torch::full({1}, 3.0)));
}

TEST(SplitModule, E_016_names_of_inputs_and_nodes) {
  const auto module = net();
  auto inputs_of = [&](const SplitOptions& options) {
    const auto split = split_module(*module, in_turn(3), options);
    const auto part = std::dynamic_pointer_cast<GraphModule>(
        split->find_submodule(options.partition_affix.empty() ? "submod_0" : "submod_pp_0"));
    return names(part->graph().placeholders());
  };
  EXPECT_EQ(inputs_of({}), (Names{"x", "param", "y"}));
  EXPECT_EQ(inputs_of({.keep_original_input_name = false}), (Names{"arg_0", "arg_1", "arg_2"}));
  EXPECT_EQ(inputs_of({.partition_affix = "pp"}), (Names{"x", "param", "y"}));
  const auto kept = split_module(*module, in_turn(3), {.keep_original_node_name = true});
  EXPECT_EQ(
      names(std::dynamic_pointer_cast<GraphModule>(kept->find_submodule("submod_0"))->graph()),
      (Names{"x", "param", "y", "add", "linear_1", "output"}));
}

TEST(SplitModule, E_017_F20_returned_inputs_and_whole_partitions) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n"
      "%y = call_function[target=operator.neg](args = (%x,))\n"
      "%z = call_function[target=operator.mul](args = (%y, %y))\n"
      "return (%x, [%y, {'a': %z}])\n");
  const auto split = split_module(*module, by_name({{"y", 0}, {"z", 1}}));
  expect_same(*module, *split, {torch::rand({3})});
  const auto tuples = split_module(*module, by_name({{"y", 0}, {"z", 1}}), {.tuple_return = true});
  EXPECT_EQ(tuples->graph().find_calls("operator.getitem").size(), 2u);
  expect_same(*module, *tuples, {torch::rand({3})});
}

TEST(SplitModule, E_019_default_of_a_placeholder) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& scale = graph->placeholder_with_default("scale", 2.5);
  Node& mul = graph->call_function("operator.mul", {x, scale});
  graph->output(graph->call_function("operator.add", {mul, scale}));
  const GraphModule module(graph);
  const auto split = split_module(module, in_turn(2));
  EXPECT_EQ(split->graph().placeholders()[1]->arg(0), Argument(2.5));
  EXPECT_VALUES_EQ(split->forward({torch::ones({2})}), Value(torch::full({2}, 5.0)));
  EXPECT_VALUES_EQ(split->forward({torch::ones({2}), 1.0}), Value(torch::full({2}, 2.0)));
}

TEST(SplitModule, E_020_order_and_graphs_without_operations) {
  const char* text =
      "%x = placeholder[target=x]\n"
      "%w = get_attr[target=w]\n"
      "%a = call_function[target=operator.add](args = (%x, 1))\n"
      "%b = call_function[target=operator.mul](args = (%x, %w))\n"
      "%c = call_function[target=operator.add](args = (%x, 3))\n"
      "return (%a, %b, %c)\n";
  auto module = parse_module(text);
  module->set_parameter("w", torch::full({1}, 2.0));
  auto order = [&](bool original) {
    const auto split = split_module(*module, by_name({{"a", 7}, {"b", 3}, {"c", 5}}),
                                    {.keep_original_order = original});
    expect_same(*module, *split, {torch::rand({3})});
    return names(split->graph());
  };
  // Of what is ready, torch.fx takes the latest first.
  EXPECT_EQ(order(false), (Names{"x", "w", "submod_5", "submod_3", "submod_7", "output"}));
  EXPECT_EQ(order(true), (Names{"x", "submod_7", "w", "submod_3", "submod_5", "output"}));
  for (const bool original : {false, true}) {
    auto none = parse_module("%x = placeholder[target=x]\n%y = placeholder[target=y]\nreturn %x\n");
    const auto split = split_module(*none, in_turn(2), {.keep_original_order = original});
    EXPECT_EQ(names(split->graph()), (Names{"x", "y", "output"}));
    EXPECT_VALUES_EQ(split->forward({1, 2}), Value(1));
  }
}

TEST(SplitModule, P_026_E_022_E_023_modules_and_attributes_shared_by_partitions) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n%w = get_attr[target=deep.w]\n"
      "%a = call_module[target=deep.lin](args = (%x,))\n"
      "%b = call_function[target=operator.add](args = (%a, %w))\n"
      "%c = call_module[target=deep.lin](args = (%b,))\n"
      "%d = call_module[target=deep_lin](args = (%c,))\n"
      "%e = call_function[target=operator.add](args = (%d, %w))\n"
      "return %e\n");
  torch::manual_seed(2);
  module->set_submodule("deep.lin", std::make_shared<torch::nn::LinearImpl>(3, 3));
  module->set_submodule("deep_lin", std::make_shared<torch::nn::LinearImpl>(3, 3));
  module->set_parameter("deep.w", torch::rand({3}));
  module->recompile();
  std::map<std::string, std::string> origin;
  const auto split = split_module(
      *module, by_name({{"a", 1}, {"b", 1}, {"c", 2}, {"d", 2}, {"e", 2}}), {}, &origin);
  EXPECT_EQ(origin, (std::map<std::string, std::string>{{"submod_1.deep_lin", "deep.lin"},
                                                        {"submod_2.deep_lin", "deep.lin"},
                                                        {"submod_2.deep_lin_", "deep_lin"}}));
  expect_same(*module, *split, {torch::rand({2, 3})});
  EXPECT_EQ(split->find_submodule("submod_1.deep_lin"), module->find_submodule("deep.lin"));
  EXPECT_EQ(split->find_submodule("submod_2.deep_lin_"), module->find_submodule("deep_lin"));
  // All in one.
  expect_same(*module, *split_module(*module, [](const Node&) { return 0; }),
              {torch::rand({2, 3})});
}

TEST(SplitModule, partitions_that_wait_for_each_other) {
  const auto module = net();
  EXPECT_FX_ERROR(split_module(*module, by_name({{"add", 0},
                                                 {"linear", 1},
                                                 {"clamp", 0},
                                                 {"linear_1", 2},
                                                 {"clamp_1", 2},
                                                 {"add_1", 0}})),
                  PassError, kBadPartition,
                  "cycle exists between partitions! Among submod_0, submod_1");
  auto crossed = parse_module(
      "%x = placeholder[target=x]\n"
      "%a = call_function[target=operator.add](args = (%x, 1))\n"
      "%b = call_function[target=operator.mul](args = (%x, 2))\n"
      "%c = call_function[target=operator.add](args = (%b, 3))\nreturn (%a, %c)\n");
  const auto callback = by_name({{"a", 0}, {"b", 1}, {"c", 0}});
  expect_same(*crossed, *split_module(*crossed, callback), {torch::rand({2})});
  EXPECT_FX_ERROR(split_module(*crossed, callback, {.keep_original_order = true}), PassError,
                  kBadPartition, "submod_0 needs results of submod_1, which begins after it");
  // A name that an attribute has already.
  auto taken = parse_module(
      "%x = placeholder[target=x]\n%w = get_attr[target=submod_0]\n"
      "%a = call_function[target=operator.add](args = (%x, %w))\nreturn %a\n");
  taken->set_parameter("submod_0", torch::rand({2}));
  EXPECT_FX_ERROR(split_module(*taken, in_turn(1)), PassError, kBadPartition,
                  "the name 'submod_0' is taken by an attribute; set partition_affix");
}

// A partition that reads memory in front of a write and one that reads it behind it.
TEST(SplitModule, effects_keep_their_order) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n"
      "%a = call_function[target=operator.add](args = (%x, 1))\n"
      "%w = call_function[target=aten::mul_.Scalar](args = (%x, 2))\n"
      "%b = call_function[target=operator.add](args = (%x, 1))\n"
      "return (%a, %b)\n");
  for (const auto& numbers : std::vector<std::map<std::string, int>>{
           {{"a", 0}, {"w", 1}, {"b", 2}}, {{"a", 2}, {"w", 1}, {"b", 0}}}) {
    const auto split = split_module(*module, by_name(numbers));
    expect_same(*module, *split, {torch::ones({2})});
  }
  EXPECT_FX_ERROR(split_module(*module, by_name({{"a", 0}, {"w", 1}, {"b", 0}})), PassError,
                  kBadPartition, "cycle exists between partitions!");
  auto mode = parse_module(
      "%x = placeholder[target=x]\n"
      "%g = call_function[target=torch._C._set_grad_enabled](args = (False,))\nreturn %x\n");
  EXPECT_FX_ERROR(split_module(*mode, in_turn(1)), PassError, kBadPartition,
                  "node 'g' changes gradient or autocast mode");
}

}  // namespace
}  // namespace fx
