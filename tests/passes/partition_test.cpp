// Partitions: proposing, fusing, and what must be refused.
#include <random>
#include <set>

#include "fx/analysis/effect_order.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"
#include "fx/passes/fuse_partitions.h"
#include "fx/passes/partition_merger.h"
#include "fx/passes/partitioner.h"
#include "fx/passes/shape_prop.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using Groups = std::vector<std::set<std::string>>;

Groups names_of(const std::vector<Partition>& partitions) {
  Groups out;
  for (const Partition& partition : partitions) {
    out.emplace_back();
    for (const Node* node : partition.nodes) out.back().insert(std::string(node->name()));
  }
  return out;
}

Values clone_all(const Values& values) {
  Values out;
  for (const Value& value : values) out.push_back(clone_tensors(value));
  return out;
}

OperatorSupport supports(std::set<std::string> targets) {
  return [targets = std::move(targets)](const GraphModule&, const Node& node) {
    return node.op() == Opcode::kCallFunction && targets.contains(node.target().str());
  };
}

// Fuses what is proposed for additions and checks that nothing else changed.
Groups partition_and_check(GraphModule& module, const OperatorSupport& support,
                           const PartitionerOptions& options, Values inputs,
                           bool remove_bookends = false) {
  const Value expected = Interpreter(module).run(clone_all(inputs));
  CapabilityBasedPartitioner partitioner(module, support, options);
  auto partitions = partitioner.propose_partitions();
  if (remove_bookends) partitioner.remove_bookend_non_compute_ops(partitions);
  const Groups groups = names_of(partitions);
  const auto calls = partitioner.fuse_partitions(partitions);
  EXPECT_EQ(calls.size(), partitions.size());
  module.graph().lint({.strict = true});
  EXPECT_VALUES_EQ(expected, module.forward(clone_all(inputs)));
  return groups;
}

Groups proposed(auto fn, int inputs,
                const PartitionerOptions& options = {.allows_single_node_partition = true}) {
  auto module = symbolic_trace(fn);
  Values values;
  for (int i = 0; i < inputs; ++i) values.push_back(torch::rand({4}) - 0.5);
  return partition_and_check(*module, supports({"operator.add"}), options, values);
}

TEST(Partitioner, R_030_chains_and_branches) {
  EXPECT_EQ(proposed(
                [](Proxy a, Proxy b, Proxy c) {
                  Proxy add_1 = (a + b) + b;
                  Proxy add_2 = add_1 + c;
                  Proxy add_4 = add_1 + add_2.call_method("relu") + (add_1 + add_2);
                  Proxy add_6 = add_4.call_method("relu") + add_4;
                  return std::vector<Proxy>{add_4, add_6 + add_4};
                },
                3),
            (Groups{{"add_7", "add_6"}, {"add_5", "add_4", "add_3"}, {"add_2", "add_1", "add"}}));
  // The relu blocks.
  EXPECT_EQ(proposed(
                [](Proxy a, Proxy b) {
                  Proxy add_1 = (a + b) + b;
                  Proxy add_2 = add_1 + add_1.call_method("relu");
                  return std::vector<Proxy>{add_1 + add_2, add_1};
                },
                2),
            (Groups{{"add_3", "add_2"}, {"add_1", "add"}}));
  // Side by side, with and without something that needs all.
  EXPECT_EQ(
      proposed([](Proxy a, Proxy b, Proxy c) { return std::vector<Proxy>{a + b, a + c, b + c}; },
               3),
      (Groups{{"add_2", "add_1", "add"}}));
  EXPECT_EQ(proposed(
                [](Proxy a, Proxy b, Proxy c) {
                  Proxy add = a + b, add_1 = a + c, add_2 = b + c;
                  return record_call("torch.where", {TraceArg(add > 0), add_1, add_2});
                },
                3),
            (Groups{{"add_2", "add_1", "add"}}));
  // One branch can take its producer along, or none.
  EXPECT_EQ(proposed(
                [](Proxy a) {
                  Proxy add = a + 1;
                  Proxy relu = add.call_method("relu");
                  return std::vector<Proxy>{relu, add + 2};
                },
                1),
            (Groups{{"add_1", "add"}}));
  EXPECT_EQ(proposed(
                [](Proxy a) {
                  Proxy add = a + 1;
                  return std::vector<Proxy>{add.call_method("relu"), add.call_method("relu")};
                },
                1),
            (Groups{{"add"}}));
  EXPECT_EQ(proposed(
                [](Proxy a) {
                  Proxy add = a + 1, add_1 = add + 2, add_2 = add + 1;
                  return std::vector<Proxy>{add_2 + 1, add_1};
                },
                1),
            (Groups{{"add_3", "add_2", "add", "add_1"}}));
  EXPECT_EQ(proposed(
                [](Proxy a) {
                  Proxy add = a + 1, add_1 = add + 2, add_2 = add + 1;
                  return add_2 + add_1;
                },
                1),
            (Groups{{"add_3", "add_2", "add", "add_1"}}));
}

