#include "fx/passes/replace_pattern.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "fx/analysis/alias.h"
#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {
namespace {

// The results of a graph: the leaves of what its output returns, in order.
std::vector<Argument> results_of(const Graph& graph) {
  std::vector<Argument> results;
  const Node& output = graph.output_node();
  if (output.num_args() > 0)
    output.args()[0].map_leaves([&](const Argument& leaf) {
      results.push_back(leaf);
      return leaf;
    });
  return results;
}

// A replacement graph with what is asked of it again and again.
struct Replacement {
  std::shared_ptr<const Graph> keep_alive;
  const Graph* graph;
  std::vector<Node*> placeholders;
  std::vector<Argument> results;

  explicit Replacement(const Graph& from, std::shared_ptr<const Graph> owner = nullptr)
      : keep_alive(std::move(owner)),
        graph(&from),
        placeholders(from.placeholders()),
        results(results_of(from)) {}
};

// A set of nodes that is emptied in O(1).
class NodeSet {
 public:
  void clear(const Graph& graph) {
    round_of_.resize(graph.id_bound(), 0);
    ++round_;
  }
  void insert(const Node& node) { round_of_[node.id()] = round_; }
  bool contains(const Node& node) const {
    return node.id() < round_of_.size() && round_of_[node.id()] == round_;
  }

 private:
  std::vector<std::uint32_t> round_of_;  // by node id
  std::uint32_t round_ = 0;
};

// An attribute that the module lacks, ready to be added.
struct NewAttribute {
  std::string path;
  GraphOwner::AttrKind kind;
  at::Tensor tensor;
  std::shared_ptr<torch::nn::Module> module;
};

[[noreturn]] void throw_bad(const std::string& text) {
  throw PassError(ErrorCode::kBadPattern, "replace_pattern: " + text);
}

at::Tensor copy_of(const at::Tensor& tensor) {
  return tensor.detach().clone().set_requires_grad(tensor.requires_grad());
}

class Replacer {
 public:
  Replacer(GraphModule& module, const Graph& pattern, const ReplaceOptions& options)
      : module_(module),
        graph_(module.graph()),
        pattern_(pattern),
        options_(options),
        matcher_(pattern, {.ignore_literals = options.ignore_literals,
                           .node_name_match = options.node_name_match,
                           .modules = options.modules,
                           .attributes = options.attributes}),
        pattern_results_(results_of(pattern)) {
    if (&pattern == &graph_) throw_bad("the pattern is the graph itself");
    if (matcher_.num_operations() == 0)
      throw_bad("the pattern has no operation, so it would match every node");
  }

  std::vector<PatternMatch> find() {
    return matcher_.match(graph_, [this](const PatternMatch& match) {
      for (const MatchFilter& filter : options_.filters)
        if (!filter(match, graph_, pattern_)) return false;
      return !options_.check_effects || keeps_order(match);
    });
  }

  // Throws before anything is changed.
  void check(const Replacement& replacement) {
    const std::size_t inputs = matcher_.pattern().placeholders().size();
    if (replacement.graph == &graph_) throw_bad("the replacement is the graph itself");
    if (replacement.placeholders.size() != inputs)
      throw_bad("Placeholder count mismatch: the pattern has " + std::to_string(inputs) +
                ", the replacement " + std::to_string(replacement.placeholders.size()));
    if (replacement.results.size() != pattern_results_.size())
      throw_bad("Returning nodes count mismatch: the pattern returns " +
                std::to_string(pattern_results_.size()) + " values, the replacement " +
                std::to_string(replacement.results.size()));
    const std::vector<Node*> pattern_inputs = pattern_.placeholders();
    for (std::size_t i = 0; i < inputs; ++i)
      if (pattern_inputs[i]->num_users() == 0 && replacement.placeholders[i]->num_users() > 0)
        throw_bad("the replacement uses " + str_repr(replacement.placeholders[i]->name()) +
                  ", but the pattern does not use its placeholder " +
                  str_repr(pattern_inputs[i]->name()));
    // A returned input keeps its users, so its counterpart must be the same input.
    for (std::size_t i = 0; i < pattern_results_.size(); ++i) {
      const Node* result = pattern_results_[i].node_or_null();
      if (!result || !result->is_placeholder()) continue;
      const Node* counterpart = replacement.results[i].node_or_null();
      const auto position = std::find(pattern_inputs.begin(), pattern_inputs.end(), result);
      const auto index = static_cast<std::size_t>(position - pattern_inputs.begin());
      if (counterpart != replacement.placeholders[index])
        throw_bad("the pattern returns its input " + str_repr(result->name()) +
                  ", so the replacement must return the same input there");
    }
    collect_attributes(*replacement.graph);
  }

