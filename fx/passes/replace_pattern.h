#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "fx/capture/symbolic_trace.h"
#include "fx/graph/graph_module.h"
#include "fx/passes/pattern_matcher.h"

namespace fx {

/// One replaced occurrence (torch.fx's Match and ReplacedPatterns).
struct Match {
  const Node* anchor;  ///< the node of the pattern that the search started from
  /// Pattern node to what it stood for. Nodes that were replaced are erased from the graph by now;
  /// placeholders stand for what they were at the moment of the replacement.
  NodesMap nodes_map;
  std::vector<Node*> replacements;  ///< the new nodes, in graph order
};

/// Whether a match is to be replaced.
using MatchFilter =
    std::function<bool(const PatternMatch&, const Graph& original, const Graph& pattern)>;

struct ReplaceOptions {
  /// All must agree. A refused match does not shut out others that overlap with it.
  std::vector<MatchFilter> filters = {};
  bool ignore_literals = false;
  std::string node_name_match = {};
  MatchOptions::Modules modules = MatchOptions::Modules::kByPath;
  MatchOptions::Attributes attributes = MatchOptions::Attributes::kAnyTensor;
  /// Leaves a match alone when moving its nodes to one place would change the order of effects:
  /// some node in between writes to memory that they read, or the reverse.
  bool check_effects = true;
  /// Recompiles the module at the end if anything was replaced.
  bool recompile = true;
};

/// Replaces every non-overlapping occurrence of `pattern` by `replacement` (torch.fx's
/// replace_pattern; what matches is told at SubgraphMatcher). Both have the same placeholders in
/// the same order and results of the same number; a placeholder that the pattern does not use, the
/// replacement must not use. A pattern returns its results alone or in a tuple or list; each takes
/// over the uses of its counterpart.
///
/// The replacement stands where the last node of the match stood, or, when a result is used before
/// that, in front of its first user; users that cannot wait for their new input move behind it.
/// Consecutive matches feed each other: the second reads the results of the first. Modules and
/// tensors that the replacement refers to and the module lacks are copied from the replacement's
/// owner.
///
/// O(nodes + matches * size of pattern and replacement). Nothing is changed on error.
/// @throws PassError kBadPattern: see SubgraphMatcher; also placeholders or results that do not
/// fit, a
///   pattern without operations, and attributes that neither module has.
std::vector<Match> replace_pattern(GraphModule& module, const Graph& pattern,
                                   const Graph& replacement, const ReplaceOptions& options = {});
/// The same with the graphs of GraphModules; submodules of `module` that nothing uses any more are
/// deleted, as torch.fx does.
std::vector<Match> replace_pattern(GraphModule& module, const GraphModule& pattern,
                                   const GraphModule& replacement,
                                   const ReplaceOptions& options = {});

/// Makes the replacement for one match. All are made before the first is put in.
using ReplacementCallback = std::function<std::shared_ptr<Graph>(
    const PatternMatch&, const Graph& original, const Graph& pattern)>;
std::vector<Match> replace_pattern(GraphModule& module, const Graph& pattern,
                                   const ReplacementCallback& replacement,
                                   const ReplaceOptions& options = {});

namespace detail {
template <typename T>
concept TraceableFunction = !std::derived_from<std::remove_cvref_t<T>, Graph> &&
                            !std::derived_from<std::remove_cvref_t<T>, torch::nn::Module> &&
                            !std::same_as<std::remove_cvref_t<T>, ReplacementCallback>;
}  // namespace detail

/// The same with callables, which are traced: `replace_pattern(gm, [](auto x) { return fx::relu(x);
/// },
/// ...)`. The names of the parameters make no difference, their order does.
template <detail::TraceableFunction Pattern, detail::TraceableFunction Replacement>
std::vector<Match> replace_pattern(GraphModule& module, Pattern&& pattern,
                                   Replacement&& replacement, const ReplaceOptions& options = {}) {
  const auto pattern_module = symbolic_trace(std::forward<Pattern>(pattern));
  const auto replacement_module = symbolic_trace(std::forward<Replacement>(replacement));
  // The matches refer to the nodes of the pattern.
  std::vector<Match> matches =
      replace_pattern(module, pattern_module->graph(), replacement_module->graph(), options);
  for (Match& match : matches) match.nodes_map.keep_alive(pattern_module);
  return matches;
}

}  // namespace fx
