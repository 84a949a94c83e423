#include "fx/passes/match_search.h"

#include <algorithm>
#include <typeinfo>

#include "fx/graph/graph_module.h"
#include "fx/passes/named_arguments.h"

namespace fx {
namespace {

const GraphModule* module_of(const Node& node) {
  return dynamic_cast<const GraphModule*>(node.graph().owner());
}

bool same_keys(std::span<const KwArg> a, std::span<const KwArg> b) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const KwArg& kwarg) {
           return std::ranges::any_of(b,
                                      [&](const KwArg& other) { return other.key == kwarg.key; });
         });
}

bool is_sequence_kind(const Argument& argument) {
  return argument.kind() == Argument::Kind::kList || argument.kind() == Argument::Kind::kTuple;
}

}  // namespace

MatchSearch::MatchSearch(const SubgraphMatcher& matcher, Graph& graph,
                         const std::function<bool(const PatternMatch&)>& accept)
    : matcher_(matcher),
      options_(matcher.options()),
      graph_(graph),
      accept_(accept),
      value_of_(matcher.pattern().id_bound()),
      is_bound_(matcher.pattern().id_bound()),
      pattern_of_(graph.id_bound()),
      consumed_(graph.id_bound()),
      seen_(graph.id_bound()) {}

std::vector<PatternMatch> MatchSearch::run() {
  if (!matcher_.anchors_.empty()) match_anchor(0);
  return std::move(matches_);
}

// --- anchors
// ---------------------------------------------------------------------------------------

void MatchSearch::match_anchor(std::size_t index) {
  if (index == matcher_.anchors_.size()) return finish_match();
  const Node& anchor = *matcher_.anchors_[index];
  for_each_candidate(index, [&](Node& node) {
    const Mark mark = trail_.size();
    const std::size_t found = matches_.size();
    if (try_node(anchor, node)) match_anchor(index + 1);
    undo(mark);
    // All further matches with the bindings so far would overlap with the one just found, since
    // they share the first anchor.
    return !(options_.remove_overlapping_matches && index > 0 && matches_.size() > found);
  });
}

// Calls fn for the nodes that an anchor may match, in graph order, until it returns false.
void MatchSearch::for_each_candidate(std::size_t index, const std::function<bool(Node&)>& fn) {
  const Node& anchor = *matcher_.anchors_[index];
  auto is_candidate = [&](const Node& pattern_node, const Node& node) {
    return (node.id() < consumed_.size() && !consumed_[node.id()]) && is_equal(pattern_node, node);
  };
  const Node* from = index > 0 ? matcher_.routes_[index - 1].from : nullptr;
  if (!from || !value_of_[from->id()].is_node()) {
    for (Node& node : graph_.nodes())
      if (is_candidate(anchor, node) && !fn(node)) return;
    return;
  }
  std::vector<Node*> level = {&value_of_[from->id()].node()};
  for (const Node* next : matcher_.routes_[index - 1].through) {
    std::vector<Node*> below;
    for (Node* node : level)
      for (Node* user : node->users())
        if (is_candidate(*next, *user)) below.push_back(user);
    std::ranges::sort(below, [](const Node* a, const Node* b) { return a->comes_before(*b); });
    below.erase(std::unique(below.begin(), below.end()), below.end());
    level = std::move(below);
  }
  for (Node* node : level)
    if (!fn(*node)) return;
}

// --- nodes and arguments
// -----------------------------------------------------------------------------

// Binds everything that follows from pattern_node standing for node; leaves the undoing to the
// caller.
bool MatchSearch::try_node(const Node& pattern_node, Node& node) {
  pending_.clear();
  if (!match_node(pattern_node, node)) return false;
  while (!pending_.empty()) {
    const auto [pattern, target] = pending_.back();
    pending_.pop_back();
    if (!match_arguments(*pattern, *target)) return false;
  }
  return true;
}

bool MatchSearch::match_node(const Node& pattern_node, Node& node) {
  if (is_bound_[pattern_node.id()]) {
    const Argument& value = value_of_[pattern_node.id()];
    return value.node_or_null() == &node;
  }
  if (node.id() >= pattern_of_.size() || pattern_of_[node.id()]) return false;
  if (!is_equal(pattern_node, node)) return false;
  bind(pattern_node, node);
  if (!pattern_node.is_placeholder()) pending_.emplace_back(&pattern_node, &node);
  return true;
}

