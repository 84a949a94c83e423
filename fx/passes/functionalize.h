#pragma once

#include <string>
#include <vector>

#include "fx/passes/pass.h"

namespace fx {

struct FunctionalizeOptions {
  /// Write the new contents of inputs and attributes back by one copy_ each at the end, so that the
  /// module stays what it was to its callers. Otherwise they become outputs in front of the others,
  /// and nothing is written.
  bool copy_back = true;
};

/// Makes a graph of operators that write nothing (torch.func.functionalize, what torch.export and
/// AOTAutograd do): in-place operators, out= arguments, views and writes through views become
/// functional operators, by LibTorch's own functionalization.
///
/// The module runs once on `example_inputs`, tensors only, without gradients; its attributes keep
/// their contents. Composite operators around writes become the operators they are made of, calls
/// of modules the operators that they run. Sizes are those of the example, and what is no operator
/// (built-in functions) is evaluated once, as in a capture; checks of values stay; a graph
/// whose writes are such copies already, or that has none, stays as it is. The graph has the
/// gradients of the one it was made from. Outputs share memory with inputs as they did, unless the
/// contents are returned. rewrites: values written back.
///
/// What is written becomes the module's mutations(), attributes first, in the order of the copies
/// or of the outputs: later calls in which it shares memory with an input or attribute are refused.
/// @throws PassError kNotFunctional for inputs that are missing, no tensors or change their shape,
/// memory
///   that is written and shared by two attributes or inputs, operators that write and have no
///   functional form, and graphs that do more with a value they read (item(), branches, sizes of
///   nonzero) than checking it: the result would hold for those of the example; RunError when the
///   module fails on the inputs.
PassResult functionalize(GraphModule& module, const Values& example_inputs,
                         const FunctionalizeOptions& options = {});

}  // namespace fx
