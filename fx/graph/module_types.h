#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "fx/base/symbol.h"
#include "fx/ops/call.h"
#include "fx/ops/value.h"

namespace fx {

/// An argument of a module's forward.
struct ModuleParameter {
  std::string name;  ///< empty if not known: by position only
  bool required = true;
};

/// What is known of a module class. torch::nn::Module has no virtual forward, so calling a module
/// through its base class needs this table: all of torch::nn stands in it (graph/module_types.def),
/// own classes join with register_module_type.
struct ModuleType {
  std::string name;        ///< "torch.nn.Linear", as Python and printed graphs call it
  std::string short_name;  ///< "Linear"
  /// Part of torch::nn, thus a leaf of symbolic tracing by default.
  bool is_leaf = false;
  /// Runs forward(args...).
  std::function<Value(torch::nn::Module&, Values, KwValues)> call;
  /// The arguments of forward, if they are known.
  std::optional<std::vector<ModuleParameter>> parameters;
  /// Whether a call of the module as it stands may have effects (batch norm updating its
  /// statistics, dropout in training).
  std::function<bool(const torch::nn::Module&, bool impure_random)> is_impure;
  /// Whether a call writes to its input and returns it (ReLU(inplace)); null: never. is_impure
  /// counts that too.
  std::function<bool(const torch::nn::Module&)> works_in_place;
};

/// The entry for the dynamic type of `module`, or null. Thread safe, O(1).
const ModuleType* find_module_type(const torch::nn::Module& module);

/// Adds or replaces an entry. Thread safe.
void register_module_type(std::type_index type, ModuleType entry);

/// Why a call with `num_args` positional arguments and these keywords does not fit, or empty:
/// "torch.nn.Linear.forward() misses argument 'input': it takes 1 argument (input), found 0".
std::string call_problem(std::string_view type_name, const std::vector<ModuleParameter>& parameters,
                         std::size_t num_args, const std::vector<Symbol>& keywords);

/// Calls a module of any registered type, or a GraphModule.
/// @throws GraphError kUnknownModuleType naming the class.
Value call_module(torch::nn::Module& module, Values args, KwValues kwargs = {});

/// Readable class name: the registered one, else the demangled C++ name.
std::string module_type_name(const torch::nn::Module& module);

}  // namespace fx
