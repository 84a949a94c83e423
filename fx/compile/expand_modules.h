#pragma once

#include "fx/graph/graph_module.h"

namespace fx::loops {

/// Replaces calls of torch::nn modules that kernels understand (activations, norms, dropout) by the
/// operators that they call, with their parameters as attributes; modules in another mode than such
/// an operator stands for stay calls. Nested GraphModules are inlined. Whether anything changed.
bool expand_modules(GraphModule& module);

}  // namespace fx::loops
