#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/graph/node.h"
#include "fx/graph/node_source.h"

/// Where nodes come from: what every node that is created on this thread gets into its meta
/// (torch.fx.traceback). All state is thread-local and restored by guards, also on exceptions.
namespace fx::traceback {

/// The keys of a node's meta that a re-trace copies from the old node to the new ones, besides
/// "stack_trace" and "seq_nr" (torch.fx's _COPY_META_FIELDS). All others describe the old value and
/// need not hold for the new one.
inline constexpr std::string_view kCopyMetaFields[] = {
    "nn_module_stack",       "torch_fn",  "source_fn_stack",
    "original_aten",         "recompute", "ac_graph_id",
    "has_backward_hook",     "from_node", "quantization_tag",
    "_numeric_debug_handle", "custom",    "partitioner_tag"};

/// Whether a re-trace keeps that key.
bool is_copied_field(std::string_view key) noexcept;

/// The meta that new nodes get now.
const Meta& get_current_meta() noexcept;
/// Whether new nodes get the meta of the node that an Interpreter is executing.
bool has_preserved_node_meta() noexcept;

/// Puts the state of this thread back when it goes out of scope.
class [[nodiscard]] Guard {
 public:
  /// Changes nothing by itself.
  Guard();
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  ~Guard();

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

/// Has nodes that are created while an Interpreter runs get the meta of the node that it executes.
Guard preserve_node_meta(bool enable = true);

/// New nodes come from `node`: they get its meta, as far as a re-trace keeps it, and a "from_node"
/// that says so. Does nothing unless node meta is preserved.
Guard set_current_meta(const Node& node, std::string_view pass_name = {});

/// Adds entries to meta()["custom"] (a Meta) of every node that a tracer creates until the guard
/// dies. Inner annotations win over outer ones; also without preserve_node_meta.
Guard annotate(const Meta& entries);
/// The entries that annotate() adds now.
Meta get_current_annotation();

/// `function` with annotate(entries) around each of its calls.
template <typename Function>
auto annotate_fn(Meta entries, Function function) {
  return [entries = std::move(entries),
          function = std::move(function)](auto&&... args) -> decltype(auto) {
    const Guard guard = annotate(entries);
    return function(std::forward<decltype(args)>(args)...);
  };
}

/// The "stack_trace" of new nodes; an empty text removes it. Does nothing unless node meta is
/// preserved.
void set_stack_trace(std::string_view text);
/// The "stack_trace" of new nodes while node meta is preserved, else the C++ call stack.
std::string format_stack();

/// The "seq_nr" of new nodes: the number of the innermost gradient function that is running. Calls
/// nest; each set_grad_fn_seq_nr needs a reset_grad_fn_seq_nr. Do nothing unless node meta is
/// preserved. @throws GraphError kIndexOutOfRange for a reset too many.
void set_grad_fn_seq_nr(std::int64_t number);
void reset_grad_fn_seq_nr();

/// Writes the current meta into a new node; tracers call it.
void stamp(Node& node);

}  // namespace fx::traceback
