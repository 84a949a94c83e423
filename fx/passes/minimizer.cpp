#include "fx/passes/minimizer.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "fx/analysis/effect_order.h"
#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"
#include "fx/passes/isolation.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/split_by_tags.h"

namespace fx {
namespace {

constexpr std::pair<std::string_view, TraverseMethod> kMethods[] = {
    {"sequential", TraverseMethod::kSequential}, {"binary", TraverseMethod::kBinary},
    {"accumulate", TraverseMethod::kAccumulate}, {"skip", TraverseMethod::kSkip},
    {"defined", TraverseMethod::kDefined},       {"block", TraverseMethod::kBlock}};

// Tags of the split.
constexpr std::string_view kBefore = "main_0", kPart = "minimize", kBehind = "main_1";

std::string names_of(const std::vector<Node*>& nodes) {
  std::string out;
  for (const Node* node : nodes) out += (out.empty() ? "" : ", ") + std::string(node->name());
  return out;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

void sort_by_place(std::vector<Node*>& nodes) {
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->comes_before(*b); });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

}  // namespace

TraverseMethod traverse_method(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [text, method] : kMethods) {
    if (text == name) return method;
    known.emplace_back(text);
  }
  throw PassError(ErrorCode::kBadPassOption,
                  "Unknown traverse method " + std::string(name) + "! There are " + joined(known));
}

Value run_part(GraphModule& part, const Values& inputs) { return Interpreter(part).run(inputs); }

// The model with the part as a submodule of its own.
struct Minimizer::Part {
  std::shared_ptr<GraphModule> split;
  std::shared_ptr<GraphModule> module;
  const Node* call = nullptr;  // of the part, in `split`
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;

  // What running it gives, in the midst of the model.
  Value run(GraphModule& original, const Values& sample_inputs, const RunPart& way,
            const std::function<void(Values& inputs)>& edit_inputs, Values& inputs_seen) const {
    Values inputs = sample_inputs;
    // Of the original, which owns the very tensors that the parts use.
    const Isolation isolation(original, inputs);
    Interpreter interpreter(*split);
    interpreter.start(std::move(inputs), {.enable_io_processing = false});
    while (interpreter.next_node() && interpreter.next_node() != call) interpreter.step();
    FX_ASSERT(interpreter.next_node() == call, "the part is called");
    Values args = interpreter.fetch_args_kwargs_from_env(*interpreter.next_node()).args;
    edit_inputs(args);
    inputs_seen.clear();
    for (const Value& arg : args) inputs_seen.push_back(clone_tensors(arg));
    return clone_tensors(way(*module, args));
  }
};

Minimizer::Minimizer(GraphModule& module, Values sample_inputs, RunPart run_a, RunPart run_b,
                     MinimizerOptions options)
    : module_(module),
      sample_inputs_(std::move(sample_inputs)),
      run_a_(std::move(run_a)),
      run_b_(std::move(run_b)),
      options_(std::move(options)) {
  const std::size_t placeholders = module.graph().placeholders().size();
  if (placeholders != sample_inputs_.size())
    throw PassError(ErrorCode::kBadPassOption, "Placeholder count (" +
                                                   std::to_string(placeholders) +
                                                   ") does not match sample_input count (" +
                                                   std::to_string(sample_inputs_.size()) + ")");
  {
    Values inputs = sample_inputs_;
    const Isolation isolation(module, inputs);
    ShapeProp(module).run(std::move(inputs), {.enable_io_processing = false});
  }
  std::vector<bool> callable(module.graph().id_bound());
  for (const Node& node : module.graph().nodes()) callable[node.id()] = is_callable(node);
  fusions_ = find_fusions(module.graph(), callable);
}

