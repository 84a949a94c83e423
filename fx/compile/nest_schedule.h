#pragma once

#include "fx/compile/nest.h"

namespace fx::loops {

/// Decides which loop computes what: fills in the stages, the loops, the rows and the scratch of a
/// nest. O(values * loops).
void schedule(Nest& nest);

}  // namespace fx::loops
