#pragma once

#include <optional>
#include <string>

#include "fx/graph/graph_module.h"
#include "fx/interpret/compare.h"

/// Comparing what two modules compute: to check a transformation, and to find where it went wrong.
namespace fx {

/// The result of interpreting `module` on clones of `inputs`: the caller's tensors, the module's
/// buffers and the state of the random generators stay what they are.
Value run_on_copies(GraphModule& module, const Values& inputs);

/// Where two modules part.
struct NodeDifference {
  std::string node;        ///< the first node, in the order of the original, whose value differs
  std::string difference;  ///< as compare_values says
  /// "%relu : ... : values differ: ...": the node's line of both graphs and the difference.
  std::string text;
};

/// Runs both modules on `inputs` and compares the values of nodes with the same name, in the order
/// of the original, and the outputs. Nothing if all agree. Both keep all values until the end.
std::optional<NodeDifference> find_first_difference(GraphModule& original, GraphModule& transformed,
                                                    const Values& inputs,
                                                    CompareOptions options = {});

/// One random value for each placeholder that has a tensor_meta: normal numbers for floats, small
/// non-negative integers, bools. From a generator of its own: the same values for the same seed.
/// @throws PassError kBadPassOption naming a placeholder without tensor_meta.
Values random_inputs(const Graph& graph, std::uint64_t seed = 0);

}  // namespace fx