bool MatchSearch::match_arguments(const Node& pattern_node, const Node& node) {
  if (pattern_node.num_args() == node.num_args() &&
      same_keys(pattern_node.kwargs(), node.kwargs())) {
    if (!match_items(pattern_node.args(), node.args())) return false;
    for (const KwArg& kwarg : pattern_node.kwargs())
      if (!match_argument(kwarg.value, node.kwarg(kwarg.key.str()))) return false;
    return true;
  }
  // Given otherwise: compare what the operator gets.
  if (pattern_node.op() != node.op() || !(pattern_node.target() == node.target())) return false;
  const auto wanted = NamedArguments::of(pattern_node);
  const auto found = wanted ? NamedArguments::of(node) : std::nullopt;
  return found && match_items(wanted->values(), found->values());
}

bool MatchSearch::match_items(std::span<const Argument> pattern,
                              std::span<const Argument> arguments) {
  if (pattern.size() != arguments.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (!match_argument(pattern[i], arguments[i])) return false;
  return true;
}

bool MatchSearch::match_argument(const Argument& pattern, const Argument& argument) {
  if (pattern.is_node())
    return argument.is_node() ? match_node(pattern.node(), argument.node())
                              : bind_literal(pattern.node(), argument);
  if (argument.is_node()) return false;
  if (is_sequence_kind(pattern) && is_sequence_kind(argument))
    return match_items(pattern.items(), argument.items());
  if (!pattern.has_nodes() && !argument.has_nodes())
    return options_.ignore_literals || pattern == argument;
  if (pattern.kind() != argument.kind()) return false;
  if (pattern.kind() == Argument::Kind::kSlice)
    return match_items(pattern.items(), argument.items());
  if (pattern.dict_items().size() != argument.dict_items().size()) return false;
  for (std::size_t i = 0; i < pattern.dict_items().size(); ++i) {
    const DictItem& wanted = pattern.dict_items()[i];
    const DictItem& found = argument.dict_items()[i];
    if (!(wanted.first == found.first) || !match_argument(wanted.second, found.second))
      return false;
  }
  return true;
}

bool MatchSearch::bind_literal(const Node& pattern_node, const Argument& argument) {
  if (!pattern_node.is_placeholder()) return false;
  if (is_bound_[pattern_node.id()]) return value_of_[pattern_node.id()] == argument;
  bind(pattern_node, argument);
  return true;
}

void MatchSearch::bind(const Node& pattern_node, Argument value) {
  if (const Node* node = value.node_or_null()) pattern_of_[node->id()] = &pattern_node;
  value_of_[pattern_node.id()] = std::move(value);
  is_bound_[pattern_node.id()] = true;
  trail_.push_back(&pattern_node);
}

void MatchSearch::undo(Mark mark) {
  while (trail_.size() > mark) {
    const Node& pattern_node = *trail_.back();
    trail_.pop_back();
    if (const Node* node = value_of_[pattern_node.id()].node_or_null())
      pattern_of_[node->id()] = nullptr;
    value_of_[pattern_node.id()] = Argument();
    is_bound_[pattern_node.id()] = false;
  }
}

bool MatchSearch::is_equal(const Node& pattern_node, const Node& node) const {
  if (pattern_node.is_placeholder() && !options_.match_placeholder) return !node.is_output();
  if (!options_.node_name_match.empty() &&
      node.name().find(options_.node_name_match) != std::string_view::npos)
    return true;
  if (pattern_node.op() != node.op()) return false;
  switch (node.op()) {
    case Opcode::kPlaceholder:
    case Opcode::kOutput:
      return true;
    case Opcode::kGetAttr:
      return same_attribute(pattern_node, node);
    case Opcode::kCallModule:
      return same_module(pattern_node, node);
    default:
      return pattern_node.target() == node.target();
  }
}

bool MatchSearch::same_module(const Node& pattern_node, const Node& node) const {
  if (options_.modules == MatchOptions::Modules::kByPath)
    return pattern_node.target() == node.target();
  const GraphModule* owner = module_of(pattern_node);
  const GraphModule* other = module_of(node);
  if (!owner || !other) return pattern_node.target() == node.target();
  const auto a = owner->find_submodule(pattern_node.target().str());
  const auto b = other->find_submodule(node.target().str());
  if (!a || !b) return false;
  const torch::nn::Module& x = *a;
  const torch::nn::Module& y = *b;
  return typeid(x) == typeid(y);
}

bool MatchSearch::same_attribute(const Node& pattern_node, const Node& node) const {
  const GraphModule* owner = module_of(pattern_node);
  const GraphModule* other = module_of(node);
  if (options_.attributes == MatchOptions::Attributes::kByPath || !owner || !other)
    return pattern_node.target() == node.target();
  const at::Tensor a = owner->find_tensor(pattern_node.target().str());
  const at::Tensor b = other->find_tensor(node.target().str());
  if (!a.defined() || !b.defined()) return false;
  if (options_.attributes == MatchOptions::Attributes::kAnyTensor)
    return owner->attr_kind(pattern_node.target().str()) == other->attr_kind(node.target().str());
  return a.is_same(b) || (a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
                          a.device() == b.device() && a.equal(b));
}

// --- the whole match -----------------------------------------------------------------------------

bool MatchSearch::is_inside(const Node& node) const {
  const Node* pattern = node.id() < pattern_of_.size() ? pattern_of_[node.id()] : nullptr;
  return pattern && !pattern->is_placeholder();
}

// Inner nodes have no users outside. Reading an attribute has no cost worth a rule.
bool MatchSearch::is_contained() const {
  for (const Node* pattern : trail_) {
    if (pattern->is_placeholder() || pattern->op() == Opcode::kGetAttr ||
        matcher_.is_returning_[pattern->id()])
      continue;
    for (const Node* user : value_of_[pattern->id()].node().users())
      if (!is_inside(*user)) return false;
  }
  return true;
}

// No path leaves the match and enters it again. Only users that stand before the last node of the
// match can lie on such a path.
bool MatchSearch::is_convex() {
  const Node* last = nullptr;
  for (const Node* pattern : trail_)
    if (!pattern->is_placeholder()) {
      const Node& node = value_of_[pattern->id()].node();
      if (!last || last->comes_before(node)) last = &node;
    }
  std::vector<const Node*> stack;
  ++round_;
  auto push_users = [&](const Node& node) {
    for (const Node* user : node.users())
      if (user->comes_before(*last) && seen_[user->id()] != round_) {
        seen_[user->id()] = round_;
        stack.push_back(user);
      }
  };
  for (const Node* pattern : trail_) {
    if (pattern->is_placeholder() || pattern->op() == Opcode::kGetAttr) continue;
    for (const Node* user : value_of_[pattern->id()].node().users())
      if (!is_inside(*user) && user->comes_before(*last) && seen_[user->id()] != round_) {
        seen_[user->id()] = round_;
        stack.push_back(user);
      }
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Node* user : node->users())
      if (is_inside(*user)) return false;
    push_users(*node);
  }
  return true;
}

