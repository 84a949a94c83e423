#pragma once

#include <functional>

#include "fx/graph/graph_module.h"

namespace fx {

/// Calls `fn` for `module` and every GraphModule among its submodules, at any depth, each once, the
/// innermost first.
void for_each_graph_module(GraphModule& module, const std::function<void(GraphModule&)>& fn);

}  // namespace fx
