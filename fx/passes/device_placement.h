#pragma once

#include <cstdint>
#include <vector>

#include "fx/passes/device_partitioner.h"

/// How partitions depend on each other, and what fits where: what the ways of DevicePartitioner
/// share.
namespace fx {

/// Numbers the partitions by their place in the list and finds out who reads whose results.
/// O(nodes * users * partitions).
void reorganize(const DevicePartitions& partitions);

/// Sets bfs_level: the number of steps from the partitions that wait for none, by the longest way.
void set_levels(const DevicePartitions& partitions);

/// Puts the union of two partitions at the end of the list in place of them, and reorganizes.
void combine(DevicePartition& a, DevicePartition& b, DevicePartitions& partitions);

/// Whether a path leads from the partition to itself.
bool is_in_circle(const DevicePartition& partition);

/// A device and what is on it.
struct DeviceState {
  const AcceleratorDevice* device;
  std::vector<DevicePartition*> partitions;
  std::int64_t left;  ///< bytes
};
std::vector<DeviceState> states_of(const DevicePartitions& partitions,
                                   const std::vector<AcceleratorDevice>& devices);

/// Gives each partition without a device the fullest one on which it finds room. False if one finds
/// none.
bool place(const DevicePartitions& partitions, const std::vector<AcceleratorDevice>& devices);

/// Takes the devices away from all partitions.
void forget_devices(const DevicePartitions& partitions);

}  // namespace fx
