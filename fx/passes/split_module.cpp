#include "fx/passes/split_module.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fx/analysis/effect_order.h"
#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/lazy_recompile.h"
#include "fx/passes/attribute_uses.h"
#include "fx/passes/split_parts.h"

namespace fx {
namespace {

// A list without repetitions.
template <typename T>
class OrderedSet {
 public:
  void insert(T item) {
    if (known_.insert(item).second) items_.push_back(item);
  }
  const std::vector<T>& items() const { return items_; }

 private:
  std::vector<T> items_;
  std::unordered_set<T> known_;
};

struct Part {
  int number = 0;
  std::string name;
  OrderedSet<const Node*> inputs;   // nodes that stand elsewhere
  OrderedSet<const Node*> outputs;  // nodes in it that others use
  OrderedSet<std::size_t> dependents;
  OrderedSet<std::size_t> dependencies;
  std::vector<const Node*> nodes;
  std::shared_ptr<GraphModule> module;
};

bool is_partitioned(const Node& node) {
  return !node.is_placeholder() && !node.is_output() && node.op() != Opcode::kGetAttr;
}

// Whether it switches gradients or autocast for the nodes behind it, whatever partition they are
// in.
bool sets_global_state(const Node& node) {
  return node.calls("torch._C._set_grad_enabled") || node.calls("torch.amp._enter_autocast") ||
         node.calls("torch.amp._exit_autocast") ||
         node.calls("torch.amp.autocast_mode._enter_autocast") ||
         node.calls("torch.amp.autocast_mode._exit_autocast");
}

class Splitter {
 public:
  Splitter(const GraphModule& module, const SplitOptions& options, const PartOptions& parts,
           std::map<std::string, std::string>* qualname_map)
      : module_(module),
        graph_(module.graph()),
        options_(options),
        part_options_(parts),
        qualname_map_(qualname_map),
        part_of_(graph_.id_bound(), kNone) {}

  std::shared_ptr<GraphModule> split(const SplitCallback& callback) {
    assign(callback);
    record_uses();
    const std::vector<std::size_t> order = sorted();
    for (Part& part : parts_) make_submodule(part);
    return make_base(order);
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  void assign(const SplitCallback& callback) {
    std::unordered_map<int, std::size_t> index;
    for (const Node& node : graph_.nodes()) {
      if (!is_partitioned(node)) continue;
      if (sets_global_state(node))
        throw PassError(ErrorCode::kBadPartition,
                        "split_module: node " + str_repr(node.name()) +
                            " changes gradient or autocast mode for nodes of other partitions");
      const int number = callback(node);
      const auto [found, is_new] = index.emplace(number, parts_.size());
      if (is_new) {
        parts_.emplace_back();
        parts_.back().number = number;
        parts_.back().name = name_of(number);
      }
      part_of_[node.id()] = found->second;
      parts_[found->second].nodes.push_back(&node);
    }
  }

  std::string name_of(int number) const {
    if (part_options_.name) return part_options_.name(number);
    return "submod_" + (options_.partition_affix.empty() ? "" : options_.partition_affix + "_") +
           std::to_string(number);
  }

  void depends(std::size_t user, std::size_t producer) {
    if (user == producer || user == kNone || producer == kNone) return;
    parts_[producer].dependents.insert(user);
    parts_[user].dependencies.insert(producer);
  }

  void record_uses() {
    const EffectOrder effects(graph_);
    for (const Node& node : graph_.nodes()) {
      const std::size_t user = part_of_[node.id()];
      for (const Node* input : node.all_input_nodes()) {
        const std::size_t producer = part_of_[input->id()];
        if (user == producer) continue;
        if (producer != kNone) parts_[producer].outputs.insert(input);
        if (user != kNone) parts_[user].inputs.insert(input);
        depends(user, producer);
      }
      for (const Node* earlier : effects.before(node)) depends(user, part_of_[earlier->id()]);
    }
  }

  // The order of calls, as torch.fx finds it: of the partitions that are ready the latest.
  std::vector<std::size_t> sorted() const {
    std::vector<std::size_t> waits_for, ready, order;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      waits_for.push_back(parts_[i].dependencies.items().size());
      if (waits_for.back() == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const std::size_t part = ready.back();
      ready.pop_back();
      order.push_back(part);
      for (const std::size_t next : parts_[part].dependents.items())
        if (--waits_for[next] == 0) ready.push_back(next);
    }
    if (order.size() != parts_.size()) {
      std::string names;
      for (std::size_t i = 0; i < parts_.size(); ++i)
        if (waits_for[i] > 0) names += (names.empty() ? "" : ", ") + parts_[i].name;
      throw PassError(ErrorCode::kBadPartition, "cycle exists between partitions! Among " + names);
    }
    if (part_options_.order_by_number) {
      for (std::size_t i = 0; i < parts_.size(); ++i) order[i] = i;
      std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
        return parts_[a].number < parts_[b].number;
      });
      check_order([this](std::size_t part) { return parts_[part].number; },
                  ", which comes after it");
    } else if (options_.keep_original_order) {
      for (std::size_t i = 0; i < parts_.size(); ++i) order[i] = i;
      check_order([](std::size_t part) { return part; },
                  ", which begins after it; do not set keep_original_order");
    }
    return order;
  }

