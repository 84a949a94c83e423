#pragma once

#include <string>
#include <vector>

#include "fx/ops/value.h"

namespace fx {

class GraphModule;

/// Checks that no input and no attribute of a call shares memory with one of module.mutations().
/// Tensors of one storage that interleave count as shared. `names` are the placeholders' targets in
/// order.
/// @throws RunError kSharedMemory naming both. O(k log k) for k inputs and attributes.
void check_mutations(const GraphModule& module, const std::vector<std::string>& names,
                     const Values& args, const KwValues& kwargs);

}  // namespace fx
