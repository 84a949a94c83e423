#include "fx/passes/device_partitioner.h"

#include <numeric>

#include "fx/base/error.h"
#include "fx/passes/graph_manipulation.h"
#include "fx/passes/shape_prop.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using Names = std::vector<std::string>;
using Devices = std::vector<AcceleratorDevice>;

Devices devices_of(const std::vector<std::int64_t>& bytes) {
  Devices out;
  for (const std::int64_t size : bytes) {
    const int id = static_cast<int>(out.size());
    out.push_back({"dev_" + std::to_string(id), size, id});
  }
  return out;
}

// A module with a linear layer of four, vectors of four for all attributes, and shapes for inputs
// of four.
std::shared_ptr<GraphModule> small_module(const std::string& text) {
  torch::manual_seed(1);
  auto gm = parse_module(text);
  gm->set_submodule("linear", torch::nn::Linear(4, 4).ptr());
  for (const Node* node : gm->graph().find_nodes(Opcode::kGetAttr))
    gm->set_buffer(node->target().str(), torch::rand({4}));
  gm->recompile();
  Values inputs;
  for (std::size_t i = 0; i < gm->graph().placeholders().size(); ++i)
    inputs.emplace_back(torch::rand({4}));
  ShapeProp(*gm).propagate(inputs);
  return gm;
}

void expect_same(GraphModule& a, GraphModule& b) {
  Values inputs;
  for (const Node* node : a.graph().placeholders())
    inputs.emplace_back(torch::rand(tensor_meta(*node)->shape));
  EXPECT_VALUES_EQ(a.forward(inputs), b.forward(inputs));
}

// The calls of each partition.
std::vector<Names> calls_of(const DevicePartitions& partitions) {
  std::vector<Names> out;
  for (const auto& partition : partitions) {
    out.emplace_back();
    for (const Node* node : partition->nodes)
      if (!node->is_placeholder() && node->op() != Opcode::kGetAttr)
        out.back().emplace_back(node->name());
  }
  return out;
}

std::vector<std::vector<int>> devices_of(const DevicePartitionResult& result) {
  std::vector<std::vector<int>> out;
  for (const DagNode& node : result.dag) out.push_back(node.logical_device_ids);
  return out;
}

using Ids = std::vector<std::vector<int>>;

// The latencies that torch.fx's own tests use: a call without parameters computes twice as long as
// its bytes take, one with parameters as long as its result does.
NodeLatencies latencies_of(const GraphModule& gm) {
  NodeLatencies out;
  for (const Node& node : gm.graph().nodes()) {
    if (node.is_placeholder() || node.is_output() || node.op() == Opcode::kGetAttr) continue;
    const SizeBytes size = get_size_of_node(gm, node);
    const auto total = static_cast<double>(size.total_size);
    out[&node] = size.total_size == size.output_size
                     ? NodeLatency{total, 2 * total}
                     : NodeLatency{total, static_cast<double>(size.output_size)};
  }
  return out;
}

const std::string kThree = R"(
%a = placeholder[target=a]
%b = placeholder[target=b]
%c = get_attr[target=c]
%add = call_function[target=operator.add](args = (%a, %b))
%linear = call_module[target=linear](args = (%add,))
%add_1 = call_function[target=operator.add](args = (%linear, %c))
return %add_1
)";

// As in the text of torch.fx's tests, with vectors for what is drawn there.
const std::string kFive = R"(
%a = placeholder[target=a]
%c1 = get_attr[target=c1]
%add = call_function[target=operator.add](args = (%a, %c1))
%c2 = get_attr[target=c2]
%add_1 = call_function[target=operator.add](args = (%add, %c2))
%linear = call_module[target=linear](args = (%add,))
%c3 = get_attr[target=c3]
%add_2 = call_function[target=operator.add](args = (%add_1, %c3))
%add_3 = call_function[target=operator.add](args = (%add_1, %linear))
%add_4 = call_function[target=operator.add](args = (%add_2, %add_3))
return %add_4
)";

TEST(DevicePartitioner, X_021_E_001_one_device_is_enough) {
  auto gm = small_module(kThree);
  DevicePartitioner partitioner;
  const auto result = partitioner.partition_graph(*gm, {.devices = devices_of({125, 200, 125})});
  EXPECT_EQ(devices_of(result), (Ids{{1}}));
  expect_same(*gm, *result.module_with_submodules);
}

