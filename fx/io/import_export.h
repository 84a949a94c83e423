#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/io/mapped_file.h"

namespace fx {

/// How fx::load reads a file.
struct LoadOptions {
  /// Which program of an archive that holds several; empty: the only one.
  std::string model;
  /// Map the file (fast, weights are not copied) or read it whole (safe if it may change
  /// meanwhile).
  io::FileAccess access = io::FileAccess::kMap;
  /// Compare weights with their checksums; JSON records always are.
  bool verify_weights = false;
  /// Largest JSON record that is read, in bytes.
  std::uint64_t max_json_bytes = std::uint64_t{256} << 20;
  /// Operators that are let through although nothing is known of what they do ("mylib::op",
  /// "mylib::*").
  std::vector<std::string> allow_operators;
};

/// Loads a program that Python saved with torch.export.save (torch 2.9 to 2.15), or the module that
/// fx::save wrote (io/save_module.h), which comes back as it was. What follows is of the former.
///
/// Nothing of the file is executed or unpickled, and no other file is touched. The program is
/// checked whole before anything of it can run: structure, names, arguments against the operators'
/// schemas, weights against their records. Weights lie in the mapped file, which stays mapped for
/// as long as a tensor of it lives; writing to them changes this process's memory only.
///
/// The graph has the user's inputs as placeholders (in flattened order), get_attr nodes for
/// parameters and buffers under Python's names, and call_function nodes of operators
/// ("aten::relu"); the module takes and returns the structures that the Python module did.
/// node.meta(): "val" (io::ValueMetaPtr), "stack_trace", "nn_module_stack". module.meta():
/// "torch_version" (std::string), "range_constraints" (io::RangeConstraints), "warnings"
/// (std::vector<std::string>). The module is in eval mode: passes may fold weights; train() forbids
/// it.
///
/// @throws ImportError, with everything that is not supported listed at once. O(file's JSON +
///   nodes).
std::shared_ptr<GraphModule> load(const std::string& path, const LoadOptions& options = {});

namespace io {

/// Bounds of the symbols in an exported program, by name; an absent bound is unlimited.
using RangeConstraints = std::vector<
    std::pair<std::string, std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>>>>;

/// What `inspect` tells of one program.
struct ProgramSummary {
  struct Value {
    std::string name;
    std::string type;  ///< "f32[s77, 1, 8, 8]", "Sym(s0)", or the value of a constant input
  };
  std::string name;           ///< "model"
  std::string torch_version;  ///< that wrote it
  std::string schema_version;
  std::string in_spec;  ///< "((*,), {})"
  std::string out_spec;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  RangeConstraints symbols;
  std::vector<std::string> mutated;  ///< buffers, parameters and inputs that a call changes
  std::size_t num_nodes = 0;
  /// Calls of each operator, most frequent first.
  std::vector<std::pair<std::string, std::size_t>> operators;
  std::size_t num_parameters = 0;  ///< tensors
  std::size_t num_buffers = 0;
  std::size_t num_constants = 0;
  std::uint64_t parameter_elements = 0;
  std::uint64_t weight_bytes = 0;  ///< of weights and constants, each record once
  std::vector<std::string> warnings;
};

/// What a .pt2 file holds: reads its JSON, but no weights, and builds no graph. Of a file that
/// fx::save wrote, what the module in it is; its name is that of its class.
struct ArchiveSummary {
  std::string path;
  std::uint64_t file_bytes = 0;
  std::size_t num_records = 0;
  bool has_aoti_code = false;
  bool is_saved = false;  ///< fx::save wrote it
  std::vector<ProgramSummary> programs;
};

/// @throws ImportError as fx::load does for files that are no sound archive. O(file's JSON).
ArchiveSummary inspect(const std::string& path, const LoadOptions& options = {});

}  // namespace io
}  // namespace fx
