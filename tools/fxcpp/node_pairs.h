#pragma once

#include <vector>

#include "fx/graph/graph_module.h"

namespace fx::cli {

/// Two nodes whose values ought to agree.
struct NodePair {
  const Node* subject;
  const Node* reference;
  /// Both are the same computation by construction: the same call on inputs that are the same, with
  /// equal attributes. If not, a pass gave the value another origin, which may round differently.
  bool same_computation;
};

/// Which nodes of a module that went through passes compute what which nodes of the module before
/// them computed, in the order of `subject`; placeholders, outputs and pairs of attributes are left
/// out, since nothing is computed there.
///
/// A node stands for what its users read in its place before: when a batch norm is folded into the
/// convolution in front of it, the relu behind both tells that the convolution stands for the batch
/// norm now. A node that no such user tells about stands for the node of its name, if that is the
/// same call; one that a pass made, and that no user explains, stands for nothing. O(arguments),
/// plus one comparison of the attributes.
std::vector<NodePair> pair_nodes(const GraphModule& subject, const GraphModule& reference);

}  // namespace fx::cli