TEST(Partitioner, R_030_three_branches) {
  EXPECT_EQ(proposed(
                [](Proxy a) {
                  Proxy add = a + 1, add_1 = add + 1, add_2 = add + 1, add_3 = add + 1;
                  return stack({add_1, add_2, add_3});
                },
                1),
            (Groups{{"add_3", "add_2", "add_1", "add"}}));
  EXPECT_EQ(proposed(
                [](Proxy a) {
                  Proxy add = a + 1, add_1 = add + 1, add_2 = add + 1, add_3 = add + add_2;
                  return stack({add_1, add_2, add_3});
                },
                1),
            (Groups{{"add_3", "add_2", "add_1", "add"}}));
  EXPECT_EQ(proposed(
                [](Proxy a) {
                  Proxy add = a + 1;
                  Proxy relu = add.call_method("relu");
                  Proxy add_1 = add + relu;
                  return stack({relu, add_1, add.call_method("relu")});
                },
                1),
            (Groups{{"add_1"}, {"add"}}));
}

// Without single nodes: what is left computes something; a view beside one node does not count.
TEST(Partitioner, single_nodes_and_getitem) {
  auto fn = [](Proxy a) {
    Proxy add = a + 1;
    Proxy relu = add.call_method("relu");
    return (relu + 1) + 2;
  };
  EXPECT_EQ(proposed(fn, 1, {}), (Groups{{"add_1", "add_2"}}));
  EXPECT_EQ(proposed(fn, 1, {.allowed_single_node_partition_ops = {"operator.add"}}),
            (Groups{{"add_1", "add_2"}, {"add"}}));

  // Results of several values stay with their getitem nodes, supported or not.
  const char* text =
      "%x = placeholder[target=x]\n"
      "%add = call_function[target=operator.add](args = (%x, 1))\n"
      "%pair = call_function[target=aten::std_mean](args = (%add,))\n"
      "%std = call_function[target=operator.getitem](args = (%pair, 0))\n"
      "%mean = call_function[target=operator.getitem](args = (%pair, 1))\n"
      "return (%std, %mean)\n";
  auto both = parse_module(text);
  EXPECT_EQ(partition_and_check(*both, supports({"operator.add", "aten::std_mean"}), {},
                                {torch::rand({5})}),
            (Groups{{"add", "pair", "std", "mean"}}));
  auto neither = parse_module(text);
  EXPECT_EQ(partition_and_check(*neither, supports({"operator.add", "operator.getitem"}),
                                {.allows_single_node_partition = true}, {torch::rand({5})}),
            (Groups{{"add"}}))
      << "the getitem nodes follow std_mean, which is not supported";
}

TEST(Partitioner, P_023_R_030_bookends) {
  const char* text =
      "%x = placeholder[target=x]\n"
      "%view = call_function[target=aten::view](args = (%x, [2, 3, 2]))\n"
      "%permute = call_function[target=aten::permute](args = (%view, [1, 0, 2]))\n"
      "%add = call_function[target=operator.add](args = (%permute, 1))\n"
      "%permute_1 = call_function[target=aten::permute](args = (%add, [1, 0, 2]))\n"
      "%add_1 = call_function[target=operator.add](args = (%permute_1, 2))\n"
      "%permute_2 = call_function[target=aten::permute](args = (%add_1, [1, 0, 2]))\n"
      "%permute_3 = call_function[target=aten::permute](args = (%permute_2, [1, 0, 2]))\n"
      "return (%permute_2, %permute_3)\n";
  const auto support = supports({"operator.add", "aten::view", "aten::permute"});
  const PartitionerOptions options{.non_compute_ops = {"aten::view", "aten::permute"}};
  auto on = parse_module(text);
  EXPECT_EQ(partition_and_check(*on, support, options, {torch::rand({12})}, true),
            (Groups{{"add", "permute_1", "add_1"}}));
  auto off = parse_module(text);
  EXPECT_EQ(partition_and_check(*off, support, options, {torch::rand({12})}, false),
            (Groups{{"view", "permute", "add", "permute_1", "add_1", "permute_2", "permute_3"}}));
}

