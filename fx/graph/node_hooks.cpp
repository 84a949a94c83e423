#include "fx/graph/node_hooks.h"

#include <memory>
#include <utility>

namespace fx {
namespace {

using detail::NodeHooks;

// What belongs to a graph as a whole hangs on the sentinel of its list, which lives and dies with
// the graph, is never shown to anybody, and is not copied.
constexpr std::string_view kKey = "node_hooks";
Node& sentinel(const Graph& graph) { return *graph.nodes().end(); }

NodeHooks& hooks_of(Graph& graph) {
  if (!detail::find_hooks(graph)) sentinel(graph).meta().set(kKey, std::make_shared<NodeHooks>());
  return *detail::find_hooks(graph);
}

}  // namespace

namespace detail {

NodeHooks* find_hooks(const Graph& graph) noexcept {
  const Meta& meta = std::as_const(sentinel(graph)).meta();
  if (meta.empty()) return nullptr;
  const auto* hooks = meta.get<std::shared_ptr<NodeHooks>>(kKey);
  return hooks ? hooks->get() : nullptr;
}

void carry_hooks(const Graph& from, Graph& to) {
  const NodeHooks* hooks = find_hooks(from);
  if (!hooks) return;
  NodeHooks& copies = hooks_of(to);
  copies.create = hooks->create.independent_copy();
  copies.erase = hooks->erase.independent_copy();
  copies.replace = hooks->replace.independent_copy();
  copies.deep_copy = hooks->deep_copy.independent_copy();
}

}  // namespace detail

HookHandle register_create_node_hook(Graph& graph, CreateNodeHook hook) {
  return hooks_of(graph).create.add(std::move(hook));
}

HookHandle register_erase_node_hook(Graph& graph, EraseNodeHook hook) {
  return hooks_of(graph).erase.add(std::move(hook));
}

HookHandle register_replace_node_hook(Graph& graph, ReplaceNodeHook hook) {
  return hooks_of(graph).replace.add(std::move(hook));
}

HookHandle register_deepcopy_hook(GraphModule& module, DeepcopyHook hook) {
  return hooks_of(module.graph()).deep_copy.add(std::move(hook));
}

}  // namespace fx
