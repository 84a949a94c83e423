#include "fx/passes/device_placement.h"

#include <algorithm>
#include <set>

namespace fx {
namespace {

void add_unique(std::vector<DevicePartition*>& list, DevicePartition* item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

// What the partition needs on a device that has others already.
std::int64_t extra_size(const DevicePartition& partition, const DeviceState& state) {
  if (state.partitions.empty()) return partition.used_mem_bytes;
  DevicePartition::Nodes all = partition.nodes;
  for (const DevicePartition* other : state.partitions)
    all.insert(other->nodes.begin(), other->nodes.end());
  std::int64_t size = 0;
  for (const Node* node : partition.nodes) size += get_extra_size_of(*node, all);
  return size;
}

}  // namespace

void reorganize(const DevicePartitions& partitions) {
  int id = 0;
  for (const auto& partition : partitions) {
    partition->partition_id = id++;
    partition->parents.clear();
    partition->children.clear();
  }
  for (const auto& partition : partitions)
    for (const Node* node : partition->nodes)
      for (const Node* user : node->users())
        for (const auto& other : partitions)
          if (other != partition && other->nodes.contains(user) && !other->nodes.contains(node)) {
            add_unique(partition->children, other.get());
            add_unique(other->parents, partition.get());
          }
}

void set_levels(const DevicePartitions& partitions) {
  std::vector<DevicePartition*> level;
  for (const auto& partition : partitions)
    if (partition->parents.empty()) level.push_back(partition.get());
  // A circle would go on for ever.
  for (int depth = 0; !level.empty() && depth <= static_cast<int>(partitions.size()); ++depth) {
    std::vector<DevicePartition*> next;
    for (DevicePartition* partition : level) {
      partition->bfs_level = depth;
      for (DevicePartition* child : partition->children) add_unique(next, child);
    }
    level = std::move(next);
  }
}

void combine(DevicePartition& a, DevicePartition& b, DevicePartitions& partitions) {
  auto both = std::make_shared<DevicePartition>();
  both->nodes = a.nodes;
  both->nodes.insert(b.nodes.begin(), b.nodes.end());
  both->recalculate_mem_size();
  std::erase_if(partitions, [&](const auto& p) { return p.get() == &a || p.get() == &b; });
  partitions.push_back(std::move(both));
  reorganize(partitions);
}

bool is_in_circle(const DevicePartition& partition) {
  std::vector<const DevicePartition*> queue{&partition};
  std::set<const DevicePartition*> seen;
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const DevicePartition* child : queue[i]->children) {
      if (child == &partition) return true;
      if (seen.insert(child).second) queue.push_back(child);
    }
  return false;
}

std::vector<DeviceState> states_of(const DevicePartitions& partitions,
                                   const std::vector<AcceleratorDevice>& devices) {
  std::vector<DeviceState> states;
  for (const AcceleratorDevice& device : devices)
    states.push_back({&device, {}, device.available_mem_bytes});
  for (const auto& partition : partitions)
    for (const int id : partition->logical_device_ids)
      for (DeviceState& state : states)
        if (state.device->logical_id == id) {
          state.partitions.push_back(partition.get());
          state.left -= partition->used_mem_bytes;
        }
  return states;
}

bool place(const DevicePartitions& partitions, const std::vector<AcceleratorDevice>& devices) {
  std::vector<DeviceState> states = states_of(partitions, devices);
  for (const auto& partition : partitions) {
    if (!partition->logical_device_ids.empty()) continue;
    std::ranges::stable_sort(states, {}, &DeviceState::left);
    bool is_placed = false;
    for (DeviceState& state : states) {
      const std::int64_t size = extra_size(*partition, state);
      if (size >= state.left) continue;
      state.partitions.push_back(partition.get());
      state.left -= size;
      partition->logical_device_ids.push_back(state.device->logical_id);
      is_placed = true;
      break;
    }
    if (!is_placed) return false;
  }
  return true;
}

void forget_devices(const DevicePartitions& partitions) {
  for (const auto& partition : partitions) partition->logical_device_ids.clear();
}

}  // namespace fx
