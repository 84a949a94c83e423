#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "fx/passes/operator_support.h"

namespace fx {

/// Nodes that a backend can run as one.
struct Partition {
  std::uint32_t id = 0;
  std::vector<Node*> nodes;  ///< in graph order
};

struct PartitionerOptions {
  /// Keep partitions of one computing node.
  bool allows_single_node_partition = false;
  /// Targets that compute nothing by themselves, besides "operator.getitem" and "aten::view": a
  /// partition of those and one other node counts as a single node.
  std::set<std::string> non_compute_ops = {};
  /// Targets that may be a partition by themselves in any case.
  std::set<std::string> allowed_single_node_partition_ops = {};
  /// Merge only along values, not what stands side by side.
  bool skip_horizontal_fusion = false;
};

/// Groups the nodes that a backend supports into partitions, as few and large as a greedy search
/// finds, and fuses them into submodules (torch.fx.passes.infra.partitioner). The partitions are
/// those that torch.fx proposes; besides it keeps the order of effects: no partition closes a
/// circle with a node that writes to memory which others read.
class CapabilityBasedPartitioner {
 public:
  /// `module` must outlive this and not change between the calls.
  CapabilityBasedPartitioner(GraphModule& module, OperatorSupport support,
                             PartitionerOptions options = {});

  /// By id. A getitem node follows the node whose result it takes. Near-linear: see
  /// PartitionMerger.
  std::vector<Partition> propose_partitions() const;
  /// Takes nodes of non_compute_ops away that stand at the border of their partition.
  void remove_bookend_non_compute_ops(std::vector<Partition>& partitions) const;
  /// Replaces each partition by the call of a submodule "prefixN". Placeholders and outputs, which
  /// a support function may have said yes to, stay where they are. Returns the calls.
  std::vector<Node*> fuse_partitions(const std::vector<Partition>& partitions,
                                     const std::string& prefix = "fused_");
  /// propose_partitions and fuse_partitions.
  std::vector<Node*> partition_and_fuse(const std::string& prefix = "fused_");

 private:
  bool computes(const Node& node) const;

  GraphModule& module_;
  OperatorSupport support_;
  PartitionerOptions options_;
};

}  // namespace fx
