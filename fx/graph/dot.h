#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

struct DotOptions {
  std::string title = "graph";
  /// Longer lines of a label are cut and end in "...". Counted in bytes.
  std::size_t max_line = 60;
  /// Also the arguments that are no nodes.
  bool arguments = true;
  /// The shape of the boxes, as Graphviz calls it.
  std::string shape = "box";

  // Instead of the usual, where given:
  /// The lines of a node's label.
  std::function<std::vector<std::string>(const Node&)> label = {};
  /// The colour that a node is filled with, by a name or number of Graphviz.
  std::function<std::string(const Node&)> color = {};
  /// Nodes that are left out, with their arrows.
  std::function<bool(const Node&)> skip = {};
  /// Labels of further boxes that point to a node: what it reads that is no node.
  std::function<std::vector<std::vector<std::string>>(const Node&)> sources = {};
};

/// The graph in the DOT language of Graphviz (`dot -Tsvg`), one box a node, coloured by opcode, one
/// arrow from each producer to each of its users. Any text is safe in a label. Never throws on a
/// broken graph. O(size of the text).
std::string to_dot(const Graph& graph, const DotOptions& options = {});

}  // namespace fx
