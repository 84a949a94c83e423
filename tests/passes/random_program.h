#pragma once

#include <cstdint>
#include <memory>

#include "fx/graph/graph_module.h"

namespace fx {

/// A program made up from a seed, to be run: on matrices [4, 4], with repeated subexpressions,
/// views, writes through views, buffers that share memory, constants, and several results. Two
/// inputs.
std::shared_ptr<GraphModule> random_program(std::uint64_t seed, int operations = 40);

}  // namespace fx
