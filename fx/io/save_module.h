#pragma once

#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <utility>

#include "fx/graph/graph_module.h"
#include "fx/io/import_export.h"

namespace fx {

/// How fx::save writes a file.
struct SaveOptions {
  /// Also the metadata of nodes that has a text form, and what an exported program says of values.
  bool node_meta = true;
  /// Wait until the disk has the file. Without it saving is as fast as writing to memory, and the
  /// file is as whole for every program; only a power failure soon after may leave an older file,
  /// or an empty one.
  bool flush = true;
};

/// Writes `module` with all that belongs to it, for fx::load (docs/archive-format.md); a path that
/// ends with ".pt2" is written for Python as well (fx::save_pt2, io/save_pt2.h). Nothing is
/// traced, run or pickled. The file appears whole or not at all; the same module gives the same
/// bytes.
/// @throws ImportError kNotSavable naming path and class of what cannot be written (an own module
///   class that is not registered, a sparse tensor), kWriteFailed; LintError for a broken graph.
///   O(nodes + bytes of all tensors).
void save(const GraphModule& module, const std::string& path, const SaveOptions& options = {});

/// Makes an own module class known to fx::save and fx::load. Thread safe; replaces an entry.
/// @param name unique, outside "torch."; it is what the file says.
/// @param options what `make` needs to know, as text; may be null.
/// @param make a module with the same parameters, buffers and submodules, whose values do not
///   matter. Whoever loads a file lets it choose among registered classes.
/// @throws GraphError kBadName
void register_saved_module(
    std::type_index type, std::string name,
    std::function<std::string(const torch::nn::Module& module)> options,
    std::function<std::shared_ptr<torch::nn::Module>(const std::string& options)> make);

/// For a class without options.
template <typename Module>
void register_saved_module(std::string name) {
  register_saved_module(typeid(Module), std::move(name), nullptr,
                        [](const std::string&) -> std::shared_ptr<torch::nn::Module> {
                          return std::make_shared<Module>();
                        });
}

namespace io {

struct OpenedArchive;

/// What fx::load does with a file of ArchiveKind::kSaved.
std::shared_ptr<GraphModule> load_saved(const OpenedArchive& archive, const LoadOptions& options);
/// What io::inspect does with it: loads the module.
ArchiveSummary inspect_saved(const OpenedArchive& archive, const LoadOptions& options);

/// The entry of an own class; null functions if there is none.
struct RegisteredClass {
  std::string name;
  std::function<std::string(const torch::nn::Module& module)> options;
  std::function<std::shared_ptr<torch::nn::Module>(const std::string& options)> make;
};
RegisteredClass find_registered_class(std::type_index type);
RegisteredClass find_registered_class(const std::string& name);

}  // namespace io
}  // namespace fx
