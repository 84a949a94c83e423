#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/graph.h"
#include "fx/ops/value.h"

namespace fx {

class GraphModule;

/// What a graph wants from its caller: its placeholders, in order.
struct InputSignature {
  struct Parameter {
    std::string target;  ///< as in the placeholder: "x", "*args", "**kwargs"
    std::string name;    ///< of the node, which keywords may use as well
    bool has_default = false;
    Value default_value;
    const Node* node = nullptr;
  };
  std::vector<Parameter> parameters;
  std::vector<std::string> targets;   ///< of the parameters
  bool takes_any_positional = false;  ///< has "*args"
  bool takes_any_keyword = false;     ///< has "**kwargs"

  InputSignature() = default;
  explicit InputSignature(const Graph& graph);
};

/// The inputs of one run, handed out to placeholders in order, as Python binds a call: positional
/// inputs from the left, then keywords, then defaults; "*args" takes the remaining positional
/// inputs as a list, "**kwargs" the remaining keywords as a dict.
class BoundInputs {
 public:
  BoundInputs() = default;
  /// Checks arity and keywords; a missing input shows when it is taken. `skipped` placeholders
  /// (null: none) have a value already and take no input. O(placeholders * keywords).
  /// @param strict false ignores extra positional inputs, as torch.fx's Interpreter does.
  /// @throws RunError kExtraInput and kUnknownInput naming the placeholders; nothing is consumed
  /// then.
  BoundInputs(const InputSignature& signature, Values&& args, KwValues&& kwargs, bool strict = true,
              const std::function<bool(const Node&)>& skipped = {});

  /// The input for parameter `target`; each is moved out once. O(keywords).
  /// @throws RunError kMissingInput "Expected positional argument for parameter x, but one was not
  ///   passed in!" when there is neither an input nor a default.
  Value take(std::string_view target, const Value* default_value);

 private:
  Values args_;
  std::size_t next_ = 0;
  KwValues kwargs_;
};

/// The flat inputs of a graph whose module has an in_spec, from structured ones: the spec is a pair
/// of (args tuple, kwargs dict). Without in_spec both stay as they are. Checks the module's input
/// guards, and that what it writes late shares no memory.
/// @throws RunError kWrongType naming the part that does not fit; kShapeMismatch; kSharedMemory.
/// @param signature of the graph that is going to run.
void flatten_inputs(const GraphModule& module, const InputSignature& signature, Values& args,
                    KwValues& kwargs);

/// The result in the structure of the module's out_spec, if it has one.
Value unflatten_output(const GraphModule& module, Value output);

}  // namespace fx
