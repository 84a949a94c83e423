#pragma once

#include <cstddef>
#include <string>

#include "fx/graph/graph.h"

namespace fx {

struct DotOptions {
  std::string title = "graph";
  /// Longer lines of a label are cut and end in "...". Counted in bytes.
  std::size_t max_line = 60;
  /// Also the arguments that are no nodes.
  bool arguments = true;
};

/// The graph in the DOT language of Graphviz (`dot -Tsvg`), as torch.fx's FxGraphDrawer: one box a
/// node, coloured by opcode, one arrow from each producer to each of its users. Any text is safe in
/// a label. Never throws on a broken graph. O(size of the text).
std::string to_dot(const Graph& graph, const DotOptions& options = {});

}  // namespace fx