bool MatchSearch::overlaps() const {
  return std::ranges::any_of(trail_, [&](const Node* pattern) {
    return !pattern->is_placeholder() && consumed_[value_of_[pattern->id()].node().id()];
  });
}

void MatchSearch::finish_match() {
  if (options_.remove_overlapping_matches && overlaps()) return;
  if (!is_contained() || !is_convex()) return;
  PatternMatch match;
  match.anchors = matcher_.anchors_;
  std::vector<NodesMap::Entry> entries;
  entries.reserve(trail_.size());
  for (const Node* pattern : matcher_.nodes_)
    if (is_bound_[pattern->id()]) entries.emplace_back(pattern, value_of_[pattern->id()]);
  match.nodes_map = NodesMap(std::move(entries), matcher_.position_);
  for (const Node* pattern : matcher_.placeholders_)
    match.placeholders.push_back(value_of_[pattern->id()]);
  for (const Node* pattern : matcher_.returning_)
    if (Node* node = value_of_[pattern->id()].node_or_null()) match.returning_nodes.push_back(node);
  if (accept_ && !accept_(match)) return;
  if (options_.remove_overlapping_matches)
    for (const Node* pattern : trail_)
      if (!pattern->is_placeholder() && !pattern->is_output() && pattern->op() != Opcode::kGetAttr)
        consumed_[value_of_[pattern->id()].node().id()] = true;
  matches_.push_back(std::move(match));
}

}  // namespace fx