std::vector<Node*> Minimizer::collect(std::string_view start, std::string_view end) const {
  for (const std::string_view name : {start, end}) {
    if (name.empty()) continue;
    const Node* node = module_.graph().find_node(name);
    if (!node || !is_callable(*node))
      throw PassError(ErrorCode::kBadExtract,
                      "the graph has no call of the name " + str_repr(name));
  }
  std::vector<Node*> nodes;
  bool inside = start.empty();
  for (Node& node : module_.graph().nodes()) {
    inside = inside || node.name() == start;
    if (inside && is_callable(node)) nodes.push_back(&node);
    if (!end.empty() && node.name() == end) break;
  }
  return nodes;
}

std::vector<Node*> Minimizer::with_fusions(const std::vector<Node*>& nodes) const {
  std::vector<Node*> out = nodes;
  for (const Node* node : nodes)
    if (const auto* group = fusions_.find(*node))
      out.insert(out.end(), group->begin(), group->end());
  sort_by_place(out);
  return out;
}

std::vector<Node*> Minimizer::allowed(std::vector<Node*> nodes) const {
  if (options_.exclude)
    std::erase_if(nodes, [this](const Node* node) { return options_.exclude(*node); });
  return nodes;
}

Minimizer::Part Minimizer::build(const std::vector<Node*>& nodes,
                                 const std::vector<Node*>& outputs) const {
  const Graph& graph = module_.graph();
  const EffectOrder effects(graph);
  enum Place : std::uint8_t { kNowhere, kIsBefore, kIsPart, kIsBehind };
  std::vector<Place> place(graph.id_bound(), kNowhere);
  for (const Node* node : nodes) place[node->id()] = kIsPart;
  for (Node& node : graph.nodes()) {
    if (!is_callable(node)) continue;
    bool is_behind = false, follows_what_is_behind = false;
    auto look = [&](const Node& earlier) {
      is_behind |= place[earlier.id()] >= kIsPart;
      follows_what_is_behind |= place[earlier.id()] == kIsBehind;
    };
    for (const Node* input : node.all_input_nodes()) look(*input);
    for (const Node* earlier : effects.before(node)) look(*earlier);
    if (place[node.id()] != kIsPart)
      place[node.id()] = is_behind ? kIsBehind : kIsBefore;
    else if (follows_what_is_behind)
      throw PassError(ErrorCode::kBadPartition,
                      "cannot run " + names_of(nodes) + " as one part: " + str_repr(node.name()) +
                          " depends on nodes in between that are not among them");
  }

  // On a copy, so that the tags of the model stay what they are, with the part's outputs returned.
  ValueMap copies;
  GraphModule marked(module_, graph.clone(&copies), module_.class_name());
  for (const Node& node : graph.nodes()) {
    if (!is_callable(node)) continue;
    const Place at = place[node.id()];
    set_tag(copies.at(&node).node(), at == kIsPart ? kPart : at == kIsBehind ? kBehind : kBefore);
  }
  std::vector<Argument> results;
  Node& result = marked.graph().output_node();
  if (outputs.empty()) {
    // Whatever is read behind the part, or else its last node, so that something is compared.
    bool is_used = false;
    for (const Node* node : nodes)
      for (const Node* user : node->users()) is_used |= place[user->id()] != kIsPart;
    if (!is_used) results.push_back(copies.at(nodes.back()));
  } else {
    for (Node* node : outputs) results.push_back(copies.at(node));
  }
  results.push_back(result.arg(0));
  result.set_args({Argument::tuple(std::move(results))});

  Part part;
  part.split =
      split_by_tags(marked, {std::string(kBefore), std::string(kPart), std::string(kBehind)});
  part.module =
      std::dynamic_pointer_cast<GraphModule>(part.split->find_submodule(std::string(kPart)));
  part.call = part.split->graph().find_nodes(Opcode::kCallModule, Target::string(kPart)).at(0);
  for (const Node* placeholder : part.module->graph().placeholders())
    part.inputs.push_back(placeholder->target().str());
  Node& output = part.module->graph().output_node();
  if (!outputs.empty()) {
    std::vector<Argument> wanted;
    for (const Node* node : outputs)
      if (Node* copy = part.module->graph().find_node(node->name())) wanted.emplace_back(*copy);
    output.set_args({wanted.size() == 1 ? wanted[0] : Argument::tuple(std::move(wanted))});
    part.module->recompile();
  }
  output.arg(0).for_each_node([&](const Node& node) { part.outputs.emplace_back(node.name()); });
  return part;
}

