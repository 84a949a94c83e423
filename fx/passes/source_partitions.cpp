#include "fx/passes/source_partitions.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "fx/graph/graph_module.h"
#include "fx/passes/tools_common.h"

namespace fx {
namespace {

using Pair = std::pair<std::string, std::string>;  // name of the call, source
using Stack = std::vector<Pair>;

// "torch.nn.Linear" for "torch.nn.modules.linear.Linear".
std::string public_name(std::string_view name) {
  constexpr std::string_view kInner = "torch.nn.modules.";
  if (!name.starts_with(kInner)) return std::string(name);
  return "torch.nn." + std::string(name.substr(name.rfind('.') + 1));
}

Pair split_at(std::string_view text, char separator) {
  const auto at = text.find(separator);
  if (at == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<std::string>& wanted)
      : graph_(graph), owner_(dynamic_cast<const GraphModule*>(graph.owner())) {
    for (const std::string& source : wanted) wanted_.emplace(public_name(source), source);
  }

  std::map<std::string, std::vector<SourcePartition>> run(
      const std::function<bool(const Node&)>& filter) {
    for (Node& node : graph_.nodes()) visit(node);
    std::map<std::string, std::vector<SourcePartition>> out;
    for (Group& group : groups_) {
      if (filter &&
          !std::ranges::all_of(group.nodes, [&](const Node* node) { return filter(*node); }))
        continue;
      out[group.source].push_back(partition(group));
    }
    return out;
  }

 private:
  struct Group {
    std::string source;
    std::vector<Node*> nodes;
  };

  // Whether the source is wanted; if so the node joins the group of that call.
  bool add(Node& node, const std::string& name, std::string_view source) {
    const auto found = wanted_.find(public_name(source));
    if (found == wanted_.end()) return false;
    const auto [entry, is_new] = index_.emplace(Pair(found->second, name), groups_.size());
    if (is_new) groups_.push_back({found->second, {}});
    groups_[entry->second].nodes.push_back(&node);
    return true;
  }

  void visit(Node& node) {
    const Meta& meta = node.meta();
    if (const auto* stack = meta.get<Stack>("source_fn_stack")) {
      if (!stack->empty()) add(node, stack->back().first, stack->back().second);
      return;
    }
    if (const auto* text = meta.get<std::string>("source_fn_stack")) {
      const Pair last = split_at(std::string_view(*text).substr(text->rfind(';') + 1), ',');
      add(node, last.first, last.second);
      return;
    }
    bool has_origin = false;
    Pair torch_fn;
    if (const auto* pair = meta.get<Pair>("torch_fn"))
      torch_fn = *pair;
    else if (const auto* text = meta.get<std::string>("torch_fn"))
      torch_fn = split_at(*text, ';');
    if (!torch_fn.first.empty()) {
      has_origin = true;
      if (add(node, torch_fn.first, split_at(torch_fn.second, '.').second)) return;
    }
    if (node.op() == Opcode::kCallFunction)
      if (const auto* stack = meta.get<Stack>("nn_module_stack"); stack && !stack->empty()) {
        if (add(node, stack->back().first, stack->back().second)) return;
      }
    if (has_origin || !is_callable(node)) return;
    add(node, std::string(node.name()),
        owner_ ? get_node_target(*owner_, node) : node.target().str());
  }

  static SourcePartition partition(Group& group) {
    SourcePartition out;
    out.source = group.source;
    const std::unordered_set<const Node*> inside(group.nodes.begin(), group.nodes.end());
    auto by_place = [](const Node* a, const Node* b) { return a->comes_before(*b); };
    std::set<Node*, decltype(by_place)> inputs(by_place);
    for (Node* node : group.nodes) {
      for (Node* input : node->all_input_nodes())
        if (!inside.contains(input) && input->op() != Opcode::kGetAttr) inputs.insert(input);
      if (node->op() == Opcode::kGetAttr) {
        out.params.push_back(node);
        continue;
      }
      if (std::ranges::any_of(node->users(),
                              [&](const Node* user) { return !inside.contains(user); }))
        out.output_nodes.push_back(node);
    }
    out.input_nodes.assign(inputs.begin(), inputs.end());
    out.nodes = std::move(group.nodes);
    return out;
  }

  const Graph& graph_;
  const GraphModule* owner_;
  std::map<std::string, std::string> wanted_;  // public name to the name that was asked for
  std::map<Pair, std::size_t> index_;          // of groups_, by source and name
  std::vector<Group> groups_;
};

}  // namespace

std::map<std::string, std::vector<SourcePartition>> get_source_partitions(
    const Graph& graph, const std::vector<std::string>& wanted_sources,
    const std::function<bool(const Node&)>& filter) {
  return Finder(graph, wanted_sources).run(filter);
}

bool check_subgraphs_connected(const SourcePartition& first, const SourcePartition& second) {
  const std::unordered_set<const Node*> behind(second.nodes.begin(), second.nodes.end());
  for (const Node* node : first.nodes)
    for (const Node* user : node->users())
      if (behind.contains(user)) return true;
  return false;
}

}  // namespace fx
