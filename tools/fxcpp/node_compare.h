#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "fx/graph/graph_module.h"
#include "tools/fxcpp/backend.h"
#include "tools/fxcpp/compare.h"
#include "tools/fxcpp/inputs.h"

namespace fx::cli {

/// One node of two runs.
struct NodeComparison {
  const Node* node;       ///< of the subject
  std::string reference;  ///< name of the node that it was compared with
  bool same_computation;  ///< NodePair::same_computation
  std::string origin;     ///< the line of source that it comes from, if known
  Comparison comparison;
};

/// Runs `subject` on `backend` with the value of every node kept, and compares each tensor with
/// that of the node it stands for (pair_nodes) when the Interpreter runs `reference`; in the order
/// of `subject`. Changes neither module.
///
/// Nodes whose backend keeps no values (plan) are tapped: in a copy of the graph each value is
/// cloned right behind its node and returned. The clones hold the values as they were then,
/// whatever is written to them later. Memory: the values of all nodes of both runs at once.
std::vector<NodeComparison> compare_nodes(const GraphModule& subject, const GraphModule& reference,
                                          Backend backend, const ModelInputs& inputs,
                                          std::uint64_t seed, const ToleranceFlags& tolerance,
                                          const Talk& talk);

/// These nodes and every node that they can depend on: through arguments, or because it may write
/// to the value of such a node. O(arguments) for each round that finds writers.
std::unordered_set<const Node*> feeding(const Graph& graph, const std::vector<const Node*>& nodes);

}  // namespace fx::cli