PartComparison Minimizer::run_and_compare(const std::vector<Node*>& nodes,
                                          const std::vector<Node*>& outputs) {
  ++iterations_;
  const Part part = build(with_fusions(nodes), outputs);
  PartComparison result;
  result.outputs = part.outputs;
  auto store = [&](const Value& value) {
    if (part.outputs.size() == 1) {
      b_outputs_.insert_or_assign(part.outputs[0], value);
      return;
    }
    const Values items = elements(value);
    for (std::size_t i = 0; i < std::min(items.size(), part.outputs.size()); ++i)
      b_outputs_.insert_or_assign(part.outputs[i], items[i]);
  };
  auto own_inputs = [&](Values& inputs) {
    if (!options_.accumulate_error) return;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (const auto found = b_outputs_.find(part.inputs[i]); found != b_outputs_.end())
        inputs[i] = clone_tensors(found->second);
  };
  Values inputs;
  std::string way = "run_a";
  try {
    const Value expected = part.run(module_, sample_inputs_, run_a_, [](Values&) {}, inputs);
    way = "run_b";
    // The first way may have changed its copy.
    const Value actual = build(with_fusions(nodes), outputs)
                             .run(module_, sample_inputs_, run_b_, own_inputs, inputs);
    store(actual);
    result.reason = options_.compare ? options_.compare(expected, actual)
                                     : compare_values(expected, actual, options_.tolerance);
    if (!result.reason.empty()) result.outcome = PartComparison::Outcome::kDiffers;
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    result.outcome = PartComparison::Outcome::kFails;
    result.reason = "Exception raised when running " + way + ": " + error.what();
  }
  const std::string key = joined(part.outputs);
  results_[key] = result.reason;
  std::string report = "Run and compare " + names_of(nodes) + ": ";
  if (result.outcome == PartComparison::Outcome::kAgrees)
    report += "no discrepancy found.";
  else if (result.outcome == PartComparison::Outcome::kDiffers)
    report += "Result mismatch for " + key + ": " + result.reason;
  else
    report += result.reason;
  reports_.push_back(std::move(report));
  if (result.outcome == PartComparison::Outcome::kDiffers && options_.export_part)
    options_.export_part(part.outputs.empty() ? "part" : part.outputs.back(), *part.module, inputs);
  return result;
}

bool Minimizer::is_wrong(const std::vector<Node*>& nodes, const std::vector<Node*>& outputs) {
  const PartComparison result =
      run_and_compare(nodes, options_.all_outputs ? std::vector<Node*>() : outputs);
  return result.outcome != PartComparison::Outcome::kAgrees;
}

PartComparison Minimizer::run_nodes(std::string_view start, std::string_view end) {
  const std::vector<Node*> nodes = collect(start, end);
  if (nodes.empty()) return {};
  return run_and_compare(nodes, options_.return_intermediate ? nodes : std::vector<Node*>());
}

std::vector<Node*> Minimizer::minimize(std::string_view start, std::string_view end) {
  std::vector<Node*> nodes = collect(start, end);
  std::vector<Node*> culprits;
  switch (options_.method) {
    case TraverseMethod::kSequential:
      culprits = sequential(nodes);
      break;
    case TraverseMethod::kBinary:
      culprits = binary(nodes);
      break;
    case TraverseMethod::kAccumulate:
      culprits = accumulate(nodes);
      break;
    case TraverseMethod::kSkip:
      culprits = skip(nodes);
      break;
    case TraverseMethod::kDefined:
      nodes = allowed(std::move(nodes));
      if (!nodes.empty() && is_wrong(nodes, {nodes.back()})) culprits = nodes;
      break;
    case TraverseMethod::kBlock:
      culprits = block(nodes);
      break;
  }
  sort_by_place(culprits);
  reports_.push_back(culprits.empty() ? "No culprits found."
                                      : "Found culprits: " + names_of(culprits));
  return culprits;
}

