#include "fx/passes/split_by_tags.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/passes/split_parts.h"
#include "fx/passes/tools_common.h"

namespace fx {
namespace {

class BoundaryMover {
 public:
  explicit BoundaryMover(std::vector<Subgraph>& subgraphs) : subgraphs_(subgraphs) {
    for (std::size_t i = 0; i < subgraphs.size(); ++i)
      for (const Node* node : subgraphs[i].nodes) subgraph_of_.emplace(node, i);
  }

  std::vector<Node*> run() {
    for (std::size_t i = 0; i < subgraphs_.size(); ++i)
      if (subgraphs_[i].is_acc) move_out_of(i);
    return std::move(moved_);
  }

 private:
  void move_out_of(std::size_t from) {
    std::deque<Node*> queue;
    for (Node* node : subgraphs_[from].nodes)
      if (!is_node_output_tensor(*node) && !targets(*node, from).empty()) queue.push_back(node);
    std::unordered_set<const Node*> seen;
    for (; !queue.empty(); queue.pop_front()) {
      Node& node = *queue.front();
      if (!seen.insert(&node).second || subgraph_of_.at(&node) != from) continue;
      const std::vector<std::size_t> to = targets(node, from);
      if (to.size() != 1) continue;
      const std::vector<Node*> nodes = what_must_move(node, from, to[0]);
      if (nodes.empty()) continue;
      for (Node* moving : nodes) move(*moving, from, to[0]);
      for (Node* input : node.all_input_nodes()) {
        const auto found = subgraph_of_.find(input);
        if (found != subgraph_of_.end() && found->second == from && !is_node_output_tensor(*input))
          queue.push_back(input);
      }
    }
  }

  // The other subgraphs that use the node, each once.
  std::vector<std::size_t> targets(const Node& node, std::size_t from) const {
    std::vector<std::size_t> out;
    for (const Node* user : node.users()) {
      const auto found = subgraph_of_.find(user);
      if (found == subgraph_of_.end() || found->second == from) continue;
      if (std::find(out.begin(), out.end(), found->second) == out.end())
        out.push_back(found->second);
    }
    return out;
  }

  // The node and all in `from` that depends on it; nothing if that reaches into a third subgraph.
  std::vector<Node*> what_must_move(Node& start, std::size_t from, std::size_t to) const {
    std::vector<Node*> out{&start};
    std::unordered_set<const Node*> seen{&start};
    for (std::size_t i = 0; i < out.size(); ++i)
      for (Node* user : out[i]->users()) {
        const auto found = subgraph_of_.find(user);
        if (found == subgraph_of_.end() || found->second == to) continue;
        if (found->second != from) return {};
        if (seen.insert(user).second) out.push_back(user);
      }
    return out;
  }

  void move(Node& node, std::size_t from, std::size_t to) {
    std::erase(subgraphs_[from].nodes, &node);
    subgraphs_[to].nodes.push_back(&node);
    subgraph_of_[&node] = to;
    moved_.push_back(&node);
  }

  std::vector<Subgraph>& subgraphs_;
  std::unordered_map<const Node*, std::size_t> subgraph_of_;
  std::vector<Node*> moved_;
};

}  // namespace

std::string_view tag_of(const Node& node) noexcept {
  const auto* tag = node.meta().get<std::string>("tag");
  return tag ? std::string_view(*tag) : std::string_view();
}

void set_tag(Node& node, std::string_view tag) { node.meta().set("tag", std::string(tag)); }

std::shared_ptr<GraphModule> split_by_tags(const GraphModule& module,
                                           const std::vector<std::string>& tags,
                                           const SplitByTagsOptions& options,
                                           std::map<std::string, std::string>* fqn_mapping) {
  return split_by_tags(module, tags, tag_of, options, fqn_mapping);
}

std::shared_ptr<GraphModule> split_by_tags(const GraphModule& module,
                                           const std::vector<std::string>& tags,
                                           const std::function<std::string_view(const Node&)>& tag,
                                           const SplitByTagsOptions& options,
                                           std::map<std::string, std::string>* fqn_mapping) {
  std::unordered_map<std::string_view, int> number_of;
  for (std::size_t i = 0; i < tags.size(); ++i) number_of.emplace(tags[i], static_cast<int>(i));
  const PartOptions parts{
      .name = [&](int number) { return tags[static_cast<std::size_t>(number)]; },
      .copy_attributes = true,
      .order_by_number = true};
  std::map<std::string, std::string> paths;
  auto number = [&](const Node& node) {
    const std::string_view own = tag(node);
    const auto found = number_of.find(own);
    if (found != number_of.end()) return found->second;
    throw PassError(ErrorCode::kBadPartition,
                    "split_by_tags: node " + str_repr(node.name()) +
                        (own.empty() ? " has no tag"
                                     : " has the tag " + str_repr(own) +
                                           ", which is not among those to split by"));
  };
  auto split = split_into_parts(
      module, number, {.keep_original_node_name = true, .tuple_return = options.return_tuple},
      parts, &paths);
  if (fqn_mapping)
    for (const auto& [path, original] : paths) fqn_mapping->insert_or_assign(original, path);
  return split;
}

std::vector<Node*> move_non_tensor_nodes_on_boundary(std::vector<Subgraph>& subgraphs) {
  return BoundaryMover(subgraphs).run();
}

}  // namespace fx
