#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/fxcpp/model.h"

namespace fx::cli {

/// The forms in which a graph can be written: "text", "table", "fx", "cpp", "python", "dot",
/// "json".
std::vector<std::string> graph_formats();
/// The form that a file's name asks for.
/// @throws UsageError kBadOption for a name that says none, or .pt2, which holds more.
std::string graph_format_of_file(const std::string& path);
/// ".fx, .py, ...", for messages.
std::string graph_extensions();

/// The graph of the model in that form.
std::string graph_as(std::string_view format, const Model& model);

}  // namespace fx::cli