std::vector<Node*> Minimizer::sequential(const std::vector<Node*>& nodes) {
  std::vector<Node*> culprits;
  for (Node* node : allowed(nodes)) {
    if (!is_wrong({node}, {node})) continue;
    culprits.push_back(node);
    if (!options_.find_all) break;
  }
  return culprits;
}

std::vector<Node*> Minimizer::binary(const std::vector<Node*>& all) {
  const std::vector<Node*> nodes = allowed(all);
  if (nodes.empty() || !is_wrong(nodes, {nodes.back()})) return {};
  if (nodes.size() == 1) return nodes;
  const auto middle = nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() / 2);
  std::vector<Node*> culprits = binary({nodes.begin(), middle});
  if (!culprits.empty() && !options_.find_all) return culprits;
  const std::vector<Node*> second = binary({middle, nodes.end()});
  culprits.insert(culprits.end(), second.begin(), second.end());
  if (culprits.empty())
    reports_.push_back("Further split and lowering found no errors. Unable to minimize the part " +
                       names_of(nodes));
  return culprits;
}

std::vector<Node*> Minimizer::accumulate(const std::vector<Node*>& nodes) {
  std::vector<Node*> part;
  for (Node* node : allowed(nodes)) {
    part.push_back(node);
    if (is_wrong(part, {node})) return {node};
  }
  return {};
}

std::vector<Node*> Minimizer::skip(const std::vector<Node*>& nodes) {
  std::vector<Node*> left;
  for (const std::string& name : options_.skip) {
    if (std::none_of(nodes.begin(), nodes.end(),
                     [&](const Node* node) { return node->name() == name; }))
      throw PassError(ErrorCode::kBadExtract,
                      "there is no node " + str_repr(name) + " to skip between start and end");
  }
  std::vector<Node*> culprits, stretch;
  auto close = [&] {
    const std::vector<Node*> part = allowed(std::exchange(stretch, {}));
    if (part.empty()) return;
    if (run_and_compare(part).outcome == PartComparison::Outcome::kAgrees) return;
    culprits.insert(culprits.end(), part.begin(), part.end());
  };
  for (Node* node : nodes) {
    if (std::find(options_.skip.begin(), options_.skip.end(), node->name()) != options_.skip.end())
      close();
    else
      stretch.push_back(node);
  }
  close();
  return culprits;
}

// The end is the first node up to which the result is wrong, the beginning the last one from which
// on it still is: two bisections, which assume that longer stretches are not less wrong.
std::vector<Node*> Minimizer::block(const std::vector<Node*>& all) {
  const std::vector<Node*> nodes = allowed(all);
  if (nodes.empty() || !is_wrong(nodes, {nodes.back()})) return {};
  auto wrong_between = [&](std::size_t first, std::size_t last) {
    const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(last) + 1;
    return is_wrong({begin, end}, {nodes[last]});
  };
  std::size_t first = 0, last = nodes.size() - 1;
  if (options_.find_last_node.value_or(true)) {
    std::size_t low = 0;
    while (low < last) {
      const std::size_t middle = low + (last - low) / 2;
      if (wrong_between(0, middle))
        last = middle;
      else
        low = middle + 1;
    }
  }
  if (!options_.find_last_node.value_or(false)) {
    std::size_t high = last;
    while (first < high) {
      const std::size_t middle = first + (high - first + 1) / 2;
      if (wrong_between(middle, last))
        first = middle;
      else
        high = middle - 1;
    }
  }
  return {nodes.begin() + static_cast<std::ptrdiff_t>(first),
          nodes.begin() + static_cast<std::ptrdiff_t>(last) + 1};
}

}  // namespace fx
