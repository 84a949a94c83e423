#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "fx/passes/pattern_matcher.h"

namespace fx {

/// One search of SubgraphMatcher::match: bindings of pattern nodes, tried and taken back.
class MatchSearch {
 public:
  MatchSearch(const SubgraphMatcher& matcher, Graph& graph,
              const std::function<bool(const PatternMatch&)>& accept);

  std::vector<PatternMatch> run();

 private:
  using Mark = std::size_t;

  void match_anchor(std::size_t index);
  void for_each_candidate(std::size_t index, const std::function<bool(Node&)>& fn);
  bool try_node(const Node& pattern_node, Node& node);
  bool match_node(const Node& pattern_node, Node& node);
  bool match_arguments(const Node& pattern_node, const Node& node);
  bool match_argument(const Argument& pattern, const Argument& argument);
  bool match_items(std::span<const Argument> pattern, std::span<const Argument> arguments);
  bool bind_literal(const Node& pattern_node, const Argument& argument);
  bool is_equal(const Node& pattern_node, const Node& node) const;
  bool same_module(const Node& pattern_node, const Node& node) const;
  bool same_attribute(const Node& pattern_node, const Node& node) const;
  void bind(const Node& pattern_node, Argument value);
  void undo(Mark mark);

  void finish_match();
  bool is_contained() const;
  bool is_convex();
  bool overlaps() const;
  /// Whether the node takes part as an operation that would be replaced.
  bool is_inside(const Node& node) const;

  const SubgraphMatcher& matcher_;
  const MatchOptions& options_;
  Graph& graph_;
  const std::function<bool(const PatternMatch&)>& accept_;
  std::vector<Argument> value_of_;       // by pattern node id
  std::vector<bool> is_bound_;           // by pattern node id
  std::vector<const Node*> pattern_of_;  // by graph node id
  std::vector<const Node*> trail_;       // pattern nodes in the order they were bound
  std::vector<std::pair<const Node*, Node*>>
      pending_;                      // pairs whose arguments are still to compare
  std::vector<bool> consumed_;       // by graph node id: inside an accepted match
  std::vector<std::uint32_t> seen_;  // by graph node id: round of the last visit (is_convex)
  std::uint32_t round_ = 0;
  std::vector<PatternMatch> matches_;
};

}  // namespace fx