TEST(DevicePartitioner, X_021_E_002_errors) {
  auto gm = small_module(kThree);
  auto message = [&](const DevicePartitionerConfig& config, GraphModule& module) {
    try {
      DevicePartitioner().partition_graph(module, config);
    } catch (const PassError& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadPartition);
      return error.text();
    }
    return std::string("no error");
  };
  EXPECT_EQ(message({}, *gm), "No devices");
  EXPECT_EQ(message({.devices = devices_of({4, 4})}, *gm),
            "Devices do not have enough memory for the module");
  EXPECT_EQ(message({.devices = devices_of({50, 50, 50, 50, 50, 50})}, *gm),
            "linear is too large to fit any device");
  auto idle = small_module("%x = placeholder[target=x]\nreturn %x\n");
  EXPECT_EQ(message({.devices = devices_of({100})}, *idle),
            "No Partition since no operations in the module");
  EXPECT_EQ(message({.devices = devices_of({100, 120}), .mode = PartitionMode::kSparseNn}, *gm),
            "All devices must have same memory size!");
  auto plain = parse_module(kThree);
  EXPECT_THROW(DevicePartitioner().partition_graph(*plain, {.devices = devices_of({1000})}),
               PassError);  // no shapes are known
}

TEST(DevicePartitioner, X_022_E_003_nodes_come_and_go) {
  auto gm = small_module(R"(
%a = placeholder[target=a]
%b = placeholder[target=b]
%add = call_function[target=operator.add](args = (%a, %b))
%c1 = get_attr[target=c1]
%add_1 = call_function[target=operator.add](args = (%add, %c1))
%c2 = get_attr[target=c2]
%add_2 = call_function[target=operator.add](args = (%add_1, %c2))
return %add_2
)");
  DevicePartitioner partitioner;
  partitioner.partition_graph(*gm, {.devices = devices_of({1000})});
  ASSERT_EQ(partitioner.partitions().size(), 1u);
  DevicePartition& partition = *partitioner.partitions()[0];
  EXPECT_EQ(partition.used_mem_bytes, 112);
  partition.remove_node(*gm->graph().find_node("add_2"));
  EXPECT_EQ(partition.used_mem_bytes, 80);
  EXPECT_FALSE(partition.nodes.contains(gm->graph().find_node("c2")));  // nothing else reads it
  partition.add_node(*gm->graph().find_node("add_2"));
  EXPECT_EQ(partition.used_mem_bytes, 112);
}

TEST(DevicePartitioner, X_021_E_004_by_size) {
  auto gm = small_module(kThree);
  DevicePartitioner partitioner;
  const auto result = partitioner.partition_graph(*gm, {.devices = devices_of({125, 125, 125})});
  EXPECT_EQ(devices_of(result), (Ids{{0}, {1}, {2}}));
  EXPECT_EQ(calls_of(partitioner.partitions()),
            (std::vector<Names>{{"add"}, {"linear"}, {"add_1"}}));
  EXPECT_EQ(result.dag[0].size_bytes, 48);
  expect_same(*gm, *result.module_with_submodules);
  // A partition that is left over goes where there is room.
  auto mapped = small_module(R"(
%a = placeholder[target=a]
%b = get_attr[target=b]
%add = call_function[target=operator.add](args = (%a, %b))
%linear = call_module[target=linear](args = (%add,))
%c = get_attr[target=c]
%add_1 = call_function[target=operator.add](args = (%c, %a))
%add_2 = call_function[target=operator.add](args = (%add_1, %linear))
return %add_2
)");
  const auto other =
      DevicePartitioner().partition_graph(*mapped, {.devices = devices_of({120, 160})});
  Ids ids = devices_of(other);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), std::vector<int>{1}), 1);
  for (const DagNode& node : other.dag)
    EXPECT_EQ(node.logical_device_ids[0], node.submodule_node->target() == "submod_1" ? 1 : 0);
  expect_same(*mapped, *other.module_with_submodules);
}

