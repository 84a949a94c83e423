#include "fx/passes/fuse_partitions.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "fx/analysis/effect_order.h"
#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {
namespace {

constexpr std::int32_t kAlone = -1;

std::string names_of(std::span<Node* const> nodes) {
  std::string out;
  for (std::size_t i = 0; i < nodes.size() && i < 8; ++i)
    out += (i ? ", " : "") + std::string(nodes[i]->name());
  return out + (nodes.size() > 8 ? ", ..." : "");
}

[[noreturn]] void fail(const std::string& what) { throw PassError(ErrorCode::kBadPartition, what); }

void check_member(const Graph& graph, const Node& node) {
  const std::string name = str_repr(node.name());
  if (&node.graph() != &graph) fail("node " + name + " belongs to another graph");
  if (node.is_erased()) fail("node " + name + " has been erased");
  if (node.is_placeholder() || node.is_output())
    fail(name + " is " + (node.is_output() ? "the output" : "a placeholder") +
         " of the graph, which stays where it is");
}

// A graph whose partitions are taken for one node each.
class Contraction {
 public:
  Contraction(const Graph& graph, const std::vector<std::vector<Node*>>& partitions)
      : graph_(graph), effects_(graph), partition_(graph.id_bound(), kAlone) {
    for (std::size_t i = 0; i < partitions.size(); ++i)
      for (Node* node : partitions[i]) {
        check_member(graph, *node);
        if (partition_[node->id()] != kAlone)
          fail("node " + str_repr(node->name()) + " is in the partitions " +
               std::to_string(partition_[node->id()]) + " and " + std::to_string(i));
        partition_[node->id()] = static_cast<std::int32_t>(i);
      }
    item_.resize(graph.id_bound());
    items_.resize(partitions.size());
    for (Node& node : graph.nodes()) {
      std::size_t item = items_.size();
      if (const std::int32_t partition = partition_[node.id()]; partition != kAlone)
        item = static_cast<std::size_t>(partition);
      else
        items_.emplace_back();
      items_[item].nodes.push_back(&node);
      items_[item].position = position_++;
      item_[node.id()] = item;
    }
  }

  std::int32_t partition_of(const Node& node) const { return partition_[node.id()]; }
  /// The nodes of partition `i` in graph order.
  const std::vector<Node*>& nodes(std::size_t i) const { return items_[i].nodes; }

  /// The items in an order in which all that an item needs comes before it, and which otherwise is
  /// that of the positions of their last nodes. Shorter than num_items() if there is a circle.
  std::vector<std::size_t> sorted() const {
    std::vector<std::size_t> waits_for(items_.size());
    for (std::size_t item = 0; item < items_.size(); ++item)
      for_each_successor(item, [&](std::size_t next) { ++waits_for[next]; });
    using Entry = std::pair<std::size_t, std::size_t>;  // position, item
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (std::size_t item = 0; item < items_.size(); ++item)
      if (waits_for[item] == 0) ready.emplace(items_[item].position, item);
    std::vector<std::size_t> order;
    order.reserve(items_.size());
    while (!ready.empty()) {
      const std::size_t item = ready.top().second;
      ready.pop();
      order.push_back(item);
      for_each_successor(item, [&](std::size_t next) {
        if (--waits_for[next] == 0) ready.emplace(items_[next].position, next);
      });
    }
    return order;
  }
  std::size_t num_items() const { return items_.size(); }
  const std::vector<Node*>& item(std::size_t i) const { return items_[i].nodes; }

 private:
  struct Item {
    std::vector<Node*> nodes;
    std::size_t position = 0;  // of the last node
  };

  void for_each_successor(std::size_t item, const auto& fn) const {
    auto visit = [&](const Node& next) {
      if (item_[next.id()] != item) fn(item_[next.id()]);
    };
    for (const Node* node : items_[item].nodes) {
      for (const Node* user : node->users())
        if (&user->graph() == &graph_) visit(*user);
      for (const Node* later : effects_.after(*node)) visit(*later);
    }
  }

  const Graph& graph_;
  EffectOrder effects_;
  std::vector<std::int32_t> partition_;  // by node id
  std::vector<std::size_t> item_;        // by node id
  std::vector<Item> items_;              // first the partitions, then the other nodes
  std::size_t position_ = 0;
};

// Copies nodes that are in graph order and known to be a valid partition.
FusedPartition fused(const GraphModule& module, const std::vector<Node*>& nodes,
                     const std::function<bool(const Node&)>& is_inside, std::string class_name,
                     bool always_return_tuple) {
  FusedPartition result;
  std::unordered_set<const Node*> seen;
  for (const Node* node : nodes)
    for (Node* input : node->all_input_nodes())
      if (!is_inside(*input) && seen.insert(input).second) result.inputs.push_back(input);
  // Inputs of the whole graph have an order that callers know.
  if (std::all_of(result.inputs.begin(), result.inputs.end(),
                  [](const Node* input) { return input->is_placeholder(); }))
    std::sort(result.inputs.begin(), result.inputs.end(),
              [](const Node* a, const Node* b) { return a->comes_before(*b); });

  auto graph = std::make_shared<Graph>();
  ValueMap map;
  for (const Node* input : result.inputs) {
    Node& placeholder = graph->placeholder(input->name(), input->type());
    placeholder.meta() = input->meta();
    map.emplace(input, placeholder);
  }
  std::vector<Argument> values;
  for (Node* node : nodes) {
    Node& copy = graph->node_copy(*node, [&](Node& input) { return map.at(&input); });
    map.emplace(node, copy);
    bool is_used_outside = false;
    for (const Node* user : node->users()) is_used_outside |= !is_inside(*user);
    if (!is_used_outside) continue;
    values.emplace_back(copy);
    result.outputs.push_back(node);
  }
  graph->output(values.size() == 1 && !always_return_tuple ? values[0]
                                                           : Argument::tuple(std::move(values)));
  result.module = std::make_shared<GraphModule>(module, std::move(graph), std::move(class_name));
  return result;
}

// The call of a submodule, with its results in place of those of the nodes it stands for.
Node& insert_call(GraphModule& module, const FusedPartition& part, const std::string& path,
                  Node& last) {
  Graph& graph = module.graph();
  module.set_submodule(path, part.module);
  Node* next = last.next();
  const auto guard = next ? graph.inserting_before(*next) : graph.inserting_at_end();
  Args inputs;
  for (Node* input : part.inputs) inputs.emplace_back(*input);
  Node& call = graph.call_module(path, std::move(inputs));
  const bool is_tuple = part.module->graph().output_node().arg(0).kind() == Argument::Kind::kTuple;
  for (std::size_t i = 0; i < part.outputs.size(); ++i) {
    Node& result =
        is_tuple ? graph.call_function("operator.getitem", {call, static_cast<std::int64_t>(i)})
                 : call;
    part.outputs[i]->replace_all_uses_with(result, {}, /*propagate_meta=*/true);
  }
  return call;
}

}  // namespace

