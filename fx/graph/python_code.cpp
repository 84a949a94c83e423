#include "fx/graph/python_code.h"

#include "fx/graph/graph_module.h"
#include "fx/graph/module_python.h"
#include "fx/graph/python_forward.h"

namespace fx {
namespace {

std::string imports_source(const python::File& file) {
  std::string out = "from __future__ import annotations\n\n";
  if (file.imports.base64) out += "import base64\n";
  if (file.imports.math) out += "import math\n";
  if (file.imports.operator_) out += "import operator\n";
  if (file.imports.base64 || file.imports.math || file.imports.operator_) out += "\n";
  out += "import torch\n";
  if (!file.wrapped.empty() || !file.inplace.empty()) out += "import torch.fx\n";
  if (file.imports.inf || file.imports.nan)
    out += std::string("from math import ") + (file.imports.inf ? "inf" : "") +
           (file.imports.inf && file.imports.nan ? ", " : "") + (file.imports.nan ? "nan" : "") +
           "\n";
  if (file.imports.device) out += "from torch import device\n";
  return out;
}

std::string helpers_source(const python::File& file) {
  std::string out;
  for (const std::string& name : file.inplace) {
    const std::string parameters = name == "setitem" ? "x, index, value" : "x, y";
    out += "\n\n@torch.fx.wrap\ndef _operator_" + name + "(" + parameters +
           "):\n    return operator." + name + "(" + parameters + ")\n";
  }
  for (const auto& [cpp, python] : file.wrapped)
    out +=
        "\n\n@torch.fx.wrap\ndef " + python + "(*args, **kwargs):\n    raise NotImplementedError(" +
        python::string_literal("the C++ function " + cpp + " has no Python implementation here") +
        ")\n";
  return out;
}

std::string write(const Graph& graph, const GraphModule* module, std::string_view class_name,
                  const PythonCodeOptions& options) {
  python::File file;
  const std::string name = file.claim(class_name);
  std::string classes;
  if (module) {
    classes = python::class_source(*module, name, file, options);
  } else {
    classes = "\n\nclass " + name + "(torch.nn.Module):\n" +
              python::forward_source(graph, file, options, 4);
  }
  return imports_source(file) + helpers_source(file) + classes;
}

}  // namespace

std::string python_code(const Graph& graph, std::string_view class_name,
                        const PythonCodeOptions& options) {
  return write(graph, dynamic_cast<const GraphModule*>(graph.owner()), class_name, options);
}

std::string GraphModule::python_code() const {
  return write(graph(), this, class_name_, PythonCodeOptions());
}

}  // namespace fx
