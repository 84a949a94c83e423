#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fx/capture/make_fx.h"
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

/// What torch.export decomposes by default (torch._decomp.core_aten_decompositions): operators that
/// are not in core ATen, in terms of others, by C++ functions for the dispatcher's full names.
/// Those of in-place and out= operators are not there, which functional graphs do not have, nor
/// those of composite operators, which LibTorch itself takes apart. float16 and bfloat16 are
/// computed in float32 where eager does so, and rounded once.
const DecompositionTable& core_aten_decompositions();

struct RunDecompositionsOptions {
  /// Null: core_aten_decompositions().
  const DecompositionTable* table = nullptr;
  /// Sizes that calls of the result may change (make_fx.h), by placeholder.
  DynamicSizes dynamic = {};
  int max_rounds = 10;
};

/// The module as a functional graph below autograd, in which no composite operator and none of the
/// table is left (torch.export.ExportedProgram.run_decompositions): composite operators become what
/// they call, writes become outputs that are copied back at the end (functionalize.h), operators of
/// the table what their decompositions call. Operators of other libraries, and those that core ATen
/// lacks and the table too, stay.
///
/// The module runs on copies of `example_inputs`, which are what the graph holds for, but for
/// `dynamic`; neither they nor parameters, buffers and random generators change. Attributes keep
/// their names and are shared with the module. Results are those of the module up to rounding.
/// @throws PassError kPassNotStable when max_rounds are not enough, and as functionalize does;
///   TraceError as make_fx.
std::shared_ptr<GraphModule> run_decompositions(GraphModule& module,
                                                const std::vector<at::Tensor>& example_inputs,
                                                const RunDecompositionsOptions& options = {});

}  // namespace fx
