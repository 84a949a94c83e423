#include "fx/passes/device_partitioner.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "fx/base/error.h"
#include "fx/passes/device_placement.h"
#include "fx/passes/graph_manipulation.h"
#include "fx/passes/split_module.h"
#include "fx/passes/tools_common.h"

namespace fx {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

[[noreturn]] void fail(const std::string& text) { throw PassError(ErrorCode::kBadPartition, text); }

bool may_combine(const DevicePartition& a, const DevicePartition& b) {
  auto contains = [&](const std::vector<DevicePartition*>& list) {
    return std::find(list.begin(), list.end(), &a) != list.end();
  };
  return std::abs(a.bfs_level - b.bfs_level) <= 1 || contains(b.parents) || contains(b.children);
}

bool is_embedding(const GraphModule& module, const Node& node) {
  return node.op() == Opcode::kCallModule &&
         get_node_target(module, node).find("Embedding") != std::string::npos;
}

}  // namespace

DevicePartition& DevicePartitioner::create_partition() {
  partitions_.push_back(std::make_shared<DevicePartition>());
  partitions_.back()->partition_id = static_cast<int>(partitions_.size()) - 1;
  return *partitions_.back();
}

std::map<const Node*, int> DevicePartitioner::node_to_partition() const {
  std::map<const Node*, int> out;
  for (const auto& partition : partitions_)
    for (const Node* node : partition->nodes) out[node] = partition->partition_id;
  return out;
}

DevicePartitionResult DevicePartitioner::partition_graph(GraphModule& module,
                                                         const DevicePartitionerConfig& config) {
  module_ = &module;
  config_ = &config;
  partitions_.clear();
  const auto& devices = config.devices;
  if (devices.empty()) fail("No devices");
  const auto sizes = get_size_of_all_nodes(module);
  const Graph& graph = module.graph();
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_callable))
    fail("No Partition since no operations in the module");
  std::int64_t total = 0;
  for (const auto& [name, size] : sizes) total += size.total_size;
  const AcceleratorDevice& largest =
      *std::ranges::max_element(devices, {}, &AcceleratorDevice::available_mem_bytes);
  const std::int64_t memory = std::accumulate(
      devices.begin(), devices.end(), std::int64_t{0},
      [](std::int64_t sum, const auto& device) { return sum + device.available_mem_bytes; });
  if (config.mode == PartitionMode::kAotBased)
    aot_based();
  else if (total <= largest.available_mem_bytes)
    find_single_partition(total, largest.logical_id);
  else if (total > memory)
    fail("Devices do not have enough memory for the module");
  else if (config.mode == PartitionMode::kSparseNn)
    sparse_nn();
  else if (config.mode == PartitionMode::kCostAware)
    cost_aware();
  else if (config.mode == PartitionMode::kKlBased)
    kl_based();
  else
    size_based();
  if (config.saturate_host) saturate_host();

  const auto number =
      config.mode == PartitionMode::kAotBased ? config.node_to_partition : node_to_partition();
  DevicePartitionResult result;
  result.module_with_submodules =
      split_module(module, [&](const Node& node) { return number.at(&node); });
  for (const Node* call : result.module_with_submodules->graph().find_nodes(Opcode::kCallModule)) {
    const std::string& path = call->target().str();
    const int id = std::stoi(path.substr(path.rfind('_') + 1));
    const auto partition =
        std::ranges::find_if(partitions_, [&](const auto& p) { return p->partition_id == id; });
    DagNode& node = result.dag.emplace_back();
    node.submodule_node = call;
    node.input_nodes = call->all_input_nodes();
    node.output_nodes = call->users().to_vector();
    if (node.output_nodes.size() < 2)
      node.output_nodes = {result.module_with_submodules->graph().find_node(call->name())};
    node.logical_device_ids = (*partition)->logical_device_ids;
    node.size_bytes = (*partition)->used_mem_bytes;
  }
  return result;
}

void DevicePartitioner::find_single_partition(std::int64_t size, int logical_id) {
  DevicePartition& partition = create_partition();
  for (const Node& node : module_->graph().nodes())
    if (!node.is_output()) partition.nodes.insert(&node);
  partition.used_mem_bytes = size;
  partition.logical_device_ids = {logical_id};
}

