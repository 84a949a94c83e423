#pragma once

#include <functional>
#include <string_view>

#include "fx/graph/graph_module.h"
#include "fx/graph/hooks.h"

/// Functions that are told of the edits of a graph (torch.fx's GraphModule._register_*_hook): they
/// belong to the graph, run in registration order on the thread that edits, and stay until their
/// handle removes them. A graph without hooks pays one comparison an edit.
namespace fx {

/// Told of a new node before it is linked into the list: its neighbours are known, nobody sees it
/// yet. When the hook throws, the node is not created.
using CreateNodeHook = std::function<void(Node& node)>;
/// Told of a node that is about to be erased; it has all its arguments still. When the hook throws,
/// the node stays.
using EraseNodeHook = std::function<void(Node& node)>;
/// Told that `user` is about to read something else for `old`: by replace_all_uses_with,
/// replace_input_with and rename, not by set_args and its kin. `replacement` is the name of the new
/// node, the new name of a renamed one, or the text of a constant.
using ReplaceNodeHook = std::function<void(Node& old, std::string_view replacement, Node& user)>;
/// Told of a finished deep copy of the module.
using DeepcopyHook = std::function<void(GraphModule& copy)>;

HookHandle register_create_node_hook(Graph& graph, CreateNodeHook hook);
HookHandle register_erase_node_hook(Graph& graph, EraseNodeHook hook);
HookHandle register_replace_node_hook(Graph& graph, ReplaceNodeHook hook);
/// Deep copies carry all hooks of their graph over, and are then shown to these.
HookHandle register_deepcopy_hook(GraphModule& module, DeepcopyHook hook);

/// Removes a hook when it goes out of scope (torch.fx's _set_create_node_hook and its kin).
class [[nodiscard]] ScopedHook {
 public:
  explicit ScopedHook(HookHandle handle) : handle_(std::move(handle)) {}
  ScopedHook(ScopedHook&&) noexcept = default;
  ScopedHook& operator=(ScopedHook&&) = delete;
  ~ScopedHook() { handle_.remove(); }

 private:
  HookHandle handle_;
};

namespace detail {

/// The hooks of one graph.
struct NodeHooks {
  HookList<Node&> create;
  HookList<Node&> erase;
  HookList<Node&, std::string_view, Node&> replace;
  HookList<GraphModule&> deep_copy;
};

/// Null for a graph that never had hooks.
NodeHooks* find_hooks(const Graph& graph) noexcept;
/// Gives `to` hooks of its own that call what those of `from` call now.
void carry_hooks(const Graph& from, Graph& to);

}  // namespace detail
}  // namespace fx
