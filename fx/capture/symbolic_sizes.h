#pragma once

#include <vector>

#include "fx/capture/recording.h"

namespace fx {

/// Records a program for inputs whose sizes in `program.options.dynamic` vary: runs it on examples
/// of several sizes, compares the graphs node by node, and makes each number that varies an
/// expression of sizes (aten::sym_size.int of inputs or of values inside), which it verifies on a
/// further run. A size that a graph cannot follow stays as in the example; why, a kSize assumption
/// says. Leaves no trace in the module, the inputs and the random generators.
///
/// Runs: 2 for each size, 4 more, and 1 with each size at its least; again for each size that turns
/// out to stay.
/// @throws TraceError kBadArgument for marks that the example does not fit, kConcreteValue (strict)
///   for a size that stays, and what the program throws on the example.
Recording record_sizes(const Program& program, const std::vector<at::Tensor>& inputs);

}  // namespace fx
