#pragma once

/// torch.fx for C++: what most programs need. The other headers are for tools and extensions.

#include "fx/base/error.h"
#include "fx/capture/make_fx.h"
#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/wrap.h"
#include "fx/graph/graph.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/transformer.h"
#include "fx/io/import_export.h"
#include "fx/io/npy.h"
#include "fx/io/save_module.h"
#include "fx/io/to_folder.h"
#include "fx/ops/version.h"
#include "fx/passes/graph_optimizer.h"
#include "fx/passes/pass_manager.h"
#include "fx/passes/replace_pattern.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/split_module.h"
