#include "fx/passes/name_node_map.h"

#include "fx/base/error.h"

namespace fx {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw PassError(ErrorCode::kBadPattern,
                  "the pattern must return its results and, as the last one, a dict from names to "
                  "nodes: " +
                      problem);
}

}  // namespace

SubgraphMatcherWithNameNodeMap::SubgraphMatcherWithNameNodeMap(const Graph& pattern,
                                                               MatchOptions options) {
  pattern_ = pattern.clone();
  pattern_->set_owner(pattern.owner());
  if (pattern_->empty() || !pattern_->nodes().back().is_output()) fail("it returns nothing");
  Node& output = pattern_->output_node();
  const Argument result = output.arg(0);
  if (result.kind() != Argument::Kind::kTuple && result.kind() != Argument::Kind::kList)
    fail("it returns one value");
  std::vector<Argument> items(result.items().begin(), result.items().end());
  if (items.size() < 2 || items.back().kind() != Argument::Kind::kDict)
    fail("the last of its results is no dict");
  for (const auto& [key, value] : items.back().dict_items()) {
    if (key.kind() != Argument::Kind::kString || !value.is_node())
      fail("an entry is no name with a node");
    names_.emplace(key.to_string(), &value.node());
  }
  items.pop_back();
  output.set_args({items.size() == 1 ? items[0] : Argument::tuple(std::move(items))});
  matcher_ = std::make_unique<SubgraphMatcher>(*pattern_, std::move(options));
}

std::vector<NamedMatch> SubgraphMatcherWithNameNodeMap::match(Graph& graph) const {
  std::vector<NamedMatch> out;
  for (PatternMatch& match : matcher_->match(graph)) {
    NamedMatch& named = out.emplace_back();
    for (const auto& [name, node] : names_)
      if (const Argument* found = match.nodes_map.find(*node); found && found->is_node())
        named.name_node_map.emplace(name, &found->node());
    named.match = std::move(match);
  }
  return out;
}

bool compare_graphs(Graph& left, Graph& right) {
  auto contains = [](const Graph& pattern, Graph& graph) {
    const SubgraphMatcher matcher(pattern, {.match_output = true, .match_placeholder = true});
    return !matcher.match(graph).empty();
  };
  return contains(left, right) && contains(right, left);
}

}  // namespace fx
