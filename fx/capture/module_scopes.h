#pragma once

#include <torch/nn/module.h>

#include "fx/graph/graph.h"

namespace fx {

/// Says of nodes which modules of `root` they belong to: meta()["nn_module_stack"] (ModuleStack, as
/// Tracer has it), by who owns the parameters and buffers that they read. What reads none belongs
/// to the innermost module around its neighbours that do: torch::nn tells nobody where a forward
/// begins and ends, so that an activation between two layers is of their parent. Nodes that have a
/// stack keep it. O(nodes + modules).
void set_module_scopes(Graph& graph, const torch::nn::Module& root);

/// Names nodes with a module stack after it: "%layer1_conv_conv2d".
void name_by_module(Graph& graph);

}  // namespace fx