  Match replace(PatternMatch& match, const Replacement& replacement) {
    const std::vector<Node*> inputs = pattern_.placeholders();
    std::vector<Argument> map(replacement.graph->id_bound());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Argument bound = resolved(match.placeholders[i]);
      match.nodes_map.set(*inputs[i], bound);
      map[replacement.placeholders[i]->id()] = bound;
    }
    auto mapped = [&](Node& node) { return map[node.id()]; };
    Match done{match.anchors[0], {}, {}};
    const std::vector<Node*> nodes = take_inside(match);
    {
      const auto guard = graph_.inserting_before(make_room(match, nodes));
      for (Node& node : replacement.graph->nodes()) {
        if (node.is_placeholder() || node.is_output()) continue;
        Node& copy = graph_.node_copy(node, mapped);
        map[node.id()] = copy;
        done.replacements.push_back(&copy);
      }
    }
    for (std::size_t i = 0; i < pattern_results_.size(); ++i) {
      const Node* result = pattern_results_[i].node_or_null();
      if (result && !result->is_placeholder())
        hand_over(match.nodes_map.at(*result), replacement.results[i].map_nodes(mapped));
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
      if ((*node)->op() != Opcode::kGetAttr || (*node)->num_users() == 0) graph_.erase_node(**node);
    done.nodes_map = std::move(match.nodes_map);
    return done;
  }

  // Adds what check() collected. Nothing here can fail but for lack of memory.
  void add_attributes() {
    for (NewAttribute& attribute : new_attributes_) {
      switch (attribute.kind) {
        case GraphOwner::AttrKind::kModule:
          module_.set_submodule(attribute.path, std::move(attribute.module));
          break;
        case GraphOwner::AttrKind::kParameter:
          module_.set_parameter(attribute.path, std::move(attribute.tensor));
          break;
        case GraphOwner::AttrKind::kBuffer:
          module_.set_buffer(attribute.path, std::move(attribute.tensor));
          break;
        default:
          module_.set_constant(attribute.path, std::move(attribute.tensor));
      }
    }
  }

 private:
  // --- effects -----------------------------------------------------------------------------------

  void look_at_effects() {
    if (effects_known_) return;
    effects_known_ = true;
    for (Node& node : graph_.nodes())
      if (!node.is_placeholder() && !node.is_output() && node.is_impure())
        effects_.push_back(&node);
    if (!effects_.empty()) aliases_.emplace(graph_);
  }

  // Whether the nodes of the match can meet at one place without an effect changing its order.
  bool keeps_order(const PatternMatch& match) {
    look_at_effects();
    if (effects_.empty()) return true;
    std::vector<Node*> nodes = take_inside(match);
    std::ranges::sort(nodes, [](const Node* a, const Node* b) { return a->comes_before(*b); });
    const Node* first = nodes.front();
    const Node* last = nodes.back();
    // Users that have to move, or results that move up: then nothing with an effect may be there.
    const bool pulls_apart = first_early_user(match, *last) != nullptr;
    auto conflicts = [&](const Node& other) {
      if (inside_.contains(other)) return false;
      return pulls_apart || std::ranges::any_of(nodes, [&](const Node* node) {
               return node->comes_before(other) && aliases_->conflict(*node, other);
             });
    };
    if (std::ranges::any_of(nodes, [](const Node* node) { return node->is_impure(); })) {
      for (const Node* node = first; node != last; node = node->next())
        if (conflicts(*node)) return false;
      return true;
    }
    auto effect = std::ranges::lower_bound(
        effects_, first, [](const Node* a, const Node* b) { return a->comes_before(*b); });
    for (; effect != effects_.end() && (*effect)->comes_before(*last); ++effect)
      if (conflicts(**effect)) return false;
    return true;
  }