TEST(DevicePartitioner, X_021_E_005_embeddings_apart) {
  namespace nn = torch::nn;
  torch::manual_seed(2);
  auto graph = std::make_shared<Graph>();
  auto gm = std::make_shared<GraphModule>();
  Node& a = graph->placeholder("a");
  Node& b = graph->placeholder("b");
  Node& offset = graph->placeholder("offset");
  Values inputs{Value(torch::rand({2, 4})), Value(torch::randint(10, {8})),
                Value(torch::tensor({0, 3}))};
  auto call = [&](const std::string& path, Args args) -> Node& {
    return graph->create_node(Opcode::kCallModule, Target::string(path), std::move(args));
  };
  Node* x = &a;
  auto mlp = [&](const std::string& name, int layers, int size) {
    for (int i = 0; i < layers; ++i) {
      gm->set_submodule(name + std::to_string(2 * i), nn::Linear(size, size).ptr());
      gm->set_submodule(name + std::to_string(2 * i + 1), nn::ReLU().ptr());
      x = &call(name + std::to_string(2 * i), {*x});
      x = &call(name + std::to_string(2 * i + 1), {*x});
    }
  };
  mlp("bottom", 4, 4);
  int constants = 0;
  auto constant = [&]() -> Node& {
    const std::string path = "index" + std::to_string(constants++);
    gm->set_buffer(path, torch::randint(10, {8}));
    return graph->create_node(Opcode::kGetAttr, Target::string(path));
  };
  std::vector<Node*> sums;
  for (int i = 0; i < 5; ++i) {
    Node& index = constant();
    sums.push_back(&graph->call_function("operator.add", {index, b}));
  }
  std::vector<Argument> parts{*x};
  for (int i = 0; i < 5; ++i) {
    const std::string path = "embedding" + std::to_string(i);
    const nn::EmbeddingBagOptions options(i % 4 == 0 ? 500000 : 1000000, 4);
    gm->set_submodule(path,
                      nn::EmbeddingBag(nn::EmbeddingBagOptions(options).mode(torch::kSum)).ptr());
    Node& index = i % 2 == 0 ? *sums[static_cast<std::size_t>(i)] : constant();
    parts.emplace_back(call(path, {index, offset}));
  }
  x = &graph->call_function("torch.cat", {Argument::list(std::move(parts)), 1});
  mlp("top", 3, 24);
  graph->output(*x);
  gm->set_graph(graph);
  ShapeProp(*gm).propagate(inputs);

  DevicePartitioner partitioner;
  const auto result = partitioner.partition_graph(
      *gm, {.devices = devices_of({33000000, 33000000, 33000000, 33000000}),
            .mode = PartitionMode::kSparseNn});
  EXPECT_VALUES_EQ(gm->forward(inputs), result.module_with_submodules->forward(inputs));
  // As torch.fx splits the same model.
  EXPECT_EQ(result.module_with_submodules->graph().size(), 24u);
  std::set<Names> embedding_parts;
  for (const Names& names : calls_of(partitioner.partitions()))
    if (names[0].starts_with("embedding")) embedding_parts.insert(names);
  EXPECT_EQ(embedding_parts, (std::set<Names>{{"embedding0", "embedding1", "embedding4"},
                                              {"embedding2", "embedding3"}}));
  // Embeddings and all else never share a partition; each embedding partition has a device of its
  // own, the others run on all of those.
  std::set<int> taken;
  for (const auto& partition : partitioner.partitions()) {
    std::size_t embeddings = 0, calls = 0;
    for (const Node* node : partition->nodes) {
      if (node->is_placeholder() || node->op() == Opcode::kGetAttr) continue;
      ++calls;
      embeddings += node->target().str().starts_with("embedding");
    }
    EXPECT_TRUE(embeddings == 0 || embeddings == calls);
    EXPECT_LE(partition->used_mem_bytes, 33000000);
    if (embeddings == 0) continue;
    ASSERT_EQ(partition->logical_device_ids.size(), 1u);
    EXPECT_TRUE(taken.insert(partition->logical_device_ids[0]).second);
  }
  EXPECT_GE(taken.size(), 2u);  // 56 MB do not fit into 33
  for (const auto& partition : partitioner.partitions())
    if (partition->logical_device_ids.size() != 1) {
      EXPECT_EQ(
          std::set<int>(partition->logical_device_ids.begin(), partition->logical_device_ids.end()),
          taken);
    }
}

