#include "fx/passes/dce.h"

#include "fx/passes/nested.h"

namespace fx {

PassResult dce(GraphModule& module, const DceOptions& options) {
  PassResult result;
  // Innermost first: a nested graph that lost its last effect may be dead itself.
  for_each_graph_module(module, [&](GraphModule& nested) {
    Graph& graph = nested.graph();
    const std::size_t before = graph.size();
    graph.eliminate_dead_code(
        [&](const Node& node) { return node.is_impure(options.impure_random); });
    result.rewrites += static_cast<std::int64_t>(before - graph.size());
  });
  result.changed = result.rewrites > 0;
  return result;
}

}  // namespace fx
