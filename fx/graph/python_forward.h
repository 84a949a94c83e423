#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fx/graph/graph.h"
#include "fx/graph/python_code.h"
#include "fx/graph/python_literals.h"

namespace fx::python {

/// What the classes of one file share: imports, helper functions, global names.
struct File {
  Imports imports;
  std::set<std::string> inplace;                             ///< "iadd" of operator.iadd, "setitem"
  std::vector<std::pair<std::string, std::string>> wrapped;  ///< C++ name, Python name
  std::set<std::string, std::less<>> globals;                ///< names that no local may have

  /// A global name near `candidate` that is still free.
  std::string claim(std::string_view candidate);
  /// The Python function that stands for a wrapped C++ function.
  std::string wrapped_function(const std::string& name);
};

/// The `forward` method of a graph, indented by `indent` blanks.
std::string forward_source(const Graph& graph, File& file, const PythonCodeOptions& options,
                           int indent);

}  // namespace fx::python
