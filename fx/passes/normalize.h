#pragma once

#include "fx/passes/pass.h"

namespace fx {

struct NormalizeArgsOptions {
  /// All arguments become keywords; else those that are given by position stay there.
  bool only_kwargs = true;
};

/// Writes calls so that those which mean the same look the same (torch.fx.experimental.normalize
/// .NormalizeArgs): every argument of an operator or torch function becomes a keyword, in the order
/// of the schema and with defaults filled in; arguments of a module's forward get their names. The
/// tensor that torch functions work on is called "input", as in Python. Names, types and meta stay.
///
/// Left alone: methods and built-ins, and calls of which it is not known what they mean
/// (NamedArguments::of; shape_prop helps where overloads differ). rewrites: calls that changed.
PassResult normalize_args(GraphModule& module, const NormalizeArgsOptions& options = {});

struct NormalizeOperatorsOptions {
  /// Take the inputs of the graph as tensors where shape_prop has not seen them.
  bool inputs_are_tensors = false;
};

/// Replaces torch functions of two arguments by the operators that mean the same for tensors
/// (torch.fx.experimental.normalize.NormalizeOperators): torch.add by operator.add, likewise mul,
/// sub, div (truediv), floor_divide (floordiv), remainder (mod), eq, ne, lt, le, gt, ge. Only where
/// one of the two is known to be a tensor: torch.add(1, 2) is a tensor, operator.add(1, 2) a
/// number. rewrites: calls replaced.
PassResult normalize_operators(GraphModule& module, const NormalizeOperatorsOptions& options = {});

}  // namespace fx