// The support function may say yes to everything; partitions are in graph order.
TEST(Partitioner, P_023_R_083_order_of_nodes) {
  auto module = symbolic_trace([](Proxy x) { return (x + 1) + 2; });
  CapabilityBasedPartitioner partitioner(*module,
                                         [](const GraphModule&, const Node&) { return true; });
  for (int run = 0; run < 10; ++run) {
    const auto partitions = partitioner.propose_partitions();
    ASSERT_EQ(partitions.size(), 1u);
    Names names;
    for (const Node* node : partitions[0].nodes) names.emplace_back(node->name());
    EXPECT_EQ(names, (Names{"x", "add", "add_1", "output"}));
  }
  EXPECT_EQ(partitioner.partition_and_fuse().size(), 1u);
  EXPECT_EQ(
      module->graph().str(),
      "graph():\n"
      "    %x : [num_users=1] = placeholder[target=x]\n"
      "    %fused_0 : [num_users=1] = call_module[target=fused_0](args = (%x,), kwargs = {})\n"
      "    return fused_0");
}

// The write stands between two reads: merging those would let one see the other's value.
TEST(Partitioner, writes_keep_their_place) {
  const char* text =
      "%x = placeholder[target=x]\n"
      "%a = call_function[target=operator.add](args = (%x, 1))\n"
      "%w = call_function[target=aten::mul_.Scalar](args = (%x, 2))\n"
      "%b = call_function[target=operator.add](args = (%x, 1))\n"
      "return (%a, %b)\n";
  auto module = parse_module(text);
  EXPECT_EQ(partition_and_check(*module, supports({"operator.add"}),
                                {.allows_single_node_partition = true}, {torch::ones({2})}),
            (Groups{{"b"}, {"a"}}));
  auto pair = parse_module(text);
  Node* const nodes[] = {pair->graph().find_node("a"), pair->graph().find_node("b")};
  EXPECT_FALSE(validate_partition(nodes));
  EXPECT_FX_ERROR(fuse_by_partitions(*pair, {{nodes[0], nodes[1]}}), PassError, kBadPartition,
                  "a path leaves partition 0 (a, b) and comes back");
}

TEST(Partitioner, P_010_P_011_P_012_operator_support) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n%y = placeholder[target=y]\n"
      "%a = call_function[target=aten::add.Tensor](args = (%x, %y))\n"
      "%b = call_method[target=relu](args = (%a,))\n"
      "%c = call_function[target=torch.where](args = (%y, %a, %b))\nreturn %c\n");
  module->set_submodule("lin", std::make_shared<torch::nn::LinearImpl>(2, 2));
  Graph& graph = module->graph();
  Node& c = *graph.find_node("c");
  Node* lin;
  {
    const auto guard = graph.inserting_before(c);
    lin = &graph.call_module("lin", {*graph.find_node("b")});
  }
  c.update_arg(1, *lin);
  auto yes = [&](const OperatorSupport& support) {
    Names names;
    for (const Node& node : graph.nodes())
      if (!node.is_placeholder() && !node.is_output() && support(*module, node))
        names.emplace_back(node.name());
    return names;
  };
  EXPECT_EQ(yes(support_targets({"aten::add", "relu"})), (Names{"a", "b"}));
  EXPECT_EQ(yes(support_targets({"aten::add.Tensor"})), (Names{"a"}));
  EXPECT_EQ(yes(support_targets({"aten::add.Scalar"})), Names{});
  EXPECT_EQ(yes(support_targets({"torch.nn.Linear"})), (Names{"lin"}));
  const OperatorSupport floats = operator_support(
      {{"torch.where", SupportedArguments{{SupportedDtypes({at::kBool}), std::nullopt}, {}}}});
  EXPECT_EQ(yes(floats), Names{}) << "no dtypes are known";
  shape_prop(*module, {torch::ones({2, 2}), torch::ones({2, 2}, at::kBool)});
  EXPECT_EQ(yes(floats), (Names{"c"}));
  EXPECT_EQ(yes(decline_if_input_dtype(at::kBool)), (Names{"b", "lin"}));
  EXPECT_EQ(yes(decline_if_node_in_names({"a", "c"})), (Names{"b", "lin"}));
  EXPECT_EQ(yes(chain({support_targets({"aten::add", "relu"}), decline_if_input_dtype(at::kBool)})),
            (Names{"b"}));
  EXPECT_EQ(yes(any_chain({support_targets({"relu"}), support_targets({"torch.nn.Linear"})})),
            (Names{"b", "lin"}));
  EXPECT_EQ(yes(chain({})).size(), 4u);
  EXPECT_EQ(yes(any_chain({})).size(), 0u);
}

