#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

/// Spreading a model over devices with little memory (torch.fx.experimental.accelerator_partitioner
/// and partitioner_utils). Sizes are those of graph_manipulation's get_size_of_all_nodes.
namespace fx {

/// A device that partitions are placed on.
struct AcceleratorDevice {
  std::string name;
  std::int64_t available_mem_bytes = 0;
  int logical_id = 0;
};

struct NodeLatency {
  double mem_latency_sec = 0;
  double computer_latency_sec = 0;
};
using NodeLatencies = std::map<const Node*, NodeLatency>;

/// Of the slowest path through a partition.
struct PartitionLatency {
  double mem_latency_sec = 0;
  double computer_latency_sec = 0;
  double overall_latency_sec = 0;  ///< sum of the larger of the two, node by node
};

/// Nodes that go to the same devices. Placeholders and attributes belong to each partition that
/// reads them.
struct DevicePartition {
  /// Node by its place in the graph, so that walks are the same in every process.
  struct ByPlace {
    bool operator()(const Node* a, const Node* b) const { return a->comes_before(*b); }
  };
  using Nodes = std::set<const Node*, ByPlace>;

  int partition_id = 0;
  Nodes nodes = {};
  std::vector<DevicePartition*> parents = {};   ///< whose results it reads
  std::vector<DevicePartition*> children = {};  ///< that read its results
  int bfs_level = -1;
  std::int64_t used_mem_bytes = 0;
  std::vector<int> logical_device_ids = {};

  void recalculate_mem_size();
  /// With the placeholders and attributes that it reads.
  void add_node(const Node& node);
  /// With those that nothing else here reads. Does nothing if it is not here.
  void remove_node(const Node& node);
};
using DevicePartitions = std::vector<std::shared_ptr<DevicePartition>>;

/// Bytes that `node` needs beside `nodes`: its own, and its inputs that are not among them.
/// @throws PassError kBadPassOption "node has no size_bytes attr"
std::int64_t get_extra_size_of(const Node& node, const DevicePartition::Nodes& nodes);

PartitionLatency get_latency_of_one_partition(const DevicePartition& partition,
                                              const NodeLatencies& latencies);
/// Seconds to hand over what `child` reads of `parent`; 0 on the same devices.
double get_comm_latency_between(const DevicePartition& parent, const DevicePartition& child,
                                double transfer_rate_bytes_per_sec);
/// Of the slowest path through all partitions, with handing over.
double get_latency_of_partitioned_graph(const DevicePartitions& partitions,
                                        const NodeLatencies& latencies,
                                        double transfer_rate_bytes_per_sec);

enum class PartitionMode : std::uint8_t {
  kSizeBased,  ///< fill one device after the other
  kSparseNn,   ///< embeddings apart from all else, on devices of equal size
  kCostAware,  ///< combine nodes as long as the latency does not grow
  kKlBased,    ///< by size, then exchange nodes as long as the latency falls (Kernighan, Lin)
  kAotBased,   ///< as node_to_partition and partition_to_logical_devices say
};

struct DevicePartitionerConfig {
  std::vector<AcceleratorDevice> devices = {};
  PartitionMode mode = PartitionMode::kSizeBased;
  double transfer_rate_bytes_per_sec = 0;
  NodeLatencies node_latencies = {};
  std::map<const Node*, int> node_to_partition = {};
  std::map<int, std::vector<int>> partition_to_logical_devices = {};
  /// Replicate the partitions on devices that are left over.
  bool saturate_host = false;
};

/// A call of a submodule in the result, and where it runs.
struct DagNode {
  const Node* submodule_node = nullptr;
  std::vector<Node*> input_nodes;
  std::vector<Node*> output_nodes;
  std::vector<int> logical_device_ids;
  std::int64_t size_bytes = 0;
};

struct DevicePartitionResult {
  std::vector<DagNode> dag;
  std::shared_ptr<GraphModule> module_with_submodules;
};

/// Partitions a module; what fits on one device stays whole. The result computes the same; who runs
/// its submodules on the devices is up to the caller.
class DevicePartitioner {
 public:
  /// `module` needs the shapes of shape_prop and must outlive this.
  /// @throws PassError kBadPartition "No devices", "No Partition since no operations in the
  /// module",
  ///   "Devices do not have enough memory for the module", "... is too large to fit any device",
  ///   "All devices must have same memory size!", "Cannot Get a Valid Partition to Logical Device
  ///   Mapping", and for partitions that wait for each other.
  DevicePartitionResult partition_graph(GraphModule& module, const DevicePartitionerConfig& config);

  const DevicePartitions& partitions() const noexcept { return partitions_; }

 private:
  DevicePartition& create_partition();
  void find_single_partition(std::int64_t size, int logical_id);
  void size_based();
  void sparse_nn();
  void combine_by_size(std::vector<DevicePartition*>& group, std::int64_t memory);
  void cost_aware();
  bool combine_cheapest();
  void kl_based();
  void aot_based();
  void saturate_host();
  double cost() const;
  double cost_with_new_devices();
  std::map<const Node*, int> node_to_partition() const;

  GraphModule* module_ = nullptr;
  const DevicePartitionerConfig* config_ = nullptr;
  DevicePartitions partitions_;
};

}  // namespace fx
