#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "tools/fxcpp/backend.h"
#include "tools/fxcpp/compare.h"
#include "tools/fxcpp/inputs.h"

namespace fx::cli {

/// One node of two runs.
struct NodeComparison {
  std::string name;
  std::string target;
  std::string text;    ///< as the graph prints it
  std::string origin;  ///< the line of source that it comes from, if known
  Comparison comparison;
};

/// Runs `subject` on `backend` with the value of every node kept, and compares each tensor with
/// that of the node of the same name when the Interpreter runs `reference`, in the reference's
/// order; nodes that only one of them has are left out. Changes neither module.
///
/// Nodes whose backend keeps no values (plan) are tapped: in a copy of the graph each value is
/// cloned right behind its node and returned. The clones hold the values as they were then,
/// whatever is written to them later. Memory: the values of all nodes at once.
std::vector<NodeComparison> compare_nodes(const GraphModule& subject, const GraphModule& reference,
                                          Backend backend, const ModelInputs& inputs,
                                          std::uint64_t seed, const ToleranceFlags& tolerance,
                                          const Talk& talk);

}  // namespace fx::cli
