#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fx/capture/call_stack.h"
#include "fx/capture/make_fx.h"
#include "fx/graph/graph_module.h"

namespace fx {

/// Sizes of the tensors that nodes gave, when they gave them.
using NodeSizes = std::unordered_map<const Node*, std::vector<std::int64_t>>;
using NodeStacks = std::unordered_map<const Node*, CallStack>;

/// How a run of a program is made to differ from an ordinary one, in the numbers of items that
/// depend on values (value_sizes.h).
enum class ValueSizes : std::uint8_t { kAsTheyAre, kOneMore, kMany, kTwo, kOne, kNone };

/// What a recording keeps besides the graph.
struct RecordingDetail {
  bool sizes = false;
  bool stacks = false;  ///< of nodes; assumptions have theirs always
  ValueSizes value_sizes = ValueSizes::kAsTheyAre;
};

/// A value whose sizes depend on values, in these dimensions, and what they were.
struct ValueSized {
  Node* node;
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes;  // dimension, size
  CallStack where;
};

/// What one run of a program gave.
struct Recording {
  std::shared_ptr<Graph> graph;
  GraphModule::Constants constants;
  Assumptions assumptions;
  std::vector<InputGuard> guards;
  NodeSizes sizes;
  NodeStacks stacks;
  std::vector<ValueSized> value_sizes;
  std::set<std::string> called_modules;  ///< paths of those that were called in a ModuleScope
  bool has_checks = false;               ///< of values that the program read
  bool effects_before_checks = false;    ///< inputs, attributes or random generators change first
};

/// A program that takes tensors, in the attribute space of a module.
struct Program {
  const torch::nn::Module& root;
  std::vector<std::string> input_names;  ///< one for each input
  const MakeFxOptions& options;
  const std::function<TraceArg(std::vector<at::Tensor>&)>& run;
};

/// Runs the program once and records it.
/// @throws TraceError kBadArgument, kConcreteValue (strict), and what the program throws.
Recording record(const Program& program, std::vector<at::Tensor> inputs, RecordingDetail detail);

}  // namespace fx
