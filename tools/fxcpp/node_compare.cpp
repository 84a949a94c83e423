#include "tools/fxcpp/node_compare.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_map>

#include "fx/interpret/interpreter.h"
#include "tools/fxcpp/node_pairs.h"

namespace fx::cli {
namespace {

using NamedValues = std::unordered_map<std::string, at::Tensor>;

/// Runs the Interpreter and hands over each node's tensor right after the node.
template <typename F>
void interpret_nodes(GraphModule& module, Values inputs, std::uint64_t seed, const Talk& talk,
                     F&& on_tensor) {
  const at::NoGradGuard no_grad;
  at::manual_seed(seed);
  Interpreter interpreter(module);
  Progress progress(talk, "interpreting", module.graph().size());
  interpreter.register_node_post_hook([&](Node& node, const Value& value) {
    progress.step(node.name());
    if (value.isTensor() && value.toTensor().defined() && !node.is_placeholder())
      on_tensor(node, value.toTensor());
  });
  interpreter.run(std::move(inputs), {.enable_io_processing = false});
}

NamedValues interpreted_values(GraphModule& module, Values inputs, std::uint64_t seed,
                               const Talk& talk) {
  NamedValues values;
  interpret_nodes(module, std::move(inputs), seed, talk,
                  [&values](const Node& node, const at::Tensor& tensor) {
                    values.emplace(node.name(), tensor.clone());
                  });
  return values;
}

NamedValues planned_values(GraphModule& module, const ModelInputs& inputs, std::uint64_t seed,
                           const Talk& talk) {
  // Which nodes are tensors is known for sure only from a run.
  std::unordered_set<std::string> tensors;
  interpret_nodes(*module.deep_copy(), inputs.clone(), seed, talk,
                  [&tensors](const Node& node, const at::Tensor&) {
                    if (!node.is_output()) tensors.emplace(node.name());
                  });
  Graph& graph = module.graph();
  std::vector<std::string> names;
  std::vector<Argument> taps;
  for (Node* node : graph.nodes().to_vector()) {
    if (!tensors.contains(std::string(node->name()))) continue;
    const auto point = graph.inserting_after(*node);
    names.emplace_back(node->name());
    taps.emplace_back(graph.call_function("aten::clone", {*node}));
  }
  graph.output_node().set_args({Argument::tuple(std::move(taps))});
  module.set_specs(std::nullopt, std::nullopt);
  module.recompile();
  const Values values = run_backend(module, Backend::kPlan, inputs.clone(), seed, talk);
  NamedValues named;
  for (std::size_t i = 0; i < names.size(); ++i) named.emplace(names[i], values[i].toTensor());
  return named;
}

/// The innermost line of a Python stack trace: 'model.py:12 in forward: return x + 1'.
std::string origin_of(const Node& node) {
  const std::string trace = node.stack_trace();
  const std::size_t file = trace.rfind("File \"");
  if (file == std::string::npos) return {};
  std::string line = trace.substr(file + 6);
  while (line.ends_with('\n') || line.ends_with(' ')) line.pop_back();
  const std::size_t quote = line.find("\", line ");
  const std::size_t end = line.find('\n');
  if (quote == std::string::npos) return {};
  std::string out = line.substr(0, quote) + ":" + line.substr(quote + 8, end - quote - 8);
  if (const std::size_t comma = out.rfind(", in "); comma != std::string::npos)
    out.replace(comma, 5, " in ");
  if (end != std::string::npos) {
    const std::size_t code = line.find_first_not_of(" \n", end);
    if (code != std::string::npos) out += ": " + line.substr(code, line.find('\n', code) - code);
  }
  return out;
}

}  // namespace

std::vector<NodeComparison> compare_nodes(const GraphModule& subject, const GraphModule& reference,
                                          Backend backend, const ModelInputs& inputs,
                                          std::uint64_t seed, const ToleranceFlags& tolerance,
                                          const Talk& talk) {
  const std::shared_ptr<GraphModule> tested = subject.deep_copy();
  const NamedValues actual = backend == Backend::kInterpret
                                 ? interpreted_values(*tested, inputs.clone(), seed, talk)
                                 : planned_values(*tested, inputs, seed, talk);
  const NamedValues expected =
      interpreted_values(*reference.deep_copy(), inputs.clone(), seed, talk);
  std::vector<NodeComparison> result;
  for (const NodePair& pair : pair_nodes(subject, reference)) {
    const auto mine = actual.find(std::string(pair.subject->name()));
    const auto theirs = expected.find(std::string(pair.reference->name()));
    if (mine == actual.end() || theirs == expected.end()) continue;
    result.push_back({pair.subject, std::string(pair.reference->name()), pair.same_computation,
                      origin_of(*pair.reference),
                      compare(mine->second, theirs->second, tolerance)});
  }
  return result;
}

std::unordered_set<const Node*> feeding(const Graph& graph, const std::vector<const Node*>& nodes) {
  std::unordered_set<const Node*> found;
  std::vector<const Node*> pending = nodes;
  while (!pending.empty()) {
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      if (!found.insert(node).second) continue;
      for (const Node* input : node->all_input_nodes()) pending.push_back(input);
    }
    for (const Node& node : graph.nodes()) {
      if (node.is_placeholder() || node.is_output() || found.contains(&node)) continue;
      const std::vector<Node*> inputs = node.all_input_nodes();
      const bool touches = std::ranges::any_of(
          inputs, [&found](const Node* input) { return found.contains(input); });
      if (touches && node.is_impure(/*impure_random=*/false)) pending.push_back(&node);
    }
  }
  return found;
}

}  // namespace fx::cli
