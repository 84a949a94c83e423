#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_access.h"

namespace fx {

/// A graph as it stands at one moment: to compare with, and to go back to. The graph must outlive
/// the snapshot.
class GraphSnapshot {
 public:
  enum class Keep : std::uint8_t {
    kForComparison,  ///< nodes and arguments: differs()
    kForRestore,     ///< meta and the order of users as well: differs() and restore()
  };

  /// O(nodes + arguments); kForRestore also copies the meta of every node.
  GraphSnapshot(Graph& graph, Keep keep);

  /// Whether a node was added, erased, replaced, moved or renamed, or its opcode, target, type or
  /// arguments changed. Meta does not count. O(1) when the graph was not touched, else
  /// O(nodes + arguments).
  bool differs() const;

  /// Makes the graph what it was: the very same nodes, so that pointers to them are valid again,
  /// with their users in the same order. Nodes made since are erased; their names stay taken.
  /// O(nodes + arguments). Does not throw but for lack of memory.
  /// @throws InternalError for a snapshot that was kept for comparison.
  void restore();

  Graph& graph() const noexcept { return *graph_; }

 private:
  struct NodeState {
    Node* node;
    detail::NameEntry* name;
    Target target;
    Symbol type;
    std::uint32_t num_args;
    std::uint32_t num_kwargs;
    std::uint32_t num_users;
    Opcode op;
  };

  Graph* graph_;
  Keep keep_;
  std::uint64_t version_;
  Node* insert_point_;
  bool insert_after_;
  std::vector<NodeState> nodes_;
  Args args_;                                        // of all nodes, one after the other
  Kwargs kwargs_;                                    // likewise
  std::vector<Node*> users_;                         // likewise, in order
  std::vector<std::pair<std::size_t, Meta>> metas_;  // by index into nodes_
};

/// A GraphModule with its graph, its attributes and those of all submodules, and nested
/// GraphModules at any depth. Tensors are remembered by identity: their values are not copied, so
/// writing into one is neither seen nor undone. The module must outlive the snapshot.
class ModuleSnapshot {
 public:
  using Keep = GraphSnapshot::Keep;

  /// O(nodes + arguments + modules + attributes).
  ModuleSnapshot(GraphModule& module, Keep keep);

  /// Whether a graph differs (GraphSnapshot::differs) or an attribute was added, removed or
  /// replaced.
  bool differs() const;

  /// Makes graphs, attributes, structured-input specs, name and meta of the module what they were.
  void restore();

 private:
  struct ModuleState {
    std::shared_ptr<torch::nn::Module> keep_alive;  // null for the module itself
    torch::nn::Module* module;
    detail::TensorDict parameters;
    detail::TensorDict buffers;
    detail::ModuleDict children;
  };
  // What only GraphModules have.
  struct GraphModuleState {
    GraphModule* module;
    std::shared_ptr<Graph> graph;
    std::optional<GraphSnapshot> content;
    std::string class_name;
    std::shared_ptr<const Executable> executable;
    bool needs_recompile;
    bool build_waits;
    std::map<std::string, at::Tensor, std::less<>> constants;
    std::map<std::string, bool, std::less<>> non_persistent;
    std::optional<TreeSpec> in_spec;
    std::optional<TreeSpec> out_spec;
    Meta meta;
  };

  void add(torch::nn::Module& module, std::shared_ptr<torch::nn::Module> keep_alive);

  Keep keep_;
  std::unordered_set<const torch::nn::Module*> seen_;
  std::vector<ModuleState> modules_;
  std::vector<GraphModuleState> graph_modules_;
};

}  // namespace fx
