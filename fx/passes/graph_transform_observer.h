#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/graph/node_hooks.h"

namespace fx {

struct GraphTransformObserverOptions {
  /// An existing folder for pictures of the graph before and after a pass that changed it:
  /// "pass_N_NAME_input_graph.dot" and "..._output_graph.dot", where erased (created) nodes are
  /// yellow and the others grey; N counts the observers with a folder in this process. Empty: none.
  std::string log_folder = {};
  /// Passes that apply_gm_pass and apply_graph_pass do not run.
  std::set<std::string> disabled_passes = {};
};

/// Watches what a pass does to a graph (torch.fx.passes.graph_transform_observer): which nodes it
/// creates and erases, and, in the meta "from_node" of the nodes that take the place of others,
/// what they come from.
///
///     GraphTransformObserver observer(gm, "my_pass");
///     observer.apply_gm_pass(my_pass);
///     for (const std::string& name : observer.created_nodes()) ...
///
/// Watches from its construction until finish() or its end. Copies of the module that are made
/// meanwhile are not watched beyond that either.
class GraphTransformObserver {
 public:
  GraphTransformObserver(GraphModule& module, std::string pass_name,
                         GraphTransformObserverOptions options = {});
  GraphTransformObserver(const GraphTransformObserver&) = delete;
  GraphTransformObserver& operator=(const GraphTransformObserver&) = delete;
  ~GraphTransformObserver();

  /// Runs `pass(module)`, unless it is disabled, then finish(). What it returned; whether it ran if
  /// it returns nothing.
  template <std::invocable<GraphModule&> Pass>
  auto apply_gm_pass(Pass&& pass) {
    return apply([&]() -> decltype(auto) { return pass(module_); });
  }
  /// The same with `pass(graph)`.
  template <std::invocable<Graph&> Pass>
  auto apply_graph_pass(Pass&& pass) {
    return apply([&]() -> decltype(auto) { return pass(module_.graph()); });
  }

  /// Stops watching and writes the pictures, if anything was created or erased. A second call does
  /// nothing. @throws ImportError kWriteFailed.
  void finish();

  /// Names, sorted; a node that was created and erased again is in both.
  const std::set<std::string>& created_nodes() const noexcept { return state_->created; }
  const std::set<std::string>& erased_nodes() const noexcept { return state_->erased; }

  /// How many observers with a folder there were in this process.
  static int get_current_pass_count() noexcept;

 private:
  // Shared with the hooks, which copies of the graph keep.
  struct State {
    std::string pass_name;
    bool active = true;
    std::set<std::string> created, erased;
  };

  template <typename Run>
  auto apply(Run run) {
    using Result = std::invoke_result_t<Run>;
    const bool is_disabled = options_.disabled_passes.contains(state_->pass_name);
    if constexpr (std::is_void_v<Result>) {
      if (!is_disabled) run();
      finish();
      return !is_disabled;
    } else {
      std::optional<Result> result;
      if (!is_disabled) result.emplace(run());
      finish();
      return result;
    }
  }

  GraphModule& module_;
  GraphTransformObserverOptions options_;
  std::shared_ptr<State> state_;
  std::shared_ptr<Graph> input_;  // as it was, if pictures are wanted
  std::vector<ScopedHook> hooks_;
  int number_ = 0;
};

}  // namespace fx