  // The operations of a match, in the order of the pattern; inside_ holds them too.
  std::vector<Node*> take_inside(const PatternMatch& match) {
    std::vector<Node*> nodes;
    inside_.clear(graph_);
    for (const auto& [pattern_node, value] : match.nodes_map) {
      if (pattern_node->is_placeholder()) continue;
      nodes.push_back(&value.node());
      inside_.insert(value.node());
    }
    return nodes;
  }

  // The first user of a result that stands before the last node of the match, or null.
  Node* first_early_user(const PatternMatch& match, const Node& last) const {
    Node* first = nullptr;
    for (const Node* result : match.returning_nodes) {
      if (!inside_.contains(*result)) continue;
      for (Node* user : result->users())
        if (user->comes_before(last) && (!first || user->comes_before(*first)) &&
            !inside_.contains(*user))
          first = user;
    }
    return first;
  }

  // --- placing -----------------------------------------------------------------------------------

  // The node to insert before: all inputs of the match stand before it, all users of its results
  // behind, if need be after moving some.
  Node& make_room(const PatternMatch& match, const std::vector<Node*>& nodes) {
    Node* last = *std::ranges::max_element(
        nodes, [](const Node* a, const Node* b) { return a->comes_before(*b); });
    Node* early_user = pattern_results_.size() > 1 ? first_early_user(match, *last) : nullptr;
    if (!early_user) return *last;
    const Node* last_input = nullptr;
    for (const Node* node : nodes)
      for (const Node* input : node->all_input_nodes())
        if (!inside_.contains(*input) && (!last_input || last_input->comes_before(*input)))
          last_input = input;
    if (!last_input || last_input->comes_before(*early_user)) return *early_user;
    // Everything that depends on the results moves behind the match, in its order.
    NodeSet depends;
    depends.clear(graph_);
    for (const Node* result : match.returning_nodes)
      if (inside_.contains(*result)) depends.insert(*result);
    Node* at = last;
    for (Node* node = early_user; node != last;) {
      Node* next = node->next();
      if (!inside_.contains(*node) &&
          std::ranges::any_of(node->all_input_nodes(),
                              [&](const Node* input) { return depends.contains(*input); })) {
        depends.insert(*node);
        at->append(*node);
        at = node;
      }
      node = next;
    }
    return *last;
  }

  // --- rewiring ----------------------------------------------------------------------------------

  // What became of a node that an earlier match may have replaced, followed to the end.
  Argument resolved(const Argument& argument) {
    return argument.map_nodes([this](Node& node) -> Argument {
      auto found = replaced_.find(&node);
      if (found == replaced_.end()) return node;
      return found->second = resolved(found->second);
    });
  }

  void hand_over(Node& old, const Argument& value) {
    if (value.node_or_null() == &old) return;
    for (Node* user : old.users().to_vector()) user->replace_input_with(old, value);
    replaced_[&old] = value;
  }

  // --- attributes --------------------------------------------------------------------------------