// --- fusing --------------------------------------------------------------------------------------

std::shared_ptr<GraphModule> additions() {
  auto module = parse_module(
      "%a = placeholder[target=a]\n%b = placeholder[target=b]\n%c = placeholder[target=c]\n"
      "%add = call_function[target=operator.add](args = (%a, %b))\n"
      "%linear = call_module[target=linear](args = (%add,))\n"
      "%add_1 = call_function[target=operator.add](args = (%linear, %c))\n"
      "%param = get_attr[target=param]\n"
      "%add_2 = call_function[target=operator.add](args = (%add_1, %param))\n"
      "%add_3 = call_function[target=operator.add](args = (%add_1, %linear))\n"
      "%add_4 = call_function[target=operator.add](args = (%add_2, %add_3))\n"
      "%relu = call_method[target=relu](args = (%add_4,))\n"
      "%add_5 = call_function[target=operator.add](args = (%relu, %add_2))\n"
      "return (%add_5, %add_4)\n");
  torch::manual_seed(1);
  module->set_submodule("linear", std::make_shared<torch::nn::LinearImpl>(4, 4));
  module->set_parameter("param", torch::rand({4}));
  module->recompile();
  return module;
}

std::vector<std::vector<Node*>> nodes_of(GraphModule& module, const std::vector<Names>& groups) {
  std::vector<std::vector<Node*>> out;
  for (const Names& group : groups) {
    out.emplace_back();
    for (const std::string& name : group) out.back().push_back(module.graph().find_node(name));
  }
  return out;
}

TEST(FusePartitions, R_031_results_stay) {
  const std::vector<std::vector<Names>> cases = {
      {{"add", "linear"}},
      {{"add", "linear"}, {"add_1", "param", "add_2"}},
      {{"add", "linear"}, {"add_1", "add_2"}, {"add_3", "add_4"}},
      {{"add_2", "add_3"}},
      {{"add_3", "add_4"}},
      {{"add_2", "add_3"}, {"add", "linear"}},  // in any order
      {{"add_4", "add_3", "add_2"}},            // of nodes as well
      {{"linear"}, {"relu"}},                   // single ones
      {{"param", "add_2"}},                     // with the attribute
      {{"add_5", "add_1", "add", "linear", "relu", "add_4", "param", "add_2", "add_3"}},
      {{}, {"add_4"}},
  };
  const Values inputs{torch::rand({4}), torch::rand({4}), torch::rand({4})};
  for (const auto& groups : cases) {
    for (const bool tuple : {false, true}) {
      auto module = additions();
      const Value expected = module->forward(inputs);
      const auto calls =
          fuse_by_partitions(*module, nodes_of(*module, groups), {.always_return_tuple = tuple});
      SCOPED_TRACE(module->graph().str());
      module->graph().lint({.strict = true});
      EXPECT_EQ(calls.size(), groups.size() - (groups[0].empty() ? 1 : 0));
      EXPECT_VALUES_EQ(expected, module->forward(inputs));
      EXPECT_VALUES_EQ(expected, Interpreter(*module).run(inputs));
      EXPECT_VALUES_EQ(expected, module->deep_copy()->forward(inputs));
    }
  }
}

