#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/io/import_export.h"
#include "fx/io/value_meta.h"
#include "tools/fxcpp/command.h"
#include "tools/fxcpp/report.h"

namespace fx::cli {

/// A placeholder of the model.
struct ModelInput {
  std::string name;
  io::ValueMetaPtr meta;     ///< what the file says of it; null if nothing
  bool is_constant = false;  ///< fixed when the program was exported; never generated
  std::string type;          ///< "f32[s77, 1, 8, 8]", "= 0.5" for a constant, "?" if unknown
};

/// A value that the model returns, in flattened order.
struct ModelOutput {
  std::string name;  ///< of the node; unique, fit for a file name
  io::ValueMetaPtr meta;
  std::string type;
};

/// A loaded file, with its signature.
struct Model {
  std::string path;
  std::shared_ptr<GraphModule> module;
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;
  io::RangeConstraints symbols;

  /// Reads inputs and outputs off the graph again, after it was changed.
  void refresh();
  /// "x: f32[s77, 1, 8, 8] with 1 <= s77 <= 4096", for messages.
  std::string signature() const;
};

/// Options of everything that loads a file.
struct LoadFlags {
  std::string model_name;
  std::vector<std::string> allow_operators;
  bool verify_weights = false;
};
void add_load_options(Command& command, std::string& file, LoadFlags& flags);

/// Whether the name is that of a graph in the .fx text form.
bool is_text_graph(const std::string& path);

/// Loads a .pt2, or the graph of a .fx file.
/// @throws ImportError, ParseError
Model load_model(const std::string& path, const LoadFlags& flags = {});
io::ArchiveSummary inspect_model(const std::string& path, const LoadFlags& flags);

/// "1 <= s77 <= 4096", "s0 >= 2"; empty without bounds.
std::string range_text(const std::string& symbol, std::optional<std::int64_t> min,
                       std::optional<std::int64_t> max);

/// The symbols in the sizes of a value, in order of occurrence.
std::vector<std::string> symbols_of(const io::ValueMeta& meta);

/// {"name", "dtype", "shape"} of a value as its file describes it; symbolic sizes are strings.
Json signature_json(const std::string& name, const io::ValueMetaPtr& meta, const std::string& type);

}  // namespace fx::cli
