#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

/// Parts of a module as modules of their own. They share attributes with it.
namespace fx {

/// A module with the same inputs that returns the values of the named nodes: one alone, several as
/// a tuple in the given order. "output" stands for what the module returns. What is not needed for
/// them is left out, unless it has an effect. O(nodes).
/// @throws PassError kBadExtract for a name that no node has.
std::shared_ptr<GraphModule> extract_outputs(const GraphModule& module,
                                             const std::vector<std::string>& nodes);

/// A module that computes the values of `outputs` from those of `inputs`, which become its
/// placeholders, in that order and under their names; with the nodes between them and no others
/// (torch.fx.experimental.optimization.extract_subgraph). O(nodes).
/// @throws PassError kBadExtract for a name that no node has, and when an output depends on a
///   placeholder by a path on which none of `inputs` lies.
std::shared_ptr<GraphModule> extract_subgraph(const GraphModule& module,
                                              const std::vector<std::string>& inputs,
                                              const std::vector<std::string>& outputs);

}  // namespace fx
