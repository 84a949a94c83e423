#include "fx/passes/partitioner.h"

#include <algorithm>
#include <utility>

#include "fx/analysis/effect_order.h"
#include "fx/passes/fuse_partitions.h"
#include "fx/passes/partition_merger.h"

namespace fx {
namespace {

constexpr std::int32_t kNone = -1;

bool is_call(const Node& node) {
  return node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod ||
         node.op() == Opcode::kCallModule;
}

// "aten::view" stands for all overloads.
bool names(const std::set<std::string>& targets, const Node& node) {
  if (!is_call(node)) return false;
  const std::string& name = node.target().str();
  return targets.contains(name) || targets.contains(name.substr(0, name.find('.')));
}

}  // namespace

CapabilityBasedPartitioner::CapabilityBasedPartitioner(GraphModule& module, OperatorSupport support,
                                                       PartitionerOptions options)
    : module_(module), support_(std::move(support)), options_(std::move(options)) {}

bool CapabilityBasedPartitioner::computes(const Node& node) const {
  return is_call(node) && !node.calls("operator.getitem") && !node.calls("aten::view") &&
         !names(options_.non_compute_ops, node);
}

std::vector<Partition> CapabilityBasedPartitioner::propose_partitions() const {
  const Graph& graph = module_.graph();
  const EffectOrder effects(graph);
  PartitionMerger merger;
  std::vector<Node*> nodes;  // by item: from the last node to the first
  nodes.reserve(graph.size());
  std::vector<PartitionMerger::Item> item_of(graph.id_bound());
  std::vector<PartitionMerger::Item> successors;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    successors.clear();
    for (const Node* user : node->users()) successors.push_back(item_of[user->id()]);
    for (const Node* later : effects.after(*node)) successors.push_back(item_of[later->id()]);
    item_of[node->id()] = static_cast<PartitionMerger::Item>(nodes.size());
    nodes.push_back(&*node);
    merger.add(successors, support_(module_, *node), !options_.skip_horizontal_fusion);
  }

  std::vector<Partition> partitions;
  std::vector<std::int32_t> assigned(graph.id_bound(), kNone);
  for (const auto& [id, items] : merger.partitions()) {
    for (const PartitionMerger::Item item : items)
      assigned[nodes[item]->id()] = static_cast<std::int32_t>(partitions.size());
    partitions.push_back({id, {}});
  }
  // Getitem nodes go where their tuple is made, chains of them link by link.
  for (bool moved = true; moved;) {
    moved = false;
    for (const Node& node : graph.nodes()) {
      const UserRange users = node.users();
      if (!std::all_of(users.begin(), users.end(),
                       [](const Node* n) { return n->calls("operator.getitem"); }))
        continue;
      for (const Node* user : users) {
        moved |= assigned[user->id()] != assigned[node.id()];
        assigned[user->id()] = assigned[node.id()];
      }
    }
  }
  for (Node& node : graph.nodes())
    if (const std::int32_t i = assigned[node.id()]; i != kNone)
      partitions[static_cast<std::size_t>(i)].nodes.push_back(&node);

  std::erase_if(partitions, [&](const Partition& partition) {
    if (partition.nodes.empty()) return true;
    if (options_.allows_single_node_partition) return false;
    std::ptrdiff_t computing = 0;
    for (const Node* node : partition.nodes)
      computing += computes(*node) + names(options_.allowed_single_node_partition_ops, *node);
    return computing <= 1;
  });
  return partitions;
}

void CapabilityBasedPartitioner::remove_bookend_non_compute_ops(
    std::vector<Partition>& partitions) const {
  const std::uint32_t bound = module_.graph().id_bound();
  std::vector<std::int32_t> assigned(bound, kNone);
  for (std::size_t i = 0; i < partitions.size(); ++i)
    for (const Node* node : partitions[i].nodes)
      assigned[node->id()] = static_cast<std::int32_t>(i);
  // At the front (the back) are those that nothing computing of the partition stands before
  // (after).
  std::vector<bool> at_front(bound), at_back(bound);
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    auto& nodes = partitions[i].nodes;
    auto is_clear = [&](const Node& node, const std::vector<bool>& border) {
      return assigned[node.id()] != static_cast<std::int32_t>(i) || node.is_placeholder() ||
             border[node.id()];
    };
    for (const Node* node : nodes) {
      const auto inputs = node->all_input_nodes();
      at_front[node->id()] = names(options_.non_compute_ops, *node) &&
                             std::all_of(inputs.begin(), inputs.end(), [&](const Node* input) {
                               return is_clear(*input, at_front);
                             });
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const UserRange users = (*node)->users();
      at_back[(*node)->id()] = names(options_.non_compute_ops, **node) &&
                               std::all_of(users.begin(), users.end(), [&](const Node* user) {
                                 return is_clear(*user, at_back);
                               });
    }
    std::erase_if(nodes, [&](const Node* n) { return at_front[n->id()] || at_back[n->id()]; });
  }
}

std::vector<Node*> CapabilityBasedPartitioner::fuse_partitions(
    const std::vector<Partition>& partitions, const std::string& prefix) {
  std::vector<std::vector<Node*>> groups;
  for (const Partition& partition : partitions) {
    groups.emplace_back();
    for (Node* node : partition.nodes)
      if (!node->is_placeholder() && !node->is_output()) groups.back().push_back(node);
  }
  return fuse_by_partitions(module_, groups, {.prefix = prefix});
}

std::vector<Node*> CapabilityBasedPartitioner::partition_and_fuse(const std::string& prefix) {
  return fuse_partitions(propose_partitions(), prefix);
}

}  // namespace fx
