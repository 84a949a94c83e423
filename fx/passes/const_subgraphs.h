#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx {

struct SplitConstOptions {
  /// A node for which this says true is not folded, nor what depends on it; also asked about the
  /// nodes of nested GraphModules, each of which is folded as a whole or not at all.
  std::function<bool(const Node&)> skip_folding_node_fn = {};
  /// Where folded tensors are put; not given: where they were computed.
  std::optional<c10::Device> device_for_folded_attrs = {};
  /// See ConstantRules.
  bool fold_trainable = false;
  bool fold_outputs = false;
};

/// A GraphModule whose constant part is a module of its own, run once before the first call; its
/// results are attributes "_FX_CONST_FOLDED_ATTRS_N" of this one
/// (torch.fx.experimental.const_fold.FoldedGraphModule). Weights may be loaded or changed before
/// that call and not after it.
class FoldedGraphModule : public GraphModule {
 public:
  /// Runs what is constant, and recompiles. Does nothing when there is nothing constant.
  /// @throws PassError kPassFailed "Folding has already been run".
  void run_folding();
  bool has_folding_been_run() const noexcept { return has_folding_been_run_; }

  /// Computes what is constant: no inputs, and a tuple of results. Null if there is nothing.
  const std::shared_ptr<GraphModule>& const_subgraph_module() const noexcept {
    return const_subgraph_module_;
  }
  /// The attributes that it fills, in the order of its results.
  const std::vector<std::string>& folded_attrs() const noexcept { return folded_attrs_; }

  /// Folds if that has not been done, then GraphModule::forward. A call through GraphModule itself
  /// before folding fails: the attributes are missing. Not for concurrent first calls.
  Value forward(Values inputs, KwValues kwargs = {});
  template <typename... Inputs>
    requires(!(std::is_same_v<std::decay_t<Inputs>, Values> || ...))
  Value operator()(Inputs&&... inputs) {
    return forward(Values{Value(std::forward<Inputs>(inputs))...});
  }

 private:
  friend std::shared_ptr<FoldedGraphModule> split_const_subgraphs(const GraphModule& module,
                                                                  const SplitConstOptions& options);
  friend class ConstSplitter;
  explicit FoldedGraphModule(std::string class_name)
      : GraphModule(std::make_shared<Graph>(), std::move(class_name)) {}

  std::shared_ptr<GraphModule> const_subgraph_module_;
  std::vector<std::string> folded_attrs_;
  std::optional<c10::Device> device_;
  bool has_folding_been_run_ = false;
};

/// Separates the calls that depend on attributes and literals alone from the rest. What counts as
/// constant is told at ConstantNodes; constant_fold does the same at once, in place. Names, types
/// and meta stay; attributes are shared with `module`, which is not changed. Results that are no
/// tensors become literals when folding runs. O(nodes + arguments).
/// torch.fx.experimental.const_fold.split_const_subgraphs.
std::shared_ptr<FoldedGraphModule> split_const_subgraphs(const GraphModule& module,
                                                         const SplitConstOptions& options = {});

}  // namespace fx
