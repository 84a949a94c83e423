#pragma once

#include "fx/passes/pass.h"

namespace fx {

struct RemoveDropoutOptions {
  /// Also removes dropout that is active (training mode). The results then differ from the
  /// original's, as they would without dropout.
  bool even_in_training = false;
};

/// Removes dropout that does nothing: modules in eval mode (Dropout*, AlphaDropout,
/// FeatureAlphaDropout), functional calls with train=False or p=0; also in nested GraphModules.
/// rewrites: nodes removed. torch.fx.experimental.optimization.remove_dropout.
PassResult remove_dropout(GraphModule& module, const RemoveDropoutOptions& options = {});

struct RemoveNoopsOptions {
  /// Takes the shapes that shape_prop has left as those of every run, and removes views and
  /// expansions to the shape that the value already has.
  bool static_shapes = false;
};

/// Removes nodes that return their input bit for bit: Identity modules, aten::alias and lift_fresh,
/// slices over everything, permutations that move nothing; and, where shape_prop has left dtypes
/// and devices, conversions to what the value already is, and arithmetic with a neutral element (x
/// * 1, x / 1, x - 0, and x + 0 of integers; for floats x + 0 is none, as it turns -0.0 into 0.0).
/// Arithmetic makes a new tensor, so it stays when its result or its input is written to or its
/// result returned. Also in nested GraphModules. rewrites: nodes removed.
PassResult remove_noops(GraphModule& module, const RemoveNoopsOptions& options = {});

}  // namespace fx
