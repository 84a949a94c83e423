#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "fx/passes/pass.h"

namespace fx {

/// A connected part of a graph that can run on tensors in MKL-DNN's own layout
/// (torch.fx.experimental.optimization.MklSubgraph).
struct MkldnnRegion {
  std::vector<Node*> nodes;    ///< in graph order
  std::vector<Node*> inputs;   ///< dense values that get converted, each once
  std::vector<Node*> outputs;  ///< nodes of the region whose value others read: converted back
};

/// Whether a region is worth its conversions. Asked before anything of the region is changed.
using MkldnnHeuristic = std::function<bool(const GraphModule&, const MkldnnRegion&)>;

/// Regions of more than `nodes` nodes (use_mkl_length).
MkldnnHeuristic mkldnn_longer_than(std::size_t nodes = 2);
/// Measures each region both ways, on random tensors of the shapes that its inputs have in a run of
/// the module on `example_inputs` (gen_mkl_autotuner). The run leaves its metadata (shape_prop).
/// Which way wins may differ from run to run, what is computed does not.
MkldnnHeuristic mkldnn_autotuner(Values example_inputs, int iterations = 10, int warmup = 1);

/// The regions of a module, in graph order. Heads are calls of Conv2d, Linear and BatchNorm2d (in
/// eval mode) with float32 weights on the CPU; behind them come ReLU, Sigmoid, MaxPool2d, AvgPool2d
/// and AdaptiveAvgPool2d (to a size of 1) as modules, relu and sigmoid as functions, and sums and
/// products of two values of a region whose shapes shape_prop has found equal. Left out is what
/// reads or gives a value that anything in the graph writes to. Empty for a module in training
/// mode, and for a LibTorch without MKL-DNN. O(nodes).
std::vector<MkldnnRegion> mkldnn_regions(GraphModule& module);

/// Runs regions in MKL-DNN's layout: their weights become constants in that layout, their inputs
/// are converted by to_mkldnn, their results by to_dense. Images are taken as batched. The values
/// are those of the original up to the rounding of other algorithms, but for NaN, which MKL-DNN's
/// relu turns into 0; no gradients flow. rewrites: regions converted. (modules_to_mkldnn)
/// @param heuristic null: all regions.
PassResult use_mkldnn_layout(GraphModule& module, const MkldnnHeuristic& heuristic = {});

struct OptimizeForInferenceOptions {
  bool conv_bn_fuse = true;
  bool remove_dropout = true;
  bool mkldnn_layout = true;
  /// Decides on each region of the MKL-DNN layout.
  MkldnnHeuristic heuristic = mkldnn_longer_than();
};

/// For inference, in eval mode: fuses batch norms into convolutions, removes dropout, and uses
/// MKL-DNN's layout where the heuristic wants it
/// (torch.fx.experimental.optimization.optimize_for_inference). rewrites: those of all three.
/// Where fx::compile is at hand, its backend "llvm" with freeze does more.
PassResult optimize_for_inference(GraphModule& module,
                                  const OptimizeForInferenceOptions& options = {});

}  // namespace fx
