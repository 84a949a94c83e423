#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fx/passes/operator_support.h"
#include "fx/passes/split_by_tags.h"
#include "fx/passes/tools_common.h"

/// Splitting a model between an accelerator and the CPU (torch.fx.passes.splitter_base).
namespace fx {

/// Why a node ended up where it did.
struct NodeEvent {
  const Node* source = nullptr;
  std::string description;
  const Node* cause = nullptr;  ///< null if there is none
  /// "mul: acc_del|non_tensor_output_with_cpu_user sub"; "#" for no cause.
  std::string str() const;
};

/// The events of a search, in order (torch.fx's NodeEventTracker).
class NodeEventTracker {
 public:
  void add(const Node& source, std::string description, const Node* cause = nullptr) {
    events_.push_back({&source, std::move(description), cause});
  }
  const std::vector<NodeEvent>& events() const noexcept { return events_; }
  /// What happened to one node: descriptions in order.
  std::vector<std::string> of(const Node& node) const;
  /// The events of each node, by name.
  std::map<std::string, std::vector<std::string>> to_map() const;
  /// The events of a node; those of what caused them follow, indented, if `recursive`.
  std::string text_of(const Node& node, bool recursive = false) const;

 private:
  std::vector<NodeEvent> events_;
};

/// The calls that the accelerator is to run (torch.fx's FxNetAccNodesFinder).
struct AccNodes {
  std::vector<bool> is_acc;  ///< by node id
  NodeEventTracker tracker;
};

/// Those that `support` says yes to, without those that would pass something that is no tensor
/// (is_node_output_tensor) to or from the CPU, unless `allow_non_tensor`. O(nodes + uses).
AccNodes find_acc_nodes(const GraphModule& module, const OperatorSupport& support,
                        bool allow_non_tensor = false);

struct SplitterOptions {
  /// Smaller subgraphs of the accelerator join the CPU's.
  std::size_t min_acc_module_size = 1;
  /// Do not keep calls together that pass each other what is no tensor.
  bool skip_fusion = false;
  bool allow_non_tensor = false;
  /// See move_non_tensor_nodes_on_boundary.
  bool move_non_tensor_nodes_on_boundary = false;
  /// An error if there are more submodules; 0: any number.
  std::size_t max_acc_splits = 0;
  /// Submodules are called "_run_on_acc_N" and "_run_on_cpu_N", N counting both.
  std::string acc_submodule_name = "_run_on_acc_";
  std::string non_acc_submodule_name = "_run_on_cpu_";
  bool return_tuple = false;
};

struct SplitResult {
  std::shared_ptr<GraphModule> split_module;
  /// Of each submodule, when the model runs on the sample inputs; copies.
  std::map<std::string, Values> submodule_inputs;
  std::string non_acc_submodule_prefix;
};

/// Groups the nodes that an accelerator supports and the others into alternating submodules, as few
/// as a greedy walk in the order of dependencies finds:
///
///     Splitter splitter(gm, {x}, support_targets({"aten::sin", "aten::cos"}));
///     auto split = splitter.split();     // calls _run_on_acc_0, _run_on_cpu_1, ...
///
/// Values and effects both count as dependencies. Calls that pass each other what is no tensor stay
/// in one subgraph (find_fusions).
class Splitter {
 public:
  /// Runs shape_prop. `module` must outlive this. @throws RunError when the model fails.
  Splitter(GraphModule& module, Values sample_inputs, OperatorSupport support,
           SplitterOptions options = {});

  const AccNodes& acc_nodes() const noexcept { return acc_; }
  const FusionGroups& fusions() const noexcept { return fusions_; }

  /// The walk alone: alternating subgraphs. O(nodes^2) at worst, near-linear as a rule.
  /// @throws PassError kBadPartition "Couldn't create subgraphs" for a graph without calls.
  std::vector<Subgraph> put_nodes_into_subgraphs() const;
  /// Gives subgraphs of the accelerator that are too small to the CPU and joins neighbours.
  std::vector<Subgraph> remove_small_acc_subgraphs(std::vector<Subgraph> subgraphs) const;
  /// The steps together. @throws PassError kBadPartition
  std::vector<Subgraph> subgraphs() const;

  /// The module that calls the subgraphs. The original's nodes are not tagged.
  std::shared_ptr<GraphModule> split();
  /// Name of the submodule that each call went into, by name; after split().
  const std::map<std::string, std::string>& node_submodule_map() const noexcept {
    return node_submodule_map_;
  }
  /// split() and the inputs of each part.
  /// @throws PassError kBadPartition "Cannot fulfill max_acc_splits limit. ..."
  SplitResult generate_split_results();

  /// Which kinds of calls, with the dtypes of their arguments, are supported and which are not.
  std::string node_support_preview() const;
  /// What split() would make: subgraphs before and after removing small ones, the bytes that go in
  /// and out of each part on the accelerator, and what of that is no tensor. Runs the model.
  std::string split_preview();

 private:
  GraphModule& module_;
  Values sample_inputs_;
  OperatorSupport support_;
  SplitterOptions options_;
  AccNodes acc_;
  FusionGroups fusions_;
  std::map<std::string, std::string> node_submodule_map_;
};

/// The inputs that submodules get when `module` runs on `inputs`: copies, by the path of the
/// submodule; of one that is called several times those of the last call. Leaves no trace in the
/// module (Isolation). @throws RunError when the module fails.
std::map<std::string, Values> generate_inputs_for_submodules(
    GraphModule& module, const Values& inputs, const std::vector<std::string>& submodules);

}  // namespace fx
