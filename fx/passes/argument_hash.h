#pragma once

#include <cstdint>

#include "fx/graph/argument.h"

namespace fx {

/// A hash that agrees with Argument's equality; nodes count by identity, so it is good for tables
/// that live as long as the graph, not for storing. O(size).
std::uint64_t argument_hash(const Argument& argument);

}  // namespace fx
