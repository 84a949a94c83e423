#include "fx/passes/pattern_matcher.h"

#include <algorithm>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/passes/match_search.h"

namespace fx {

// --- what a pattern node stands for
// ----------------------------------------------------------------

const Argument* NodesMap::find(const Node& pattern_node) const noexcept {
  if (!position_ || pattern_node.id() >= position_->size()) return nullptr;
  const std::uint32_t at = (*position_)[pattern_node.id()];
  // Entries are those of the pattern's nodes that have a counterpart, in order.
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), at,
      [&](const Entry& entry, auto wanted) { return (*position_)[entry.first->id()] < wanted; });
  return found != entries_.end() && found->first == &pattern_node ? &found->second : nullptr;
}

Node& NodesMap::at(const Node& pattern_node) const {
  const Argument* found = find(pattern_node);
  if (found && found->is_node()) return found->node();
  throw PassError(ErrorCode::kBadPattern,
                  "the node " + str_repr(pattern_node.name()) + " of the pattern stands for " +
                      (found ? repr(*found) + ", no node" : "nothing in this match"));
}

void NodesMap::set(const Node& pattern_node, Argument value) {
  if (const Argument* found = find(pattern_node)) const_cast<Argument&>(*found) = std::move(value);
}

// --- the pattern
// -----------------------------------------------------------------------------------

SubgraphMatcher::SubgraphMatcher(const Graph& pattern, MatchOptions options)
    : pattern_(&pattern), options_(std::move(options)) {
  if (pattern.empty())
    throw PassError(ErrorCode::kBadPattern,
                    "SubgraphMatcher cannot be initialized with an empty pattern");
  output_ = &pattern.nodes().back();
  if (!output_->is_output())
    throw PassError(ErrorCode::kBadPattern,
                    "the pattern has no output: its last node is " + output_->format_node());
  auto position = std::make_shared<std::vector<std::uint32_t>>(pattern.id_bound(), 0);
  for (const Node& node : pattern.nodes()) {
    nodes_.push_back(&node);
    (*position)[node.id()] = static_cast<std::uint32_t>(nodes_.size());
    if (node.is_placeholder()) placeholders_.push_back(&node);
    num_operations_ += !node.is_placeholder() && !node.is_output();
  }
  position_ = std::move(position);
  is_returning_.resize(pattern.id_bound());
  for (const Node* node : output_->all_input_nodes()) {
    returning_.push_back(node);
    is_returning_[node->id()] = true;
    // Used by the output alone: a sink of the pattern.
    if (!options_.match_output && node->num_users() == 1) anchors_.push_back(node);
  }
  if (options_.match_output) anchors_.push_back(output_);
  check_pattern();
  plan_routes();
}

void SubgraphMatcher::check_pattern() const {
  // Matching walks from the results to the inputs: what they do not depend on would never be found.
  std::vector<bool> reached(pattern_->id_bound());
  reached[output_->id()] = true;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (reached[(*node)->id()]) {
      for (const Node* input : (*node)->all_input_nodes()) reached[input->id()] = true;
    } else if (!(*node)->is_placeholder()) {
      throw PassError(ErrorCode::kBadPattern,
                      "SubgraphMatcher cannot be initialized with a pattern with dead code: no "
                      "result depends on " +
                          (*node)->format_node());
    }
  }
}

// For each further anchor: the nearest node above it that earlier anchors lead to as well.
void SubgraphMatcher::plan_routes() {
  std::vector<bool> matched(pattern_->id_bound());
  auto match_above = [&](const Node* anchor) {
    std::vector<const Node*> stack = {anchor};
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      if (matched[node->id()]) continue;
      matched[node->id()] = true;
      for (const Node* input : node->all_input_nodes()) stack.push_back(input);
    }
  };
  for (std::size_t i = 0; i < anchors_.size(); ++i) {
    if (i > 0) {
      std::vector<const Node*> below(pattern_->id_bound(), nullptr);  // the way back to the anchor
      std::vector<const Node*> queue = {anchors_[i]};
      const Node* start = nullptr;
      const Node* start_at_input = nullptr;  // a placeholder will do if there is nothing else
      for (std::size_t at = 0; at < queue.size() && !start; ++at)
        for (const Node* input : queue[at]->all_input_nodes()) {
          if (below[input->id()]) continue;
          below[input->id()] = queue[at];
          if (!matched[input->id()])
            queue.push_back(input);
          else if (input->is_placeholder())
            start_at_input = start_at_input ? start_at_input : input;
          else if (!start)
            start = input;
        }
      Route route;
      route.from = start ? start : start_at_input;
      if (route.from)
        for (const Node* node = route.from; node != anchors_[i];) {
          node = below[node->id()];
          route.through.push_back(node);
        }
      routes_.push_back(std::move(route));
    }
    match_above(anchors_[i]);
  }
}

std::vector<PatternMatch> SubgraphMatcher::match(
    Graph& graph, const std::function<bool(const PatternMatch&)>& accept) const {
  return MatchSearch(*this, graph, accept).run();
}

}  // namespace fx
