#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fx/passes/pattern_matcher.h"

namespace fx {

/// A match, with the nodes that the pattern gives names to.
struct NamedMatch {
  PatternMatch match;
  std::map<std::string, Node*> name_node_map;
};

/// A matcher whose pattern names its nodes
/// (torch.fx.passes.utils.matcher_with_name_node_map_utils.SubgraphMatcherWithNameNodeMap). Besides
/// its results the pattern returns a dict from names to nodes, as the last one:
///
///     return (%relu, {'conv': %conv, 'relu': %relu})
///
/// which is no part of what is matched.
class SubgraphMatcherWithNameNodeMap {
 public:
  /// Works on a copy of the pattern; modules and attributes are looked up in its owner, which must
  /// outlive this.
  /// @throws PassError kBadPattern as SubgraphMatcher, and for a pattern without such a dict.
  explicit SubgraphMatcherWithNameNodeMap(const Graph& pattern, MatchOptions options = {});

  /// See SubgraphMatcher::match.
  std::vector<NamedMatch> match(Graph& graph) const;
  /// The pattern without the dict: what the matches' nodes_map is about.
  const Graph& pattern() const noexcept { return *pattern_; }

 private:
  std::shared_ptr<Graph> pattern_;
  std::map<std::string, const Node*> names_;  // nodes of pattern_
  std::unique_ptr<SubgraphMatcher> matcher_;
};

/// Whether each graph is an occurrence of the other, whole with its placeholders and its output
/// (torch.fx.passes.utils.common.compare_graphs): the same operations on the same operands,
/// whatever the order and the names of the nodes.
bool compare_graphs(Graph& left, Graph& right);

}  // namespace fx