// The figures are those of torch.fx on the same graph.
TEST(DevicePartitioner, X_022_E_006_latencies) {
  auto gm = small_module(R"(
%a = placeholder[target=a]
%c1 = get_attr[target=c1]
%add = call_function[target=operator.add](args = (%a, %c1))
%c2 = get_attr[target=c2]
%add_1 = call_function[target=operator.add](args = (%add, %c2))
%linear = call_module[target=linear](args = (%add,))
%add_2 = call_function[target=operator.add](args = (%add_1, %linear))
%add_3 = call_function[target=operator.add](args = (%add_1, %add_2))
return %add_3
)");
  DevicePartitioner partitioner;
  partitioner.partition_graph(*gm, {.devices = devices_of({200, 200})});
  const NodeLatencies latencies = latencies_of(*gm);
  ASSERT_EQ(partitioner.partitions().size(), 2u);
  const PartitionLatency first =
      get_latency_of_one_partition(*partitioner.partitions()[0], latencies);
  EXPECT_EQ(first.mem_latency_sec, 128.0);
  EXPECT_EQ(first.computer_latency_sec, 80.0);
  EXPECT_EQ(first.overall_latency_sec, 160.0);
  const PartitionLatency second =
      get_latency_of_one_partition(*partitioner.partitions()[1], latencies);
  EXPECT_EQ(second.mem_latency_sec, 16.0);
  EXPECT_EQ(second.computer_latency_sec, 32.0);
  EXPECT_EQ(second.overall_latency_sec, 32.0);
  EXPECT_EQ(get_latency_of_partitioned_graph(partitioner.partitions(), latencies, 2), 208.0);
  EXPECT_EQ(get_comm_latency_between(*partitioner.partitions()[0], *partitioner.partitions()[1], 2),
            16.0);
}

TEST(DevicePartitioner, X_021_E_006_by_cost) {
  auto gm = small_module(kFive);
  const NodeLatencies latencies = latencies_of(*gm);
  auto cost_of = [&](PartitionMode mode) {
    DevicePartitioner partitioner;
    const auto result =
        partitioner.partition_graph(*gm, {.devices = devices_of({125, 125, 125, 125}),
                                          .mode = mode,
                                          .transfer_rate_bytes_per_sec = 2,
                                          .node_latencies = latencies});
    expect_same(*gm, *result.module_with_submodules);
    // No device holds more than it has.
    std::map<int, std::int64_t> used;
    for (const auto& partition : partitioner.partitions()) {
      EXPECT_EQ(partition->logical_device_ids.size(), 1u);
      EXPECT_LE(partition->used_mem_bytes, 125);
    }
    return get_latency_of_partitioned_graph(partitioner.partitions(), latencies, 2);
  };
  EXPECT_EQ(cost_of(PartitionMode::kSizeBased), 240.0);
  EXPECT_LE(cost_of(PartitionMode::kCostAware), 208.0);  // what torch.fx finds
  EXPECT_LE(cost_of(PartitionMode::kKlBased), 240.0);
}

TEST(DevicePartitioner, X_021_E_007_given_ahead_and_replicated) {
  auto gm = small_module(R"(
%x = placeholder[target=x]
%b = get_attr[target=b]
%c = get_attr[target=c]
%add = call_function[target=operator.add](args = (%x, %b))
%add_1 = call_function[target=operator.add](args = (%add, %c))
return %add_1
)");
  const Graph& graph = gm->graph();
  DevicePartitionerConfig ahead{.devices = devices_of({100}), .mode = PartitionMode::kAotBased};
  ahead.node_to_partition = {{graph.find_node("add"), 0}, {graph.find_node("add_1"), 1}};
  ahead.partition_to_logical_devices = {{0, {0}}, {1, {0}}};
  const auto result = DevicePartitioner().partition_graph(*gm, ahead);
  EXPECT_EQ(devices_of(result), (Ids{{0}, {0}}));
  EXPECT_EQ(result.dag[0].size_bytes, 48);
  EXPECT_EQ(result.dag[1].size_bytes, 48);
  expect_same(*gm, *result.module_with_submodules);
  ahead.partition_to_logical_devices.erase(1);
  EXPECT_THROW(DevicePartitioner().partition_graph(*gm, ahead), PassError);

  auto linear = small_module(R"(
%a = placeholder[target=a]
%b = get_attr[target=b]
%add = call_function[target=operator.add](args = (%a, %b))
%linear = call_module[target=linear](args = (%add,))
%c = get_attr[target=c]
%add_1 = call_function[target=operator.add](args = (%linear, %c))
return %add_1
)");
  // As in torch.fx: three of two devices used, copies on devices that are large enough.
  DevicePartitioner partitioner;
  const auto replicated = partitioner.partition_graph(
      *linear, {.devices = devices_of({200, 200, 100, 200, 200}), .saturate_host = true});
  std::set<int> ids;
  for (const auto& partition : partitioner.partitions())
    ids.insert(partition->logical_device_ids.begin(), partition->logical_device_ids.end());
  EXPECT_EQ(ids, (std::set<int>{0, 1, 3, 4}));
  expect_same(*linear, *replicated.module_with_submodules);
}

}  // namespace
}  // namespace fx