  void check_order(auto&& place_of, const std::string& problem) const {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for (const std::size_t needed : parts_[i].dependencies.items())
        if (place_of(needed) > place_of(i))
          throw PassError(ErrorCode::kBadPartition,
                          parts_[i].name + " needs results of " + parts_[needed].name + problem);
  }

  // A module that the original has at `path`, under a name without dots.
  std::string take_module(Part& part, const Node& node) {
    const std::string path = node.target().str();
    std::string name = flat_path(path);
    const auto called = module_.find_submodule(path);
    if (!called)
      throw GraphError(ErrorCode::kMissingAttribute, "Node " + std::string(node.name()) +
                                                         " referenced target " + path +
                                                         ", which the module does not have");
    // "a.b" and "a_b" are two modules.
    while (part.module->attr_kind(name) != GraphOwner::AttrKind::kMissing &&
           part.module->find_submodule(name) != called)
      name += "_";
    if (part.module->attr_kind(name) == GraphOwner::AttrKind::kMissing)
      part.module->set_submodule(name, called);
    if (qualname_map_) qualname_map_->insert_or_assign(part.name + "." + name, path);
    return name;
  }

  void make_submodule(Part& part) {
    part.module = std::make_shared<GraphModule>(std::make_shared<Graph>(), part.name);
    if (part.module->is_training() != module_.is_training())
      part.module->train(module_.is_training());
    Graph& graph = part.module->graph();
    ValueMap map;
    std::size_t count = 0;
    std::vector<const Node*> copied;
    for (const Node* input : part.inputs.items()) {
      if (is_copied(*input)) {
        copied.push_back(input);
        continue;
      }
      Node& placeholder =
          graph.placeholder(options_.keep_original_input_name ? std::string(input->name())
                                                              : "arg_" + std::to_string(count++),
                            input->type());
      placeholder.meta() = input->meta();
      map.emplace(input, placeholder);
    }
    for (const Node* input : copied) {
      part.module->share_attribute(module_, input->target().str(), input);
      Node& node = graph.get_attr(input->target().str(), input->type());
      node.meta() = input->meta();
      map.emplace(input, node);
    }
    auto mapped = [&](Node& input) { return map.at(&input); };
    for (const Node* node : part.nodes) {
      Args args;
      for (const Argument& arg : node->args()) args.push_back(arg.map_nodes(mapped));
      Kwargs kwargs;
      for (const KwArg& kwarg : node->kwargs())
        kwargs.emplace_back(kwarg.key, kwarg.value.map_nodes(mapped));
      const Target target = node->op() == Opcode::kCallModule
                                ? Target::string(take_module(part, *node))
                                : node->target();
      Node& copy = graph.create_node(
          node->op(), target, std::move(args), std::move(kwargs),
          options_.keep_original_node_name ? node->name() : std::string_view(), node->type());
      copy.meta() = node->meta();
      map.emplace(node, copy);
    }
    std::vector<Argument> results;
    for (const Node* output : part.outputs.items()) results.push_back(map.at(output));
    graph.output(results.size() == 1 && !options_.tuple_return
                     ? results[0]
                     : Argument::tuple(std::move(results)));
    part.module->recompile();
  }

  // Whether the parts that use it read it themselves, instead of getting it as an argument.
  bool is_copied(const Node& node) const {
    return node.op() == Opcode::kGetAttr &&
           (part_options_.copy_attributes ||
            module_.attr_kind(node.target().str()) == GraphOwner::AttrKind::kModule);
  }

