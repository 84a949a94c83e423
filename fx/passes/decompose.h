#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/interpret/interpreter.h"

namespace fx {

/// What an operator does, in terms of others: gets the values of the call as it stands in the
/// graph, where arguments that have their default may be missing.
using Decomposition = std::function<Value(Values args, KwValues kwargs)>;
/// Decompositions by the full name of the operator ("aten::silu", "aten::addmm").
using DecompositionTable = std::map<std::string, Decomposition, std::less<>>;
/// Whether a node is to be decomposed; null: every one that the table has.
using DecomposeFilter = std::function<bool(const Node&)>;

/// An Interpreter that runs the decomposition in the place of each call of a function that the
/// table has (torch.fx.experimental.proxy_tensor.DecompositionInterpreter).
class DecompositionInterpreter : public Interpreter {
 public:
  DecompositionInterpreter(GraphModule& module, DecompositionTable table,
                           DecomposeFilter filter = {})
      : Interpreter(module), table_(std::move(table)), filter_(std::move(filter)) {}

  Value call_function(const Target& target, Values args, KwValues kwargs) override;

 private:
  DecompositionTable table_;
  DecomposeFilter filter_;
};

struct DecomposeOptions {
  DecomposeFilter should_decompose = {};
  /// What a decomposition calls may be in the table itself; the search ends after so many rounds.
  int max_rounds = 10;
};

/// The module as operators of the dispatcher, with those of the table replaced by what their
/// decompositions call, until none is left: make_fx with a decomposition_table, selective_decompose
/// with a filter, which sees the nodes of the first capture (then there is one round only).
/// Parameters and buffers keep their names and are shared with the module; what make_fx takes for
/// granted, this does.
/// @throws PassError kPassNotStable when max_rounds are not enough; TraceError as make_fx.
std::shared_ptr<GraphModule> decompose(GraphModule& module, const DecompositionTable& table,
                                       const std::vector<at::Tensor>& example_inputs,
                                       const DecomposeOptions& options = {});

}  // namespace fx
