#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx::fuzz {

/// Everything that a run leaves behind, as copies.
struct Outcome {
  Value results;
  Values inputs;                              ///< after the run: operators may write to them
  std::map<std::string, at::Tensor> written;  ///< attributes that the run changed, by path
  std::set<std::string> attributes;           ///< paths of all of them
};

enum class Runner : std::uint8_t { kInterpreter, kPlan };

/// How run() runs.
struct HowToRun {
  Runner runner = Runner::kInterpreter;
  /// Seeds LibTorch's generator before the run.
  bool random = false;
  /// Runs twice, and writes to all results but attributes after the first run, as a caller may: the
  /// second run and the other results show whether memory is shared that was not before. Its
  /// results and inputs are those of both runs.
  bool twice = false;
};

/// Runs the graph of `module` on copies of `inputs` that relate to each other as they do. What the
/// run does to attributes is undone.
/// @throws whatever the run throws; the attributes are put back then as well.
Outcome run(GraphModule& module, const Values& inputs, const HowToRun& how = {});

/// Copies of values whose tensors share memory as the originals do.
Values copies_of(const Values& values);

/// Parameters, buffers and constants of a module and of all below it, by path.
std::vector<std::pair<std::string, at::Tensor>> state_of(const GraphModule& module);

/// Whether two tensors have the same dtype, shape and bits, up to the bits of a NaN.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// How exactly two outcomes must agree.
enum class Agreement : std::uint8_t {
  kExact,    ///< bit by bit, but for the bits of NaNs
  kRounding  ///< up to what another order of the same sums changes
};

/// Empty when both agree, else where they do not. Attributes that only the wanted outcome has do
/// not count, as long as what it wrote to can be seen in another one.
std::string difference(const Outcome& wanted, const Outcome& found, Agreement agreement);
std::string difference(const Value& wanted, const Value& found, Agreement agreement);

}  // namespace fx::fuzz