  void collect_attributes(const Graph& replacement) {
    const auto* owner = dynamic_cast<const GraphModule*>(replacement.owner());
    for (const Node& node : replacement.nodes()) {
      if (node.op() != Opcode::kGetAttr && node.op() != Opcode::kCallModule) continue;
      const std::string& path = node.target().str();
      if (module_.attr_kind(path) != GraphOwner::AttrKind::kMissing) continue;
      if (std::ranges::any_of(new_attributes_, [&](const auto& a) { return a.path == path; }))
        continue;
      const auto kind = owner ? owner->attr_kind(path) : GraphOwner::AttrKind::kMissing;
      if (kind == GraphOwner::AttrKind::kMissing)
        throw_bad("Attempted to create a \"" + std::string(opcode_name(node.op())) +
                  "\" node during subgraph rewriting with target " + path +
                  ", but the referenced attribute does not exist in the replacement GraphModule");
      NewAttribute attribute{path, kind, {}, {}};
      if (kind == GraphOwner::AttrKind::kModule)
        attribute.module = copy_of_module(*owner->find_submodule(path), path);
      else
        attribute.tensor = copy_of(owner->find_tensor(path));
      new_attributes_.push_back(std::move(attribute));
    }
  }

  static std::shared_ptr<torch::nn::Module> copy_of_module(const torch::nn::Module& module,
                                                           const std::string& path) {
    try {
      auto copy = module.clone();
      copy->train(module.is_training());
      return copy;
    } catch (const c10::Error&) {
      throw_bad("the module at " + str_repr(path) + " of the replacement has no clone()");
    }
  }

  GraphModule& module_;
  Graph& graph_;
  const Graph& pattern_;
  const ReplaceOptions& options_;
  SubgraphMatcher matcher_;
  std::vector<Argument> pattern_results_;
  bool effects_known_ = false;
  std::vector<Node*> effects_;  // nodes with effects, in order
  std::optional<AliasAnalysis> aliases_;
  NodeSet inside_;  // operations of the match at hand
  std::unordered_map<const Node*, Argument> replaced_;
  std::vector<NewAttribute> new_attributes_;
};

std::vector<Match> replace_all(GraphModule& module, Replacer& replacer,
                               const ReplaceOptions& options,
                               const std::function<const Replacement&(const PatternMatch&)>& make) {
  std::vector<PatternMatch> found = replacer.find();
  // First everything that can fail, then everything that changes.
  std::vector<const Replacement*> replacements;
  for (const PatternMatch& match : found) replacements.push_back(&make(match));
  std::vector<Match> matches;
  if (found.empty()) return matches;
  replacer.add_attributes();
  for (std::size_t i = 0; i < found.size(); ++i)
    matches.push_back(replacer.replace(found[i], *replacements[i]));
  if (options.recompile) module.recompile();
  return matches;
}

}  // namespace

std::vector<Match> replace_pattern(GraphModule& module, const Graph& pattern,
                                   const Graph& replacement, const ReplaceOptions& options) {
  const Replacement common(replacement);
  Replacer replacer(module, pattern, options);
  replacer.check(common);  // wrong arguments are an error even if nothing matches
  return replace_all(module, replacer, options,
                     [&](const PatternMatch&) -> const Replacement& { return common; });
}

std::vector<Match> replace_pattern(GraphModule& module, const GraphModule& pattern,
                                   const GraphModule& replacement, const ReplaceOptions& options) {
  ReplaceOptions later = options;
  later.recompile = false;
  std::vector<Match> matches = replace_pattern(module, pattern.graph(), replacement.graph(), later);
  if (matches.empty()) return matches;
  module.delete_all_unused_submodules();
  if (options.recompile) module.recompile();
  return matches;
}

std::vector<Match> replace_pattern(GraphModule& module, const Graph& pattern,
                                   const ReplacementCallback& replacement,
                                   const ReplaceOptions& options) {
  if (!replacement)
    throw_bad("Must provide either replacement GraphModule or replacement callback");
  Replacer replacer(module, pattern, options);
  std::vector<std::unique_ptr<Replacement>> made;
  return replace_all(module, replacer, options,
                     [&](const PatternMatch& match) -> const Replacement& {
                       std::shared_ptr<Graph> graph = replacement(match, module.graph(), pattern);
                       if (!graph) throw_bad("the callback gave no graph");
                       made.push_back(std::make_unique<Replacement>(*graph, graph));
                       replacer.check(*made.back());
                       return *made.back();
                     });
}

}  // namespace fx
