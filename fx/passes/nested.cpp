#include "fx/passes/nested.h"

#include <unordered_set>

#include "fx/graph/module_access.h"

namespace fx {
namespace {

void visit(torch::nn::Module& module, std::unordered_set<const torch::nn::Module*>& seen,
           const std::function<void(GraphModule&)>& fn) {
  if (!seen.insert(&module).second) return;
  for (const auto& child : detail::children(module))
    if (child.value()) visit(*child.value(), seen, fn);
  if (auto* graph_module = dynamic_cast<GraphModule*>(&module)) fn(*graph_module);
}

}  // namespace

void for_each_graph_module(GraphModule& module, const std::function<void(GraphModule&)>& fn) {
  std::unordered_set<const torch::nn::Module*> seen;
  visit(module, seen, fn);
}

PassResult rewrite_each_graph_module(GraphModule& module,
                                     const std::function<std::int64_t(GraphModule&)>& fn) {
  PassResult result;
  for_each_graph_module(module, [&](GraphModule& nested) { result.rewrites += fn(nested); });
  result.changed = result.rewrites > 0;
  return result;
}

}  // namespace fx
