// Sizes and latencies of partitions.
#include <algorithm>
#include <unordered_map>

#include "fx/base/error.h"
#include "fx/passes/device_partitioner.h"
#include "fx/passes/graph_manipulation.h"

namespace fx {
namespace {

bool is_input(const Node& node) { return node.is_placeholder() || node.op() == Opcode::kGetAttr; }

const SizeBytes& size_of(const Node& node) {
  if (const auto* size = node.meta().get<SizeBytes>("size_bytes")) return *size;
  throw PassError(ErrorCode::kBadPassOption,
                  "node has no size_bytes attr: " + std::string(node.name()));
}

}  // namespace

std::int64_t get_extra_size_of(const Node& node, const DevicePartition::Nodes& nodes) {
  std::int64_t size = size_of(node).total_size;
  for (const Node* input : node.all_input_nodes())
    if (!nodes.contains(input)) size += size_of(*input).output_size;
  return size;
}

void DevicePartition::recalculate_mem_size() {
  used_mem_bytes = 0;
  for (const Node* node : nodes) used_mem_bytes += get_extra_size_of(*node, nodes);
}

void DevicePartition::add_node(const Node& node) {
  for (const Node* input : node.all_input_nodes())
    if (is_input(*input)) nodes.insert(input);
  nodes.insert(&node);
  recalculate_mem_size();
}

void DevicePartition::remove_node(const Node& node) {
  if (nodes.erase(&node) == 0) return;
  for (const Node* input : node.all_input_nodes()) {
    const auto users = input->users();
    if (is_input(*input) && std::none_of(users.begin(), users.end(),
                                         [this](const Node* user) { return nodes.contains(user); }))
      nodes.erase(input);
  }
  recalculate_mem_size();
}

PartitionLatency get_latency_of_one_partition(const DevicePartition& partition,
                                              const NodeLatencies& latencies) {
  // The slowest way to each node, its own time included; nodes come in graph order.
  std::unordered_map<const Node*, PartitionLatency> slowest;
  PartitionLatency result;
  for (const Node* node : partition.nodes) {
    if (is_input(*node)) continue;
    PartitionLatency latency;
    for (const Node* input : node->all_input_nodes()) {
      const auto found = slowest.find(input);
      if (found != slowest.end() && found->second.overall_latency_sec > latency.overall_latency_sec)
        latency = found->second;
    }
    const NodeLatency own = latencies.at(node);
    latency.mem_latency_sec += own.mem_latency_sec;
    latency.computer_latency_sec += own.computer_latency_sec;
    latency.overall_latency_sec += std::max(own.mem_latency_sec, own.computer_latency_sec);
    slowest.emplace(node, latency);
    if (latency.overall_latency_sec > result.overall_latency_sec) result = latency;
  }
  return result;
}

double get_comm_latency_between(const DevicePartition& parent, const DevicePartition& child,
                                double transfer_rate_bytes_per_sec) {
  if (!parent.logical_device_ids.empty() && parent.logical_device_ids == child.logical_device_ids)
    return 0;
  DevicePartition::Nodes handed_over;
  for (const Node* node : child.nodes)
    for (const Node* input : node->all_input_nodes())
      if (parent.nodes.contains(input)) handed_over.insert(input);
  std::int64_t bytes = 0;
  for (const Node* node : handed_over) bytes += size_of(*node).output_size;
  return static_cast<double>(bytes) / transfer_rate_bytes_per_sec;
}

double get_latency_of_partitioned_graph(const DevicePartitions& partitions,
                                        const NodeLatencies& latencies,
                                        double transfer_rate_bytes_per_sec) {
  std::unordered_map<const DevicePartition*, double> known;
  // From a partition to the end. Partitions do not wait for each other in a circle.
  auto latency_from = [&](const DevicePartition& partition, auto&& self) -> double {
    if (const auto found = known.find(&partition); found != known.end()) return found->second;
    double behind = 0;
    for (const DevicePartition* child : partition.children)
      behind = std::max(behind,
                        get_comm_latency_between(partition, *child, transfer_rate_bytes_per_sec) +
                            self(*child, self));
    const double own = get_latency_of_one_partition(partition, latencies).overall_latency_sec;
    return known[&partition] = own + behind;
  };
  double slowest = 0;
  for (const auto& partition : partitions)
    if (partition->parents.empty())
      slowest = std::max(slowest, latency_from(*partition, latency_from));
  return slowest;
}

}  // namespace fx