// One device after the other is filled; what is left gets a partition a node and any device with
// room.
void DevicePartitioner::size_based() {
  const auto& devices = config_->devices;
  std::vector<bool> is_taken(devices.size());
  auto take_device = [&](const Node& node) -> const AcceleratorDevice& {
    const std::int64_t size = get_extra_size_of(node, {});
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (is_taken[i] || devices[i].available_mem_bytes < size) continue;
      is_taken[i] = true;
      return devices[i];
    }
    fail(std::string(node.name()) + " is too large to fit any device");
  };
  DevicePartition* partition = &create_partition();
  std::int64_t left = 0;
  auto open_on = [&](const AcceleratorDevice& device) {
    left = device.available_mem_bytes;
    partition->logical_device_ids.push_back(device.logical_id);
  };
  for (const Node& node : module_->graph().nodes()) {
    if (!is_callable(node)) continue;
    if (partitions_.size() > devices.size()) {
      create_partition().add_node(node);
      continue;
    }
    std::int64_t size = get_extra_size_of(node, partition->nodes);
    if (partition->used_mem_bytes == 0) {
      open_on(take_device(node));
    } else if (left < size) {
      if (partitions_.size() == devices.size()) {
        create_partition().add_node(node);
        continue;
      }
      const AcceleratorDevice& device = take_device(node);
      partition = &create_partition();
      size = get_extra_size_of(node, partition->nodes);
      open_on(device);
    }
    partition->add_node(node);
    left -= size;
  }
  reorganize(partitions_);
  if (!place(partitions_, devices)) fail("Cannot Get a Valid Partition to Logical Device Mapping");
}

void DevicePartitioner::sparse_nn() {
  const auto& devices = config_->devices;
  const std::int64_t memory = devices[0].available_mem_bytes;
  for (const AcceleratorDevice& device : devices)
    if (device.available_mem_bytes != memory) fail("All devices must have same memory size!");
  std::vector<DevicePartition*> groups[2];  // the rest, and embeddings
  bool in_embeddings = false;
  DevicePartition* partition = &create_partition();
  auto close = [&] {
    groups[in_embeddings].push_back(partition);
    partition = &create_partition();
  };
  for (const Node& node : module_->graph().nodes()) {
    if (!is_callable(node)) continue;
    if (is_embedding(*module_, node) != in_embeddings) {
      if (partition->used_mem_bytes != 0) close();
      in_embeddings = !in_embeddings;
    }
    if (get_extra_size_of(node, partition->nodes) + partition->used_mem_bytes > memory) {
      if (partition->used_mem_bytes != 0) close();
      if (get_extra_size_of(node, partition->nodes) > memory)
        fail(std::string(node.name()) + " is too large to fit any device");
    }
    partition->add_node(node);
  }
  groups[in_embeddings].push_back(partition);
  reorganize(partitions_);
  combine_by_size(groups[0], memory);
  combine_by_size(groups[1], memory);
  std::int64_t rest = 0;
  for (const DevicePartition* p : groups[0]) rest += p->used_mem_bytes;
  if (groups[1].size() > devices.size())
    fail("Need " + std::to_string(groups[1].size()) + " devices, but only " +
         std::to_string(devices.size()) + " provided");
  std::vector<int> occupied;
  for (DevicePartition* p : groups[1]) {
    if (rest + p->used_mem_bytes > memory)
      fail("partition_" + std::to_string(p->partition_id) +
           "(embedding partition) and non embedding partitions can not fit into one device");
    occupied.push_back(devices[occupied.size()].logical_id);
    p->logical_device_ids = {occupied.back()};
  }
  for (DevicePartition* p : groups[0]) p->logical_device_ids = occupied;
}

// The smallest with the largest that it fits with, near to each other, until nothing fits.
void DevicePartitioner::combine_by_size(std::vector<DevicePartition*>& group, std::int64_t memory) {
  while (group.size() > 1) {
    std::ranges::stable_sort(group, {}, &DevicePartition::used_mem_bytes);
    set_levels(partitions_);
    DevicePartition& smallest = *group[0];
    const auto other = std::find_if(group.rbegin(), group.rend() - 1, [&](DevicePartition* p) {
      if (std::abs(smallest.bfs_level - p->bfs_level) > 1) return false;
      DevicePartition both{.nodes = p->nodes};
      both.nodes.insert(smallest.nodes.begin(), smallest.nodes.end());
      both.recalculate_mem_size();
      return both.used_mem_bytes <= memory;
    });
    if (other == group.rend() - 1) return;
    DevicePartition& partner = **other;
    std::erase_if(group, [&](const auto* p) { return p == &smallest || p == &partner; });
    combine(partner, smallest, partitions_);
    group.push_back(partitions_.back().get());
  }
}

double DevicePartitioner::cost() const {
  return get_latency_of_partitioned_graph(partitions_, config_->node_latencies,
                                          config_->transfer_rate_bytes_per_sec);
}

double DevicePartitioner::cost_with_new_devices() {
  forget_devices(partitions_);
  return place(partitions_, config_->devices) ? cost() : kImpossible;
}

