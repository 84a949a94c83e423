#include "fx/passes/splitter.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>

#include "fx/analysis/effect_order.h"
#include "fx/base/error.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"
#include "fx/passes/isolation.h"
#include "fx/passes/shape_prop.h"

namespace fx {
namespace {

class AccFinder {
 public:
  AccFinder(const GraphModule& module, AccNodes& out) : graph_(module.graph()), out_(out) {
    out.is_acc.resize(graph_.id_bound());
  }

  void start(const GraphModule& module, const OperatorSupport& support) {
    for (const Node& node : graph_.nodes()) {
      if (!is_callable(node))
        out_.tracker.add(node, "init_cpu|not_callable");
      else if (!support(module, node))
        out_.tracker.add(node, "init_cpu|operator_support");
      else
        accept(node);
    }
  }

  // Users of what is no tensor and comes from the CPU run there as well.
  void reduce_by_inputs() {
    std::deque<const Node*> worklist;
    for (const Node& node : graph_.nodes()) {
      if (!is_callable(node) || is_acc(node) || is_node_output_tensor(node)) continue;
      out_.tracker.add(node, "new_cpu_node|callable_non_tensor_input");
      worklist.push_back(&node);
    }
    follow(std::move(worklist));
  }

  // So do nodes that give what is no tensor to the CPU.
  void reduce_by_outputs() {
    while (true) {
      std::deque<const Node*> worklist;
      for (const Node& node : graph_.nodes()) {
        if (!is_acc(node) || is_node_output_tensor(node)) continue;
        for (const Node* user : node.users()) {
          if (is_acc(*user)) continue;
          out_.tracker.add(node, "acc_del|non_tensor_output_with_cpu_user", user);
          worklist.push_back(&node);
          break;
        }
      }
      if (worklist.empty()) return;
      for (const Node* node : worklist) out_.is_acc[node->id()] = false;
      follow(std::move(worklist));
    }
  }

 private:
  bool is_acc(const Node& node) const { return out_.is_acc[node.id()]; }

  void accept(const Node& node) {
    out_.is_acc[node.id()] = true;
    out_.tracker.add(node, "init_acc|callable_and_operator_supported");
  }

  void follow(std::deque<const Node*> worklist) {
    for (; !worklist.empty(); worklist.pop_front())
      for (const Node* user : worklist.front()->users()) {
        if (!is_acc(*user)) continue;
        out_.is_acc[user->id()] = false;
        out_.tracker.add(*user, "acc_del|user_of_new_cpu_node", worklist.front());
        if (is_node_output_tensor(*user)) continue;
        out_.tracker.add(*user, "new_cpu_node|non_tensor_output");
        worklist.push_back(user);
      }
  }

  const Graph& graph_;
  AccNodes& out_;
};

class InputRecorder : public Interpreter {
 public:
  InputRecorder(GraphModule& module, const std::vector<std::string>& paths)
      : Interpreter(module), paths_(paths.begin(), paths.end()) {}

  Value call_module(std::string_view target, Values args, KwValues kwargs) override {
    if (paths_.contains(target)) {
      Values& seen = inputs[std::string(target)];
      seen.clear();
      for (const Value& arg : args) seen.push_back(clone_tensors(arg));
    }
    return Interpreter::call_module(target, std::move(args), std::move(kwargs));
  }

  std::map<std::string, Values> inputs;

