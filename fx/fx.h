#pragma once

/// torch.fx for C++: everything most programs need. See docs/ for the guide.

#include "fx/base/error.h"
#include "fx/capture/make_fx.h"
#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/wrap.h"
#include "fx/graph/graph.h"
#include "fx/graph/graph_module.h"
#include "fx/interpret/interpreter.h"
