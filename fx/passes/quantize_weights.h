#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "fx/passes/pass.h"

namespace fx {

struct QuantizeWeightsOptions {
  /// Weights with fewer elements stay as they are.
  std::int64_t min_numel = 1024;
};

/// Stores the weights of linear layers and convolutions as 8-bit integers with one scale for each
/// output channel, a quarter of float32's memory; biases and activations stay in floating point,
/// and weights are scaled back where they are used. Modules (Linear, Conv1d/2d/3d with zero
/// padding, in eval mode) become functional calls; functional calls need weights that are
/// attributes.
///
/// With w in a channel whose largest absolute value is m, |w' - w| <= m / 254, so a result differs
/// by at most m / 254 times the sum of the absolute inputs it is made from (plus rounding). A
/// channel with an infinity or a nan keeps its layer from being quantised.
///
/// Smaller, not faster by itself: the scaling back costs a pass over the weights in each run unless
/// a backend fuses it. constant_fold leaves these nodes alone (meta "no_constant_fold"). Weights
/// that others use, or that the graph writes to, stay; tensors of the original are not written to.
/// rewrites: layers quantised.
PassResult quantize_weights(GraphModule& module, const QuantizeWeightsOptions& options = {});

/// Symmetric, per channel of axis 0: `values` int8 in [-127, 127] and `scales` [C] in the weight's
/// dtype, 1 for a channel of zeros. w is values * scales up to half a scale.
struct QuantizedWeight {
  at::Tensor values;
  at::Tensor scales;
};
QuantizedWeight quantize_per_channel(const at::Tensor& weight);

}  // namespace fx
