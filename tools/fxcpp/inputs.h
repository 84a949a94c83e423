#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fx/ops/value.h"
#include "tools/fxcpp/input_spec.h"
#include "tools/fxcpp/model.h"

/// From the command line to the values that a model is called with.
namespace fx::cli {

/// What -i, --dim and --seed said.
struct InputFlags {
  std::vector<std::string> inputs;
  std::vector<std::string> dims;
  std::uint64_t seed = 0;
};
void add_input_options(Command& command, InputFlags& flags);

/// The value of one input and where it comes from.
struct InputValue {
  std::string name;
  Value value;
  std::string source;  ///< "x.npy", "f32[2]:1,2", "randn, seed 0", "default"
  bool generated = false;
};

/// One value for each placeholder, and the sizes that symbols have.
struct ModelInputs {
  std::vector<InputValue> values;
  Dims dims;

  /// Fresh copies for one run, since a program may write to its inputs.
  Values clone() const;
};

/// Reads and makes all inputs. Symbols get their sizes from --dim, else from the inputs given, else
/// the smallest that their range allows (but not zero). What is missing is generated from the
/// signature: input number i with the seed flags.seed + i. Tells on stderr what it made up.
/// @throws UsageError naming the input, what the model wants and what was found; ImportError for
/// files that cannot be read.
ModelInputs make_inputs(const Model& model, const InputFlags& flags, const Talk& talk);

/// {"name", "dtype", "shape", "source"} of each input.
Json inputs_json(const ModelInputs& inputs);

}  // namespace fx::cli
