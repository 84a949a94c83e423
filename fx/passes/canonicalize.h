#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "fx/graph/graph_module.h"

namespace fx {

struct CanonicalizeOptions {
  /// Put each operator.getitem right behind what it takes an item of, by index.
  bool group_getitems = false;
  /// Keep the names of placeholders, by which callers pass keywords.
  bool keep_placeholder_names = true;
};

/// A copy of `graph` in an order and with names that follow from what it computes alone, so that
/// graphs which were built in another order come out equal (torch.fx.passes.canonicalize): of the
/// nodes that are ready the first one by opcode, target and arguments. Placeholders keep their
/// order, attributes are read right before their first use, nodes are named after their targets.
/// Effects keep their order. Nodes that compute the same from the same keep theirs: graphs that
/// differ in that alone may come out different (see cse). O(n log n + arguments).
/// @param renamed filled with the old and the new name of nodes whose name changed.
std::shared_ptr<Graph> canonicalized(const Graph& graph, const CanonicalizeOptions& options = {},
                                     std::map<std::string, std::string>* renamed = nullptr);

/// Gives the module that copy of its graph (canonicalize_graph) and recompiles. Returns the old and
/// the new name of nodes whose name changed.
std::map<std::string, std::string> canonicalize_graph(GraphModule& module,
                                                      const CanonicalizeOptions& options = {});

/// A hash that graphs share which canonicalized() makes equal; the same in every process.
std::uint64_t canonical_hash(const Graph& graph);

}  // namespace fx
