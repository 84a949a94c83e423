#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

struct MatchOptions {
  /// How call_module nodes are compared.
  enum class Modules : std::uint8_t {
    kByPath,  ///< the same target path, as torch.fx does
    kByType,  ///< modules of the same class at any path; needs owners of both graphs
  };
  /// How get_attr nodes are compared.
  enum class Attributes : std::uint8_t {
    kAnyTensor,  ///< both parameters, both buffers or both constants, whatever their values
                 ///< (torch.fx)
    kByPath,     ///< the same target path
    kByValue,    ///< tensors with the same dtype, shape and elements
  };

  /// The output node of the pattern belongs to it and must match the graph's.
  bool match_output = false;
  /// Placeholders of the pattern match placeholders only, instead of anything.
  bool match_placeholder = false;
  /// Of matches that share a node, only the first is given.
  bool remove_overlapping_matches = true;
  /// Any literal matches any other.
  bool ignore_literals = false;
  /// A graph node whose name contains this matches any node of the pattern; empty: no effect.
  std::string node_name_match = {};
  Modules modules = Modules::kByPath;
  Attributes attributes = Attributes::kAnyTensor;
};

/// What each node of a pattern stands for: a node of the graph or, for placeholders, any argument.
/// Iterates over pairs of pattern node and argument, in the order of the pattern.
class NodesMap {
 public:
  using Entry = std::pair<const Node*, Argument>;

  NodesMap() = default;
  /// `position` gives each pattern node's place in `entries` by Node::id, plus 1; 0 means none.
  NodesMap(std::vector<Entry> entries, std::shared_ptr<const std::vector<std::uint32_t>> position)
      : entries_(std::move(entries)), position_(std::move(position)) {}

  /// Null for a node that is not part of the pattern or has no counterpart. O(1).
  const Argument* find(const Node& pattern_node) const noexcept;
  /// @throws PassError kBadPattern when there is none or it is no node.
  Node& at(const Node& pattern_node) const;
  bool contains(const Node& pattern_node) const noexcept { return find(pattern_node) != nullptr; }
  std::size_t size() const noexcept { return entries_.size(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

  void set(const Node& pattern_node, Argument value);
  /// Ties the life of what holds the pattern's nodes to that of this map.
  void keep_alive(std::shared_ptr<const void> pattern) { pattern_owner_ = std::move(pattern); }

 private:
  std::vector<Entry> entries_;
  std::shared_ptr<const void> pattern_owner_;
  std::shared_ptr<const std::vector<std::uint32_t>> position_;
};

/// One occurrence of a pattern (torch.fx's InternalMatch).
struct PatternMatch {
  std::vector<const Node*> anchors;  ///< sinks of the pattern
  NodesMap nodes_map;
  Args placeholders;  ///< what the pattern's placeholders stand for; none if unused
  std::vector<Node*> returning_nodes;  ///< what the pattern's results stand for, each once
};

/// Finds the occurrences of a pattern graph in another graph (torch.fx's SubgraphMatcher).
///
/// Nodes match when opcode, target and arguments do. Placeholders of the pattern stand for
/// anything, the same one for the same thing everywhere, two of them never for the same node.
/// Literals must be equal, 1 unlike 1.0. Arguments may be given by position, by keyword or by
/// default where the operator has a schema. Lists and tuples match each other; nodes are found in
/// lists, dicts and slices at any depth.
///
/// A match is self-contained: its inner nodes have no users outside (get_attr nodes may), and no
/// path leaves and enters it again, so that it can be replaced by one node.
///
/// The search starts at the sinks ("anchors") and walks to the inputs; further anchors are looked
/// for among the users of what is matched already. O(nodes + candidates * pattern) for patterns
/// with one anchor or whose anchors share nodes.
class SubgraphMatcher {
 public:
  /// The pattern must outlive the matcher and stay as it is.
  /// @throws PassError kBadPattern for an empty pattern, one without output, or with a node that no
  ///   result depends on.
  explicit SubgraphMatcher(const Graph& pattern, MatchOptions options = {});

  /// All matches, in the order of the first anchor's node. `accept` may refuse a match before it
  /// shuts out overlapping ones.
  std::vector<PatternMatch> match(
      Graph& graph, const std::function<bool(const PatternMatch&)>& accept = {}) const;

  const Graph& pattern() const noexcept { return *pattern_; }
  const MatchOptions& options() const noexcept { return options_; }
  std::span<const Node* const> anchors() const noexcept { return anchors_; }
  /// Number of nodes of the pattern that are operations: neither placeholders nor output.
  std::size_t num_operations() const noexcept { return num_operations_; }

 private:
  friend class MatchSearch;

  // How to find a further anchor: start at the user side of a matched node and follow these nodes.
  struct Route {
    const Node* from = nullptr;        // null: look at all nodes
    std::vector<const Node*> through;  // the last one is the anchor
  };

  void check_pattern() const;
  void plan_routes();

  const Graph* pattern_;
  MatchOptions options_;
  const Node* output_ = nullptr;
  std::vector<const Node*> placeholders_;
  std::vector<const Node*> returning_;
  std::vector<const Node*> anchors_;
  std::vector<Route> routes_;                                   // for each anchor but the first
  std::vector<bool> is_returning_;                              // by pattern node id
  std::shared_ptr<const std::vector<std::uint32_t>> position_;  // by pattern node id, plus 1
  std::vector<const Node*> nodes_;                              // of the pattern, in order
  std::size_t num_operations_ = 0;
};

}  // namespace fx
