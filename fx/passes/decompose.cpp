#include "fx/passes/decompose.h"

#include <algorithm>

#include "fx/base/error.h"
#include "fx/capture/boxed.h"
#include "fx/capture/make_fx.h"
#include "fx/capture/program_isolation.h"
#include "fx/ops/call.h"
#include "fx/passes/functionalize.h"

namespace fx {
namespace {

// Captures what an interpreter of `module` does, with the module's parameters and buffers.
std::shared_ptr<GraphModule> capture(GraphModule& module, Interpreter& interpreter,
                                     const std::vector<at::Tensor>& inputs,
                                     MakeFxOptions options = {}) {
  options.class_name = module.class_name();
  for (const Node* input : module.graph().placeholders())
    options.input_names.emplace_back(input->name());
  return record_program(module, inputs, options, [&](std::vector<at::Tensor>& tensors) {
    return to_trace_arg(interpreter.run(Values(tensors.begin(), tensors.end())));
  });
}

bool has_any(const GraphModule& module, const DecompositionTable& table) {
  return std::ranges::any_of(module.graph().nodes(), [&](const Node& node) {
    return node.op() == Opcode::kCallFunction && table.contains(node.target().str());
  });
}

PassError not_stable(std::string_view what, int rounds) {
  return {ErrorCode::kPassNotStable, std::string(what) +
                                         ": operators of the table are left after " +
                                         std::to_string(rounds) + " rounds"};
}

}  // namespace

Value DecompositionInterpreter::call_function(const Target& target, Values args, KwValues kwargs) {
  const auto found = table_.find(target.str());
  if (found == table_.end() || (filter_ && !filter_(*current_node())))
    return Interpreter::call_function(target, std::move(args), std::move(kwargs));
  return found->second(std::move(args), std::move(kwargs));
}

std::shared_ptr<GraphModule> decompose(GraphModule& module, const DecompositionTable& table,
                                       const std::vector<at::Tensor>& example_inputs,
                                       const DecomposeOptions& options) {
  Interpreter plain(module);
  std::shared_ptr<GraphModule> captured = capture(module, plain, example_inputs);
  if (options.should_decompose) {
    DecompositionInterpreter interpreter(*captured, table, options.should_decompose);
    return capture(*captured, interpreter, example_inputs);
  }
  for (int round = 0; has_any(*captured, table); ++round) {
    if (round == options.max_rounds) throw not_stable("decompose", round);
    DecompositionInterpreter interpreter(*captured, table);
    captured = capture(*captured, interpreter, example_inputs);
  }
  return captured;
}

std::shared_ptr<GraphModule> run_decompositions(GraphModule& module,
                                                const std::vector<at::Tensor>& example_inputs,
                                                const RunDecompositionsOptions& options) {
  const DecompositionTable& table = options.table ? *options.table : core_aten_decompositions();
  const at::NoGradGuard no_grad;
  ProgramIsolation isolation(module);
  MakeFxOptions below_autograd;
  below_autograd.pre_dispatch = false;
  below_autograd.dynamic = options.dynamic;
  const auto round = [&](GraphModule& from) {
    DecompositionInterpreter interpreter(from, table);
    auto made = capture(from, interpreter, copies_for_run(example_inputs), below_autograd);
    isolation.restore();
    return made;
  };
  std::shared_ptr<GraphModule> made = round(module);
  for (int rounds = 1;; ++rounds) {
    if (!has_any(*made, table)) {
      const std::vector<at::Tensor> inputs = copies_for_run(example_inputs);
      functionalize(*made, Values(inputs.begin(), inputs.end()));
      // Making writes functional brings operators of its own.
      if (!has_any(*made, table)) return made;
    }
    if (rounds >= options.max_rounds) throw not_stable("run_decompositions", options.max_rounds);
    made = round(*made);
  }
}

}  // namespace fx
