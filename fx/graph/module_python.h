#pragma once

#include <torch/nn/module.h>

#include <optional>
#include <string>

#include "fx/graph/graph_module.h"
#include "fx/graph/python_forward.h"

namespace fx::python {

/// The constructor call of Python's class for a module of torch::nn, "torch.nn.Linear(3, 4,
/// bias=True)"; nothing for any other class. Containers come empty.
std::optional<std::string> constructor_call(const torch::nn::Module& module);

/// The classes of `module` and of the GraphModules below it, inner ones first.
std::string class_source(const GraphModule& module, const std::string& class_name, File& file,
                         const PythonCodeOptions& options);

}  // namespace fx::python