bool validate_partition(std::span<Node* const> nodes) {
  return validate_partitions({{nodes.begin(), nodes.end()}});
}

bool validate_partitions(const std::vector<std::vector<Node*>>& partitions) {
  const auto first = std::find_if(partitions.begin(), partitions.end(),
                                  [](const auto& partition) { return !partition.empty(); });
  if (first == partitions.end()) return true;
  const Contraction contraction(first->front()->graph(), partitions);
  return contraction.sorted().size() == contraction.num_items();
}

FusedPartition fuse_as_graph_module(const GraphModule& module, std::span<Node* const> nodes,
                                    std::string class_name, bool always_return_tuple) {
  const Contraction contraction(module.graph(), {{nodes.begin(), nodes.end()}});
  if (contraction.sorted().size() != contraction.num_items())
    fail("a path leaves the partition (" + names_of(nodes) + ") and comes back");
  return fused(
      module, contraction.nodes(0),
      [&](const Node& node) {
        return &node.graph() == &module.graph() && contraction.partition_of(node) == 0;
      },
      std::move(class_name), always_return_tuple);
}

std::vector<Node*> fuse_by_partitions(GraphModule& module,
                                      const std::vector<std::vector<Node*>>& partitions,
                                      const FuseOptions& options) {
  Graph& graph = module.graph();
  const Contraction contraction(graph, partitions);
  const std::vector<std::size_t> order = contraction.sorted();
  if (order.size() != contraction.num_items()) {
    std::vector<bool> is_sorted(contraction.num_items());
    for (const std::size_t item : order) is_sorted[item] = true;
    for (std::size_t i = 0; i < partitions.size(); ++i)
      if (!is_sorted[i])
        fail("a path leaves partition " + std::to_string(i) + " (" +
             names_of(contraction.nodes(i)) + ") and comes back, maybe through others");
  }
  // All modules first: they may fail, and nothing is changed by then.
  std::vector<FusedPartition> parts(partitions.size());
  for (std::size_t i = 0; i < partitions.size(); ++i)
    if (!partitions[i].empty())
      parts[i] = fused(
          module, contraction.nodes(i),
          [&](const Node& node) {
            return contraction.partition_of(node) == static_cast<std::int32_t>(i);
          },
          options.prefix + std::to_string(i), options.always_return_tuple);

  std::vector<Node*> calls(partitions.size(), nullptr);
  std::vector<std::vector<Node*>> placed(partitions.size());  // a call and what unpacks it
  // In topological order, so that the inputs of a call are those which it will have at the end.
  std::unordered_map<Node*, Node*> moved;
  for (const std::size_t item : order) {
    if (item >= partitions.size() || partitions[item].empty()) continue;
    FusedPartition& part = parts[item];
    for (Node*& input : part.inputs)
      if (const auto found = moved.find(input); found != moved.end()) input = found->second;
    std::string path = options.prefix + std::to_string(item);
    if (module.attr_kind(path) != GraphOwner::AttrKind::kMissing)
      path = module.fresh_attribute(path + "_");
    Node& last = *contraction.nodes(item).back();
    Node* const end = last.next();
    calls[item] = &insert_call(module, part, path, last);
    for (Node* node = calls[item]; node != end; node = node->next()) placed[item].push_back(node);
    for (std::size_t i = 0; i < part.outputs.size(); ++i)
      moved.emplace(part.outputs[i], placed[item].size() > 1 ? placed[item][i + 1] : calls[item]);
  }
  for (std::size_t i = 0; i < partitions.size(); ++i)
    for (auto node = contraction.nodes(i).rbegin(); node != contraction.nodes(i).rend(); ++node)
      graph.erase_node(**node);
  // Each node behind the one before it in the order.
  Node* previous = nullptr;
  auto place = [&](Node& node) {
    if (previous && previous->next() != &node) previous->append(node);
    previous = &node;
  };
  for (const std::size_t item : order) {
    const auto& nodes = item < partitions.size() ? placed[item] : contraction.item(item);
    for (Node* node : nodes) place(*node);
  }
  if (options.recompile) module.recompile();
  calls.erase(std::remove(calls.begin(), calls.end(), nullptr), calls.end());
  return calls;
}

}  // namespace fx
