#pragma once

#include <cstdint>
#include <memory>

#include "fx/graph/graph.h"

namespace fx {

/// A graph made up from a seed, to be printed, parsed, copied, compared; not to be run: programs
/// that run (tests/random/program.h) have none of its extremes. The same on every machine. It holds
/// every opcode, every kind of argument with extreme values, types, targets and keys with any
/// characters, erased nodes, and nodes behind the output. Uses come after definitions.
std::shared_ptr<Graph> random_graph(std::uint64_t seed, int max_nodes = 30);

}  // namespace fx
