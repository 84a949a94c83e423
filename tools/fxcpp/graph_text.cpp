#include "tools/fxcpp/graph_text.h"

#include <array>

#include "fx/base/error.h"
#include "fx/graph/dot.h"
#include "fx/graph/text.h"
#include "tools/fxcpp/graph_json.h"

namespace fx::cli {
namespace {

struct GraphFormat {
  std::string_view name;
  std::string_view extension;  ///< of file names that ask for it; empty: none does
};
constexpr std::array kFormats = {
    GraphFormat{"text", ".txt"},  GraphFormat{"table", ""},   GraphFormat{"fx", ".fx"},
    GraphFormat{"python", ".py"}, GraphFormat{"cpp", ".cpp"}, GraphFormat{"dot", ".dot"},
    GraphFormat{"json", ".json"},
};

std::string graph_as_json(const Model& model) {
  Report report("graph");
  report.json()["file"] = model.path;
  report.json()["nodes"] = Json::array();
  for (const Node& node : model.module->graph().nodes())
    report.json()["nodes"].push_back(node_json(node));
  return report.render(Format::kJson, false);
}

}  // namespace

std::vector<std::string> graph_formats() {
  std::vector<std::string> names;
  for (const GraphFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

std::string graph_format_of_file(const std::string& path) {
  if (path.ends_with(".pt2"))
    throw UsageError(ErrorCode::kBadOption,
                     "-o '" + path +
                         "': a .pt2 file holds a model with its weights, and `fxcpp opt` writes "
                         "models; the graph can be written as " +
                         graph_extensions());
  for (const GraphFormat& format : kFormats)
    if (!format.extension.empty() && path.ends_with(format.extension))
      return std::string(format.name);
  throw UsageError(ErrorCode::kBadOption,
                   "-o '" + path + "': the name says no format; it ends in " + graph_extensions());
}

std::string graph_extensions() {
  std::string out;
  for (const GraphFormat& format : kFormats)
    if (!format.extension.empty()) out += (out.empty() ? "" : ", ") + std::string(format.extension);
  return out;
}

std::string graph_as(std::string_view format, const Model& model) {
  const Graph& graph = model.module->graph();
  if (format == "text") return graph.str() + "\n";
  if (format == "table") return graph.tabular() + "\n";
  if (format == "fx") return to_text(graph);
  if (format == "python") return model.module->python_code();
  if (format == "cpp") return model.module->code();
  if (format == "dot") {
    DotOptions options;
    options.title = model.path;
    return to_dot(graph, options);
  }
  return graph_as_json(model);
}

}  // namespace fx::cli