TEST(FusePartitions, P_039_R_032_what_cannot_be_fused) {
  auto refused = [](const std::vector<Names>& groups, const std::string& text) {
    auto module = additions();
    const std::string before = to_text(module->graph());
    EXPECT_FX_ERROR(fuse_by_partitions(*module, nodes_of(*module, groups)), PassError,
                    kBadPartition, text);
    EXPECT_EQ(to_text(module->graph()), before);
  };
  refused({{"add", "linear"}, {"linear", "add_1"}}, "node 'linear' is in the partitions 0 and 1");
  refused({{"add", "add_1"}}, "a path leaves partition 0 (add, add_1) and comes back");
  refused({{"add_4", "add_5"}}, "a path leaves partition 0");
  // Two that are fine by themselves wait for each other.
  refused({{"add_1", "add_5"}, {"add_2", "relu"}}, "a path leaves partition");
  refused({{"a", "add"}}, "'a' is a placeholder");
  refused({{"output"}}, "'output' is the output");
  auto module = additions(), other = additions();
  EXPECT_FX_ERROR(fuse_by_partitions(*module, nodes_of(*other, {{"add"}})), PassError,
                  kBadPartition, "node 'add' belongs to another graph");
  Node& dead = module->graph().call_function("operator.neg", {*module->graph().find_node("a")});
  module->graph().erase_node(dead);
  EXPECT_FX_ERROR(fuse_by_partitions(*module, {{&dead}}), PassError, kBadPartition,
                  "has been erased");
}

TEST(FusePartitions, P_039_fuse_as_graph_module) {
  auto module = additions();
  const auto nodes = nodes_of(*module, {{"add_4", "add_3", "add_2"}})[0];
  EXPECT_TRUE(validate_partition(nodes));
  const FusedPartition part = fuse_as_graph_module(*module, nodes, "Sum");
  EXPECT_EQ(part.module->class_name(), "Sum");
  EXPECT_EQ(part.module->graph().str(),
            "graph():\n"
            "    %add_1 : [num_users=2] = placeholder[target=add_1]\n"
            "    %param : [num_users=1] = placeholder[target=param]\n"
            "    %linear : [num_users=1] = placeholder[target=linear]\n"
            "    %add_2 : [num_users=2] = call_function[target=operator.add](args = (%add_1, "
            "%param), kwargs = {})\n"
            "    %add_3 : [num_users=1] = call_function[target=operator.add](args = (%add_1, "
            "%linear), kwargs = {})\n"
            "    %add_4 : [num_users=1] = call_function[target=operator.add](args = (%add_2, "
            "%add_3), kwargs = {})\n"
            "    return (add_2, add_4)");
  EXPECT_EQ(names(part.inputs), (Names{"add_1", "param", "linear"}));
  EXPECT_EQ(names(part.outputs), (Names{"add_2", "add_4"}));
}

// --- random graphs -------------------------------------------------------------------------------

// What is left is free of circles, and no two that are left could merge.
TEST(PartitionMerger, random_graphs_are_free_of_circles) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const std::size_t count = 2 + random() % 40;
    std::vector<std::vector<std::uint32_t>> successors(count);
    std::vector<bool> supported(count);
    PartitionMerger merger;
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::uint32_t n = i ? random() % 4 : 0; n > 0; --n)
        successors[i].push_back(random() % i);
      supported[i] = random() % 3 != 0;
      merger.add(successors[i], supported[i], /*horizontal=*/seed % 4 != 0);
    }
    std::vector<std::size_t> unit(count);
    for (std::size_t i = 0; i < count; ++i) unit[i] = count + i;
    const auto partitions = merger.partitions();
    std::size_t covered = 0;
    for (std::size_t p = 0; p < partitions.size(); ++p)
      for (const auto item : partitions[p].items) {
        ASSERT_TRUE(supported[item]);
        unit[item] = p;
        ++covered;
      }
    EXPECT_EQ(covered,
              static_cast<std::size_t>(std::count(supported.begin(), supported.end(), true)));
    // reaches[a][b]: from unit a to unit b, by Warshall's algorithm.
    std::vector<std::vector<bool>> reaches(2 * count, std::vector<bool>(2 * count));
    for (std::size_t i = 0; i < count; ++i)
      for (const auto next : successors[i])
        if (unit[i] != unit[next]) reaches[unit[i]][unit[next]] = true;
    for (std::size_t k = 0; k < 2 * count; ++k)
      for (std::size_t i = 0; i < 2 * count; ++i)
        if (reaches[i][k])
          for (std::size_t j = 0; j < 2 * count; ++j)
            if (reaches[k][j]) reaches[i][j] = true;
    for (std::size_t i = 0; i < 2 * count; ++i) ASSERT_FALSE(reaches[i][i]) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fx
