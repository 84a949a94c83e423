#pragma once

// Internal: the classes of modules that archives hold (docs/archive-format.md).

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/io/json.h"
#include "fx/io/json_writer.h"

namespace fx::io {

/// The parameters and buffers that a file has for a module.
struct StateSize {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;  ///< that the file holds bytes for
};

/// How archives hold a class of torch::nn.
struct SavedClass {
  std::string name;  ///< "torch.nn.Linear"
  /// Writes the options of the constructor as an object.
  void (*write_options)(const torch::nn::Module& module, JsonWriter& json);
  /// A module with those options and with parameters and buffers of a few elements each, to be
  /// given others. @param state what they will get, which bounds what is made.
  /// @throws ImportError, c10::Error for options that the class refuses.
  std::shared_ptr<torch::nn::Module> (*make)(const JsonValue& options, const StateSize& state);
};

/// The entry for the dynamic type of `module`, or for a name; null if there is none.
const SavedClass* find_saved_class(const torch::nn::Module& module);
const SavedClass* find_saved_class(std::string_view name);

/// Named entries of a container.
using SavedChildren = std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>;

/// Whether the module is a Module, Sequential, ModuleList or ModuleDict and no more than that.
bool is_saved_container(const torch::nn::Module& module);
/// Why the module cannot be an entry of a Sequential in a file, or empty. A Sequential knows the
/// classes of its entries.
std::string sequential_problem(const torch::nn::Module& entry);
/// A container of class "torch.nn.Sequential"; null if the name is none of a container. `problem`
/// says what is wrong with the children.
std::shared_ptr<torch::nn::Module> make_saved_container(std::string_view name,
                                                        const SavedChildren& children,
                                                        std::string& problem);

/// Gives `to` the tensors of `from`, which has parameters, buffers and children of the same names;
/// handles that `to` keeps to its tensors stay valid. Why it cannot, or empty.
std::string adopt_tensors(torch::nn::Module& to, const torch::nn::Module& from);

}  // namespace fx::io
