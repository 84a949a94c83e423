#pragma once

#include <cstdint>
#include <functional>

#include "fx/passes/pass.h"

namespace fx {

/// Calls `fn` for `module` and every GraphModule among its submodules, at any depth, each once, the
/// innermost first.
void for_each_graph_module(GraphModule& module, const std::function<void(GraphModule&)>& fn);

/// The same for a pass whose `fn` returns how many places it rewrote: changed if there were any.
PassResult rewrite_each_graph_module(GraphModule& module,
                                     const std::function<std::int64_t(GraphModule&)>& fn);

}  // namespace fx
