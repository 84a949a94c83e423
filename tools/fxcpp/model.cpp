#include "tools/fxcpp/model.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "fx/analysis/statistics.h"
#include "fx/base/error.h"
#include "fx/graph/text.h"
#include "fx/io/mapped_file.h"
#include "fx/ops/value.h"

namespace fx::cli {
namespace {

io::ValueMetaPtr value_meta(const Node& node) {
  const auto* meta = node.meta().get<io::ValueMetaPtr>("val");
  return meta != nullptr ? *meta : nullptr;
}

std::string type_text(const io::ValueMetaPtr& meta) { return meta ? meta->str() : "?"; }

std::vector<ModelInput> read_inputs(const Graph& graph) {
  std::vector<ModelInput> inputs;
  for (const Node* node : graph.placeholders()) {
    ModelInput input;
    input.name = node->target().str();
    input.meta = value_meta(*node);
    input.is_constant = node->num_args() > 0;
    input.type = input.is_constant ? "= " + repr(node->arg(0)) : type_text(input.meta);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::vector<ModelOutput> read_outputs(const Graph& graph) {
  std::vector<ModelOutput> outputs;
  const Argument& result = graph.output_node().arg(0);
  const bool sequence =
      result.kind() == Argument::Kind::kTuple || result.kind() == Argument::Kind::kList;
  const std::vector<Argument> items =
      sequence ? std::vector<Argument>(result.items().begin(), result.items().end())
               : std::vector<Argument>{result};
  std::set<std::string> taken;
  for (std::size_t i = 0; i < items.size(); ++i) {
    ModelOutput output;
    if (const Node* node = items[i].node_or_null()) {
      output.name = std::string(node->name());
      output.meta = value_meta(*node);
      output.type = type_text(output.meta);
    } else {
      output.name = "output_" + std::to_string(i);
      output.type = "= " + repr(items[i]);
    }
    while (!taken.insert(output.name).second) output.name += "_" + std::to_string(i);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace

void Model::refresh() {
  inputs = read_inputs(module->graph());
  outputs = read_outputs(module->graph());
}

std::string Model::signature() const {
  std::string out;
  for (const ModelInput& input : inputs)
    out += (out.empty() ? "" : ", ") + input.name + ": " + input.type;
  if (inputs.empty()) out = "no inputs";
  std::string ranges;
  for (const auto& [symbol, range] : symbols) {
    const std::string text = range_text(symbol, range.first, range.second);
    if (!text.empty()) ranges += (ranges.empty() ? "" : ", ") + text;
  }
  return ranges.empty() ? out : out + " with " + ranges;
}

void add_load_options(Command& command, std::string& file, LoadFlags& flags) {
  command.app()
      .add_option("FILE", file, "a .pt2 that torch.export.save wrote, or a .fxa of fxcpp opt")
      ->required();
  command.app()
      .add_option("--model", flags.model_name, "which program of a file that holds several")
      ->type_name("NAME")
      ->group("loading");
  command
      .add_list("--allow", flags.allow_operators,
                "let a custom operator through: mylib::op or mylib::*")
      ->type_name("OP")
      ->group("loading");
  command.app()
      .add_flag("--verify-weights", flags.verify_weights, "compare weights with their checksums")
      ->group("loading");
}

namespace {
LoadOptions load_options(const LoadFlags& flags) {
  LoadOptions options;
  options.model = flags.model_name;
  options.allow_operators = flags.allow_operators;
  options.verify_weights = flags.verify_weights;
  return options;
}

/// "dir/mobilenet_v3.pt2" -> "MobilenetV3": the name of the class in generated code.
std::string class_name_of(const std::string& path) {
  std::string name;
  bool upper = true;
  for (const char c : std::filesystem::path(path).stem().string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0 || byte > 127) {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(byte)) : c;
    upper = false;
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "Model" + name
                                                                                : name;
}

/// A graph in the .fx text form. It has no weights: get_attr nodes and submodules refer to nothing.
std::shared_ptr<GraphModule> load_text(const std::string& path) {
  const auto file = io::MappedFile::open(path, io::FileAccess::kCopy);
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  try {
    const std::shared_ptr<Graph> graph = parse_text(text);
    graph->lint({.strict = true});
    return std::make_shared<GraphModule>(graph, "Graph");
  } catch (const ParseError& error) {
    throw ParseError(error.code(), path + ": " + error.text(), error.line(), error.column());
  } catch (const LintError& error) {
    throw LintError(error.code(), path + ": " + error.text());
  }
}

io::ArchiveSummary inspect_text(const std::string& path) {
  const Model model = load_model(path);
  io::ProgramSummary program;
  for (const ModelInput& input : model.inputs) program.inputs.push_back({input.name, input.type});
  for (const ModelOutput& output : model.outputs)
    program.outputs.push_back({output.name, output.type});
  program.num_nodes = model.module->graph().size();
  program.operators = graph_statistics(model.module->graph()).calls;
  io::ArchiveSummary summary;
  summary.path = path;
  summary.file_bytes = io::MappedFile::open(path)->size();
  summary.programs.push_back(std::move(program));
  return summary;
}
}  // namespace

namespace {
std::vector<std::string> program_names(const std::string& path) {
  std::vector<std::string> names;
  try {
    for (const io::ProgramSummary& program : io::inspect(path).programs)
      names.push_back(program.name);
  } catch (const Error&) {
    // What is wrong with the file has been said.
  }
  return names;
}

/// Does what `read` does; when the file has no program of that name, or several and none is named,
/// the error is about the option that names one.
/// @throws UsageError, and what `read` throws
template <typename F>
auto with_program(const std::string& path, const std::string& wanted, F&& read) {
  try {
    return read();
  } catch (const ImportError& error) {
    if (error.code() != ErrorCode::kMissingRecord) throw;
    const std::vector<std::string> names = program_names(path);
    if (wanted.empty() && names.size() > 1)
      throw UsageError(ErrorCode::kBadOption, "'" + path + "' holds " +
                                                  counted(names.size(), "program") +
                                                  ": choose one with --model " + any_of(names));
    if (!wanted.empty() && !names.empty() && std::ranges::find(names, wanted) == names.end())
      throw UsageError(ErrorCode::kBadOption, "--model: '" + path + "' has no program '" + wanted +
                                                  "'" + did_you_mean(wanted, names) + ". It has " +
                                                  any_of(names));
    throw;
  }
}
}  // namespace

bool is_text_graph(const std::string& path) { return path.ends_with(".fx"); }

Model load_model(const std::string& path, const LoadFlags& flags) {
  Model model;
  model.path = path;
  model.module = is_text_graph(path) ? load_text(path) : with_program(path, flags.model_name, [&] {
    return load(path, load_options(flags));
  });
  model.module->set_class_name(class_name_of(path));
  model.refresh();
  if (const auto* ranges = model.module->meta().get<io::RangeConstraints>("range_constraints"))
    model.symbols = *ranges;
  return model;
}

io::ArchiveSummary inspect_model(const std::string& path, const LoadFlags& flags) {
  if (is_text_graph(path)) return inspect_text(path);
  return with_program(path, flags.model_name,
                      [&] { return io::inspect(path, load_options(flags)); });
}

std::string range_text(const std::string& symbol, std::optional<std::int64_t> min,
                       std::optional<std::int64_t> max) {
  if (min && max) return std::to_string(*min) + " <= " + symbol + " <= " + std::to_string(*max);
  if (min) return symbol + " >= " + std::to_string(*min);
  if (max) return symbol + " <= " + std::to_string(*max);
  return {};
}

std::vector<std::string> symbols_of(const io::ValueMeta& meta) {
  std::vector<std::string> symbols;
  auto add = [&symbols](const io::SymDim& dim) {
    if (!dim.expr) return;
    for (const std::string& symbol : dim.expr->symbols())
      if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(symbol);
  };
  for (const io::SymDim& dim : meta.sizes) add(dim);
  add(meta.number);
  return symbols;
}

Json signature_json(const std::string& name, const io::ValueMetaPtr& meta,
                    const std::string& type) {
  Json json;
  json["name"] = name;
  if (meta && meta->kind == io::ValueMeta::Kind::kTensor) {
    json["dtype"] = short_dtype_name(meta->dtype);
    Json shape = Json::array();
    for (const io::SymDim& dim : meta->sizes) {
      if (dim.is_known())
        shape.push_back(dim.value);
      else
        shape.push_back(dim.str());
    }
    json["shape"] = std::move(shape);
  } else if (type.starts_with("= ")) {
    json["constant"] = type.substr(2);
  }
  json["type"] = type;
  return json;
}

}  // namespace fx::cli
