#pragma once

#include "fx/passes/split_module.h"

namespace fx {

/// What split_module and split_by_tags do differently.
struct PartOptions {
  /// The path of the submodule for the partition of that number; empty: as SplitOptions say.
  std::function<std::string(int)> name = {};
  /// Partitions read the attributes that they use, instead of getting them as arguments.
  bool copy_attributes = false;
  /// Call the partitions in the order of their numbers.
  bool order_by_number = false;
};

/// split_module with more choices.
/// @throws PassError kBadPartition as split_module; with order_by_number also when that order is
/// not
///   one in which the partitions can run.
std::shared_ptr<GraphModule> split_into_parts(const GraphModule& module,
                                              const SplitCallback& split_callback,
                                              const SplitOptions& options, const PartOptions& parts,
                                              std::map<std::string, std::string>* qualname_map);

}  // namespace fx
