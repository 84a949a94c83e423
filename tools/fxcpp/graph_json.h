#pragma once

#include "fx/graph/graph_module.h"
#include "tools/fxcpp/report.h"

namespace fx::cli {

/// An argument without loss: numbers, strings, booleans and null as in JSON, lists as arrays;
/// anything else as an object of one key that names its kind: {"node": "x"}, {"tuple": [...]},
/// {"dict": [[key, value], ...]}, {"slice": [start, stop, step]}, {"dtype": "torch.float32"},
/// {"complex": [re, im]},
/// {"float": "nan"} ...
Json argument_json(const Argument& argument);

/// {"name", "op", "target", "args", "kwargs", "users"}, and what is known of the value: "type",
/// "dtype", "shape", "module", "stack_trace".
Json node_json(const Node& node);

}  // namespace fx::cli