// The pair whose union makes the whole fastest is combined; whether there was one.
bool DevicePartitioner::combine_cheapest() {
  double best = cost();
  std::pair<std::size_t, std::size_t> pair;
  const DevicePartitions original = partitions_;
  for (std::size_t i = 0; i + 1 < original.size(); ++i)
    for (std::size_t j = i + 1; j < original.size(); ++j) {
      if (!may_combine(*original[i], *original[j])) continue;
      combine(*original[i], *original[j], partitions_);
      const double found =
          is_in_circle(*partitions_.back()) ? kImpossible : cost_with_new_devices();
      if (found <= best) {
        best = found;
        pair = {i, j};
      }
      partitions_ = original;
      reorganize(partitions_);
    }
  if (pair.second > 0) combine(*original[pair.first], *original[pair.second], partitions_);
  set_levels(partitions_);
  forget_devices(partitions_);
  place(partitions_, config_->devices);
  return pair.second > 0;
}

void DevicePartitioner::cost_aware() {
  for (const Node& node : module_->graph().nodes())
    if (is_callable(node)) create_partition().add_node(node);
  reorganize(partitions_);
  set_levels(partitions_);
  while (partitions_.size() > 1 && combine_cheapest()) {
  }
  reorganize(partitions_);
  if (cost_with_new_devices() == kImpossible)
    fail("Cannot Get a Valid Partition to Logical Device Mapping");
}

// Each node in turn goes to another partition, alone or for one from there, where that is best.
void DevicePartitioner::kl_based() {
  size_based();
  double best = cost();
  auto exchange = [&](const Node* a, const Node* b, DevicePartition& from, DevicePartition& to) {
    if (a) {
      from.remove_node(*a);
      to.add_node(*a);
    }
    if (b) {
      to.remove_node(*b);
      from.add_node(*b);
    }
    reorganize(partitions_);
  };
  auto try_exchange = [&](const Node* a, const Node* b, DevicePartition& from,
                          DevicePartition& to) {
    exchange(a, b, from, to);
    const bool is_valid = !from.nodes.empty() && !is_in_circle(from) && !is_in_circle(to);
    const double found = is_valid ? cost_with_new_devices() : kImpossible;
    exchange(b, a, from, to);
    return found;
  };
  for (const Node& node : module_->graph().nodes()) {
    if (!is_callable(node)) continue;
    const auto from =
        std::ranges::find_if(partitions_, [&](const auto& p) { return p->nodes.contains(&node); });
    const Node* partner = nullptr;
    DevicePartition* target = nullptr;
    for (const auto& to : partitions_) {
      if (to == *from) continue;
      std::vector<const Node*> others(to->nodes.begin(), to->nodes.end());
      others.push_back(nullptr);
      for (const Node* other : others) {
        if (other && !is_callable(*other)) continue;
        const double found = try_exchange(&node, other, **from, *to);
        if (found >= best) continue;
        best = found;
        partner = other;
        target = to.get();
      }
    }
    if (target) exchange(&node, partner, **from, *target);
  }
  forget_devices(partitions_);
  if (!place(partitions_, config_->devices))
    fail("Cannot Get a Valid Partition to Logical Device Mapping");
}

void DevicePartitioner::aot_based() {
  for (const Node& node : module_->graph().nodes()) {
    if (!is_callable(node)) continue;
    const auto number = config_->node_to_partition.find(&node);
    if (number == config_->node_to_partition.end())
      fail("node_to_partition has no partition for " + std::string(node.name()));
    auto found = std::ranges::find_if(
        partitions_, [&](const auto& p) { return p->partition_id == number->second; });
    if (found == partitions_.end()) {
      DevicePartition& made = create_partition();
      made.partition_id = number->second;
      const auto ids = config_->partition_to_logical_devices.find(number->second);
      if (ids == config_->partition_to_logical_devices.end())
        fail("partition_to_logical_devices has no devices for partition " +
             std::to_string(number->second));
      made.logical_device_ids = ids->second;
      found = partitions_.end() - 1;
    }
    (*found)->add_node(node);
  }
}

// As long as each device in use finds another one for a copy of what is on it.
void DevicePartitioner::saturate_host() {
  std::vector<DeviceState> used, idle;
  for (DeviceState& state : states_of(partitions_, config_->devices))
    (state.partitions.empty() ? idle : used).push_back(state);
  while (!used.empty() && idle.size() >= used.size()) {
    std::vector<DeviceState> left = idle;
    std::vector<std::pair<const DeviceState*, int>> copies;  // of, on the device of that id
    for (const DeviceState& state : used) {
      const std::int64_t needed = state.device->available_mem_bytes - state.left;
      auto best = left.end();
      for (auto it = left.begin(); it != left.end(); ++it)
        if (it->left >= needed && (best == left.end() || it->left < best->left)) best = it;
      if (best == left.end()) return;
      copies.emplace_back(&state, best->device->logical_id);
      left.erase(best);
    }
    for (const auto& [state, id] : copies)
      for (DevicePartition* partition : state->partitions)
        partition->logical_device_ids.push_back(id);
    idle = std::move(left);
  }
}

}  // namespace fx
