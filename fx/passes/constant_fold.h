#pragma once

#include <cstdint>
#include <functional>

#include "fx/passes/pass.h"

namespace fx {

struct ConstantFoldOptions {
  /// The largest tensor that is stored, or made on the way, in bytes. Views of attributes cost
  /// nothing.
  std::int64_t max_bytes = 64 << 20;
  /// Whether parameters that require gradients count as constants although the module is in
  /// training mode. In eval mode they always do.
  bool fold_trainable = false;
  /// Also folds values that are returned. The caller then gets the same tensor in every run and
  /// must not write to it.
  bool fold_outputs = false;
  /// Removes parameters and buffers that no node refers to any more; the state_dict shrinks.
  bool remove_unused_attributes = false;
  /// A node for which this says true is not folded, nor what depends on it.
  std::function<bool(const Node&)> skip = {};
};

/// Constant folding: evaluates, once and without gradients, what depends on attributes and literals
/// alone, and reads the result as a constant attribute instead ("_folded0", no part of the
/// state_dict). Results that are numbers, tuples or lists become literals of the arguments they are
/// used in, with get_attr nodes for the tensors inside.
///
/// Not folded: what depends on an input or on its shape, is marked by meta "no_constant_fold", has
/// effects, reads memory that anything writes to, returns new memory to the caller, is larger than
/// max_bytes, or fails when evaluated (it will fail in the run as well). Works in place, on one
/// module; nested GraphModules are folded as a call or not at all. rewrites: calls removed.
///
/// torch.fx.experimental.const_fold.
PassResult constant_fold(GraphModule& module, const ConstantFoldOptions& options = {});

}  // namespace fx