 private:
  std::set<std::string, std::less<>> paths_;
};

std::string dtype_text(const Argument& argument) {
  const Node* node = argument.node_or_null();
  const TensorMeta* meta = node ? tensor_meta(*node) : nullptr;
  return meta ? dtype_repr(meta->dtype) : "None";
}

// The dtypes of a call's arguments: "((torch.float32, None), {})".
std::string signature_of(const Node& node) {
  std::string out = "((", keywords;
  for (std::size_t i = 0; i < node.num_args(); ++i)
    out += (i ? ", " : "") + dtype_text(node.args()[i]);
  for (const KwArg& kwarg : node.kwargs())
    if (kwarg.value.is_node())
      keywords += (keywords.empty() ? "" : ", ") + kwarg.key.str() + ": " + dtype_text(kwarg.value);
  return out + (node.num_args() == 1 ? ",), {" : "), {") + keywords + "})";
}

std::string count_text(const std::vector<Subgraph>& subgraphs) {
  const auto acc = std::count_if(subgraphs.begin(), subgraphs.end(),
                                 [](const Subgraph& subgraph) { return subgraph.is_acc; });
  return "total " + std::to_string(subgraphs.size()) +
         " subgraphs are created: " + std::to_string(acc) + " acc subgraphs and " +
         std::to_string(static_cast<std::ptrdiff_t>(subgraphs.size()) - acc) + " cpu subgraphs.\n";
}

}  // namespace

std::string NodeEvent::str() const {
  return std::string(source->name()) + ": " + description + " " +
         (cause ? std::string(cause->name()) : "#");
}

std::vector<std::string> NodeEventTracker::of(const Node& node) const {
  std::vector<std::string> out;
  for (const NodeEvent& event : events_)
    if (event.source == &node) out.push_back(event.description);
  return out;
}

std::map<std::string, std::vector<std::string>> NodeEventTracker::to_map() const {
  std::map<std::string, std::vector<std::string>> out;
  for (const NodeEvent& event : events_)
    out[std::string(event.source->name())].push_back(event.str());
  return out;
}

std::string NodeEventTracker::text_of(const Node& node, bool recursive) const {
  std::string out;
  // A cause is told once: events may refer to each other.
  std::set<const Node*> told;
  auto tell = [&](const Node& about, const std::string& indent, auto&& self) -> void {
    if (!told.insert(&about).second) return;
    for (const NodeEvent& event : events_) {
      if (event.source != &about) continue;
      out += indent + event.str() + "\n";
      if (recursive && event.cause) self(*event.cause, "| " + indent, self);
    }
  };
  tell(node, "", tell);
  return out;
}

AccNodes find_acc_nodes(const GraphModule& module, const OperatorSupport& support,
                        bool allow_non_tensor) {
  AccNodes out;
  AccFinder finder(module, out);
  finder.start(module, support);
  if (!allow_non_tensor) {
    finder.reduce_by_inputs();
    finder.reduce_by_outputs();
  }
  return out;
}

Splitter::Splitter(GraphModule& module, Values sample_inputs, OperatorSupport support,
                   SplitterOptions options)
    : module_(module),
      sample_inputs_(std::move(sample_inputs)),
      support_(std::move(support)),
      options_(std::move(options)) {
  ShapeProp(module).propagate(sample_inputs_);
  acc_ = find_acc_nodes(module, support_, options_.allow_non_tensor);
  if (!options_.skip_fusion) fusions_ = find_fusions(module.graph(), acc_.is_acc);
}

std::vector<Subgraph> Splitter::put_nodes_into_subgraphs() const {
  const Graph& graph = module_.graph();
  const EffectOrder effects(graph);
  // Units: fusion groups, and all other calls by themselves, in the order of their first nodes.
  std::vector<std::vector<Node*>> units;
  std::vector<std::size_t> unit_of(graph.id_bound(), SIZE_MAX);
  for (Node& node : graph.nodes()) {
    if (!is_callable(node) || unit_of[node.id()] != SIZE_MAX) continue;
    const auto* group = fusions_.find(node);
    units.push_back(group ? *group : std::vector<Node*>{&node});
    for (const Node* member : units.back()) unit_of[member->id()] = units.size() - 1;
  }
  auto for_each_successor = [&](std::size_t unit, auto&& fn) {
    auto visit = [&](const Node& next) {
      const std::size_t other = unit_of[next.id()];
      if (other != SIZE_MAX && other != unit) fn(other);
    };
    for (const Node* node : units[unit]) {
      for (const Node* user : node->users()) visit(*user);
      for (const Node* later : effects.after(*node)) visit(*later);
    }
  };
  std::vector<std::size_t> missing(units.size());
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    for_each_successor(unit, [&](std::size_t next) { ++missing[next]; });

  std::set<std::size_t> ready[2];  // for the CPU and for the accelerator
  auto add = [&](std::size_t unit) { ready[acc_.is_acc[units[unit][0]->id()]].insert(unit); };
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    if (missing[unit] == 0) add(unit);
  bool is_acc = ready[0].empty();
  std::vector<Subgraph> subgraphs;
  while (!ready[0].empty() || !ready[1].empty()) {
    Subgraph& subgraph = subgraphs.emplace_back(Subgraph{.is_acc = is_acc});
    while (!ready[is_acc].empty()) {
      const std::size_t unit = ready[is_acc].extract(ready[is_acc].begin()).value();
      subgraph.nodes.insert(subgraph.nodes.end(), units[unit].begin(), units[unit].end());
      for_each_successor(unit, [&](std::size_t next) {
        if (--missing[next] == 0) add(next);
      });
    }
    is_acc = !is_acc;
  }
  if (subgraphs.empty())
    throw PassError(ErrorCode::kBadPartition, "Couldn't create subgraphs: the graph calls nothing");
  return subgraphs;
}

std::vector<Subgraph> Splitter::remove_small_acc_subgraphs(std::vector<Subgraph> subgraphs) const {
  std::vector<Subgraph> result;
  for (Subgraph& subgraph : subgraphs) {
    if (subgraph.is_acc && subgraph.nodes.size() < options_.min_acc_module_size)
      subgraph.is_acc = false;
    if (!subgraph.is_acc && !result.empty() && !result.back().is_acc)
      result.back().nodes.insert(result.back().nodes.end(), subgraph.nodes.begin(),
                                 subgraph.nodes.end());
    else
      result.push_back(std::move(subgraph));
  }
  return result;
}

std::vector<Subgraph> Splitter::subgraphs() const {
  std::vector<Subgraph> result = put_nodes_into_subgraphs();
  if (options_.move_non_tensor_nodes_on_boundary) move_non_tensor_nodes_on_boundary(result);
  return remove_small_acc_subgraphs(std::move(result));
}

std::shared_ptr<GraphModule> Splitter::split() {
  const std::vector<Subgraph> parts = subgraphs();
  std::vector<std::string> tags;
  std::vector<std::size_t> part_of(module_.graph().id_bound());
  node_submodule_map_.clear();
  for (const Subgraph& part : parts) {
    tags.push_back((part.is_acc ? options_.acc_submodule_name : options_.non_acc_submodule_name) +
                   std::to_string(tags.size()));
    for (const Node* node : part.nodes) {
      part_of[node->id()] = tags.size() - 1;
      node_submodule_map_.emplace(node->name(), tags.back());
    }
  }
  return split_by_tags(module_, tags,
                       [&](const Node& node) { return std::string_view(tags[part_of[node.id()]]); },
                       {.return_tuple = options_.return_tuple});
}

SplitResult Splitter::generate_split_results() {
  SplitResult result;
  result.split_module = split();
  result.non_acc_submodule_prefix = options_.non_acc_submodule_name;
  const auto* names = result.split_module->meta().get<std::vector<std::string>>("partition_names");
  FX_ASSERT(names, "a split module lists its parts");
  if (options_.max_acc_splits > 0 && names->size() > options_.max_acc_splits)
    throw PassError(ErrorCode::kBadPartition,
                    "Cannot fulfill max_acc_splits limit. There are " +
                        std::to_string(names->size()) + " submodules, and at most " +
                        std::to_string(options_.max_acc_splits) +
                        " were wanted: this may split too finely and be slow");
  result.submodule_inputs =
      generate_inputs_for_submodules(*result.split_module, sample_inputs_, *names);
  return result;
}

std::string Splitter::node_support_preview() const {
  std::map<std::string, std::set<std::string>> kinds[2];
  for (const Node& node : module_.graph().nodes())
    if (is_callable(node))
      kinds[support_(module_, node)][get_node_target(module_, node)].insert(signature_of(node));
  std::string out;
  for (const bool is_supported : {true, false}) {
    out += is_supported ? "\nSupported node types in the model:\n"
                        : "\nUnsupported node types in the model:\n";
    for (const auto& [target, signatures] : kinds[is_supported])
      for (const std::string& signature : signatures) out += target + ": " + signature + "\n";
  }
  return out;
}

std::string Splitter::split_preview() {
  std::string out =
      "Before removing small acc subgraphs, " + count_text(put_nodes_into_subgraphs());
  const std::vector<Subgraph> parts = subgraphs();
  out += "After removing small acc subgraphs, " + count_text(parts);
  for (std::size_t i = 0; i < parts.size(); ++i)
    out += (parts[i].is_acc ? options_.acc_submodule_name : options_.non_acc_submodule_name) +
           std::to_string(i) + ": " + std::to_string(parts[i].nodes.size()) + " node(s)\n";
  const SplitResult result = generate_split_results();
  for (const auto& [path, inputs] : result.submodule_inputs) {
    if (!path.starts_with(options_.acc_submodule_name)) continue;
    out += "\nProcessing acc submodule " + path + "\n";
    auto part = std::dynamic_pointer_cast<GraphModule>(result.split_module->find_submodule(path));
    ShapeProp(*part).propagate(inputs);
    std::int64_t bytes[2] = {0, 0};  // in, out
    auto count = [&](const Node& node, bool is_output) {
      const TensorMeta* meta = tensor_meta(node);
      if (meta && is_node_output_tensor(node))
        bytes[is_output] += meta->nbytes();
      else
        out += std::string(is_output ? "Output " : "Input ") + std::string(node.name()) +
               " is not a tensor, this might cause problems during lowering!\n";
    };
    for (const Node* input : part->graph().placeholders()) count(*input, false);
    for (const Node* value : part->graph().output_node().all_input_nodes()) count(*value, true);
    out += "Total input size in bytes is " + std::to_string(bytes[0]) +
           ", total output size in bytes is " + std::to_string(bytes[1]) + "\n";
  }
  return out;
}

std::map<std::string, Values> generate_inputs_for_submodules(
    GraphModule& module, const Values& inputs, const std::vector<std::string>& submodules) {
  Values copies = inputs;
  const Isolation isolation(module, copies);
  InputRecorder recorder(module, submodules);
  recorder.run(std::move(copies));
  return std::move(recorder.inputs);
}

}  // namespace fx
