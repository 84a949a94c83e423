#pragma once

#include <memory>

#include "fx/graph/graph_module.h"

namespace fx {

/// (x + 1) * 2: the graph, its nodes and a module that runs it.
struct Affine {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 1});
  Node& mul = graph->call_function("operator.mul", {add, 2});
  Node& out = graph->output(mul);
  GraphModule module{graph};
};

}  // namespace fx