  // The module that calls the parts.
  std::shared_ptr<GraphModule> make_base(const std::vector<std::size_t>& order) {
    auto base = std::make_shared<GraphModule>(std::make_shared<Graph>(), module_.class_name());
    if (base->is_training() != module_.is_training()) base->train(module_.is_training());
    Graph& graph = base->graph();
    ValueMap map;
    for (const Node& node : graph_.nodes())
      if (node.is_placeholder() ||
          (!options_.keep_original_order && !part_options_.copy_attributes))
        copy_input(*base, node, map);
    std::vector<std::string> names;
    for (const std::size_t index : order) {
      Part& part = parts_[index];
      if (base->attr_kind(part.name) != GraphOwner::AttrKind::kMissing)
        throw PassError(ErrorCode::kBadPartition,
                        "split_module: the name " + str_repr(part.name) +
                            " is taken by an attribute; set partition_affix");
      base->set_submodule(part.name, part.module);
      names.push_back(part.name);
      Args args;
      for (const Node* input : part.inputs.items()) {
        if (is_copied(*input)) continue;
        copy_input(*base, *input, map);
        args.push_back(map.at(input));
      }
      Node& call = graph.call_module(part.name, std::move(args));
      const auto& outputs = part.outputs.items();
      if (outputs.size() == 1 && !options_.tuple_return) {
        map.emplace(outputs[0], call);
        continue;
      }
      for (std::size_t i = 0; i < outputs.size(); ++i)
        map.emplace(outputs[i],
                    graph.call_function("operator.getitem", {call, static_cast<std::int64_t>(i)}));
    }
    for (const Node& node : graph_.nodes()) {
      if (!node.is_output()) continue;
      for (const Node* input : node.all_input_nodes()) copy_input(*base, *input, map);
      Node& output =
          graph.output(node.arg(0).map_nodes([&](Node& n) { return map.at(&n); }), node.type());
      output.meta() = node.meta();
    }
    base->set_specs(module_.in_spec(), module_.out_spec());
    base->set_input_guards(module_.input_guards());
    base->set_mutations(module_.mutations());
    base->meta() = module_.meta();
    base->meta().set("partition_names", std::move(names));
    base->recompile();
    return base;
  }

  // A placeholder or get_attr node of the original, once.
  void copy_input(GraphModule& base, const Node& node, ValueMap& map) const {
    if (map.contains(&node)) return;
    if (node.op() == Opcode::kGetAttr)
      base.share_attribute(module_, node.target().str(), &node);
    else if (!node.is_placeholder())
      return;
    Graph& graph = base.graph();
    Args args(node.args().begin(), node.args().end());
    Node& copy = graph.create_node(
        node.op(), node.target(), std::move(args), {},
        options_.keep_original_node_name ? node.name() : std::string_view(), node.type());
    copy.meta() = node.meta();
    map.emplace(&node, copy);
  }

  const GraphModule& module_;
  const Graph& graph_;
  const SplitOptions& options_;
  const PartOptions& part_options_;
  std::map<std::string, std::string>* qualname_map_;
  std::vector<std::size_t> part_of_;  // by node id
  std::vector<Part> parts_;           // by first appearance
};

}  // namespace

std::shared_ptr<GraphModule> split_module(const GraphModule& module,
                                          const SplitCallback& split_callback,
                                          const SplitOptions& options,
                                          std::map<std::string, std::string>* qualname_map) {
  return split_into_parts(module, split_callback, options, {}, qualname_map);
}

std::shared_ptr<GraphModule> split_into_parts(const GraphModule& module,
                                              const SplitCallback& split_callback,
                                              const SplitOptions& options, const PartOptions& parts,
                                              std::map<std::string, std::string>* qualname_map) {
  return Splitter(module, options, parts, qualname_map).split(split_callback);
}

std::shared_ptr<GraphModule> split_module_simple(
    const GraphModule& module, const std::unordered_map<const Node*, int>& node_to_partition,
    const std::string& partition_affix) {
  const UseLazyRecompile lazy;
  const auto partition_of = [&](const Node& node) {
    const auto found = node_to_partition.find(&node);
    if (found == node_to_partition.end())
      throw PassError(ErrorCode::kBadPartition,
                      "split_module_simple: node " + std::string(node.name()) +
                          " has no partition, wanted a number for each node that computes");
    return found->second;
  };
  return split_module(module, partition_of,
                      {.keep_original_order = true, .partition_affix = partition_affix});
}

}  // namespace fx
