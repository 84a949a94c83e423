#include "fx/analysis/alias.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "fx/analysis/call_aliases.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_kernel.h"
#include "fx/graph/module_types.h"
#include "fx/graph/subgraphs.h"
#include "fx/ops/effects.h"

namespace fx {
namespace {

constexpr std::string_view kAliasingModules[] = {
#define FX_ALIASING_MODULE(name) name,
#include "fx/analysis/aliasing_modules.def"
#undef FX_ALIASING_MODULE
};
static_assert(std::is_sorted(std::begin(kAliasingModules), std::end(kAliasingModules)));

const void* storage_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  if (!tensor.has_storage()) return tensor.unsafeGetTensorImpl();
  return tensor.storage().unsafeGetStorageImpl();
}

// A class of torch::nn itself, whose behaviour is known; own classes may do anything.
bool is_known_module(const torch::nn::Module& module) {
  const ModuleType* type = find_module_type(module);
  return type && type->is_leaf && type->name.starts_with("torch.nn.");
}

}  // namespace

bool has_ordered_effect(const Node& node) {
  if (node.is_placeholder() || node.is_output() || !node.is_impure()) return false;
  if (node.op() == Opcode::kCallModule || higher_order_of(node) != nullptr) return true;
  auto has_kwarg = [&](std::string_view key) { return node.has_kwarg(key); };
  const Effects effects = node.op() == Opcode::kCallMethod
                              ? effects_of_method(node.target().str(), has_kwarg)
                              : effects_of(*node.target().function(), has_kwarg);
  return effects.random || effects.other;
}

// Numbers sets like this while it works: values by Node::id(), then one set for all inputs and one
// for attributes of which nothing is known, then attributes by storage.
class AliasBuilder {
 public:
  AliasBuilder(const Graph& graph, AliasAnalysis& out)
      : graph_(graph), module_(dynamic_cast<const GraphModule*>(graph.owner())), out_(out) {
    inputs_ = new_set(graph.id_bound());
    unknown_attribute_ = new_set(graph.id_bound() + 1);
    flags_[inputs_] = AliasAnalysis::kInput;
    flags_[unknown_attribute_] = AliasAnalysis::kAttribute;
  }

  void run() {
    out_.reads_attributes_.resize(graph_.id_bound());
    writes_of_.resize(graph_.id_bound());
    for (const Node& node : graph_.nodes()) visit(node);
    finish();
  }

 private:
  using Set = AliasAnalysis::Set;

  Set new_set(Set at) {
    if (parent_.size() <= at) {
      const auto old = static_cast<Set>(parent_.size());
      parent_.resize(at + 1);
      std::iota(parent_.begin() + old, parent_.end(), old);
      flags_.resize(at + 1, 0);
    }
    return at;
  }
  Set find(Set set) {
    while (parent_[set] != set) set = parent_[set] = parent_[parent_[set]];
    return set;
  }
  void unite(Set a, Set b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    parent_[b] = a;
    flags_[a] |= flags_[b];
  }

  // The value of `node` may be `input` itself or a view of it.
  void share(const Node& node, const Node& input) {
    unite(node.id(), input.id());
    views_.emplace_back(node.id(), input.id());
  }

  static void for_each_input(const Node& node, auto&& fn) {
    for (const Argument& arg : node.args()) arg.for_each_node(fn);
    for (const KwArg& kwarg : node.kwargs()) kwarg.value.for_each_node(fn);
  }
  void share_with_all_inputs(const Node& node) {
    for_each_input(node, [&](Node& input) { share(node, input); });
  }
  void write_all_inputs(const Node& node) {
    for_each_input(node, [&](Node& input) { writes_of_[node.id()].push_back(input.id()); });
  }
  // Anything at all: arguments, inputs of the graph, attributes.
  void write_everything(const Node& node) {
    write_all_inputs(node);
    writes_of_[node.id()].push_back(inputs_);
    writes_of_[node.id()].push_back(unknown_attribute_);
  }

  void visit(const Node& node) {
    switch (node.op()) {
      case Opcode::kPlaceholder:
        unite(inputs_, node.id());
        break;
      case Opcode::kGetAttr:
        visit_attribute(node);
        break;
      case Opcode::kOutput:
        for_each_input(node, [&](Node& input) { outputs_.push_back(input.id()); });
        break;
      case Opcode::kCallModule:
        visit_module(node);
        break;
      case Opcode::kCallFunction:
      case Opcode::kCallMethod:
        visit_call(node);
        break;
    }
  }

  Set attribute_set(const at::Tensor& tensor) {
    const void* storage = storage_of(tensor);
    if (!storage) return unknown_attribute_;
    auto [entry, is_new] = storages_.try_emplace(storage, static_cast<Set>(parent_.size()));
    if (is_new) flags_[new_set(entry->second)] = AliasAnalysis::kAttribute;
    return entry->second;
  }

  void visit_attribute(const Node& node) {
    if (!module_) return unite(unknown_attribute_, node.id());
    const at::Tensor tensor = module_->find_tensor(node.target().str());
    // A module as a value (the body of a higher-order operator) may use any attribute.
    unite(tensor.defined() ? attribute_set(tensor) : unknown_attribute_, node.id());
  }

  // What graphs write they write in place of the call; results are new where the operator says so.
  void visit_higher_order(const Node& node, const HigherOrderOp& op) {
    out_.reads_attributes_[node.id()] = true;
    lists_.insert(&node);
    const std::vector<const Node*> graphs = subgraph_nodes(node);
    bool reads_attributes = graphs.size() != op.num_graphs;
    for (const Node* graph : graphs) {
      const auto nested = module_ ? std::dynamic_pointer_cast<const GraphModule>(
                                        module_->find_submodule(graph->target().str()))
                                  : nullptr;
      if (!nested) {
        reads_attributes = true;
        write_everything(node);
        continue;
      }
      for (const Node& inner : nested->graph().nodes())
        reads_attributes |=
            inner.op() == Opcode::kCallModule ||
            (inner.op() == Opcode::kGetAttr && nested->find_tensor(inner.target().str()).defined());
      if (!module_->module_is_impure(graph->target().str(), /*impure_random=*/false)) continue;
      const AliasAnalysis inner(nested->graph());
      if (inner.writes_inputs()) write_all_inputs(node);
      if (inner.writes_attributes()) writes_of_[node.id()].push_back(unknown_attribute_);
    }
    if (reads_attributes) unite(node.id(), unknown_attribute_);
    if (!op.makes_new_values()) share_with_all_inputs(node);
  }

  void visit_call(const Node& node) {
    if (const HigherOrderOp* op = higher_order_of(node)) return visit_higher_order(node, *op);
    const CallAliases& call = table_.of(node);
    bool has_list = false;
    auto use = [&](const Argument& argument, CallAliases::Arg how) {
      const bool written =
          how.written || (how.written_by_flag && node.is_impure(/*impure_random=*/false));
      has_list |= argument.is_aggregate();
      argument.for_each_node([&](Node& input) {
        has_list |= lists_.contains(&input);
        if (how.returned || call.returns_any) share(node, input);
        if (written) writes_of_[node.id()].push_back(input.id());
      });
    };
    for (std::size_t i = 0; i < node.num_args(); ++i) use(node.args()[i], call.at(i));
    for (const KwArg& kwarg : node.kwargs()) use(kwarg.value, call.at(kwarg.key.str()));
    if (call.writes_all) write_everything(node);
    if (call.list_arithmetic && has_list) {
      share_with_all_inputs(node);
      lists_.insert(&node);
    }
    if (call.returns_list) lists_.insert(&node);
  }

  void visit_module(const Node& node) {
    out_.reads_attributes_[node.id()] = true;
    const auto module = module_ ? module_->find_submodule(node.target().str()) : nullptr;
    if (!module) {
      share_with_all_inputs(node);
      unite(node.id(), unknown_attribute_);
      return write_everything(node);
    }
    if (dynamic_cast<const KernelModule*>(module.get())) return;  // fresh results, no writes
    const bool writes = node.is_impure(/*impure_random=*/false);
    if (is_known_module(*module)) {
      const ModuleType& type = *find_module_type(*module);
      if (type.works_in_place && type.works_in_place(*module)) {
        share_with_all_inputs(node);
        write_all_inputs(node);
      } else if (std::binary_search(std::begin(kAliasingModules), std::end(kAliasingModules),
                                    std::string_view(type.short_name))) {
        share_with_all_inputs(node);
        if (writes) write_all_inputs(node);
      }
      if (writes)
        for (const at::Tensor& buffer : module->buffers())
          writes_of_[node.id()].push_back(attribute_set(buffer));
      return;
    }
    share_with_all_inputs(node);
    unite(node.id(), unknown_attribute_);
    if (!writes) return;
    if (const auto* nested = dynamic_cast<const GraphModule*>(module.get())) {
      const AliasAnalysis inner(nested->graph());
      if (inner.writes_inputs()) write_all_inputs(node);
      if (inner.writes_attributes()) writes_of_[node.id()].push_back(unknown_attribute_);
    } else {
      write_everything(node);
    }
  }

  // Renumbers the sets densely, then follows what may share memory behind the graph's back: inputs
  // with any attribute, unknown attributes with all others.
  void finish() {
    std::vector<Set> dense(parent_.size(), 0);
    std::vector<std::uint8_t>& flags = out_.flags_;
    for (Set set = 0; set < parent_.size(); ++set) {
      if (find(set) != set) continue;
      dense[set] = static_cast<Set>(flags.size());
      flags.push_back(flags_[set]);
    }
    out_.set_of_.resize(graph_.id_bound());
    for (Set id = 0; id < graph_.id_bound(); ++id) out_.set_of_[id] = dense[find(id)];
    out_.reaches_output_.resize(graph_.id_bound());
    for (Set output : outputs_) out_.reaches_output_[output] = true;
    // In graph order, so that going back meets a value before what it is a view of.
    for (auto view = views_.rbegin(); view != views_.rend(); ++view)
      if (out_.reaches_output_[view->first]) out_.reaches_output_[view->second] = true;
    const Set inputs = dense[find(inputs_)];
    const Set unknown = dense[find(unknown_attribute_)];
    std::vector<Set> attributes;
    for (Set set = 0; set < flags.size(); ++set)
      if (flags[set] & AliasAnalysis::kAttribute) attributes.push_back(set);

    out_.write_begin_.reserve(graph_.id_bound() + 1);
    for (std::vector<Set>& writes : writes_of_) {
      out_.write_begin_.push_back(static_cast<std::uint32_t>(out_.writes_.size()));
      if (writes.empty()) continue;
      for (Set& set : writes) set = dense[find(set)];
      const bool to_inputs = std::find(writes.begin(), writes.end(), inputs) != writes.end();
      const bool to_unknown = std::find(writes.begin(), writes.end(), unknown) != writes.end();
      const bool to_attributes = std::any_of(writes.begin(), writes.end(), [&](Set set) {
        return (flags[set] & AliasAnalysis::kAttribute) != 0;
      });
      if (to_inputs || to_unknown)
        writes.insert(writes.end(), attributes.begin(), attributes.end());
      if (to_attributes) writes.push_back(inputs);
      std::sort(writes.begin(), writes.end());
      writes.erase(std::unique(writes.begin(), writes.end()), writes.end());
      for (Set set : writes) flags[set] |= AliasAnalysis::kWritten;
      out_.writes_.insert(out_.writes_.end(), writes.begin(), writes.end());
      out_.writes_inputs_ |= to_inputs || to_attributes;
      out_.writes_attributes_ |= to_attributes || to_inputs;
    }
    out_.write_begin_.push_back(static_cast<std::uint32_t>(out_.writes_.size()));
    for (Set set : attributes)
      if (flags[set] & AliasAnalysis::kWritten) out_.written_attributes_.push_back(set);
  }

  const Graph& graph_;
  const GraphModule* module_;
  AliasAnalysis& out_;
  CallAliasTable table_;
  std::vector<Set> parent_;
  std::vector<std::uint8_t> flags_;
  Set inputs_ = 0;
  Set unknown_attribute_ = 0;
  std::vector<std::vector<Set>> writes_of_;  // by node id
  std::vector<Set> outputs_;
  std::vector<std::pair<Set, Set>> views_;  // ids of a value and of what it may be a view of
  std::unordered_map<const void*, Set> storages_;
  std::unordered_set<const Node*> lists_;  // values that are lists or tuples
};

AliasAnalysis::AliasAnalysis(const Graph& graph) { AliasBuilder(graph, *this).run(); }

bool AliasAnalysis::may_alias(const Node& a, const Node& b) const noexcept {
  const Set x = set_of(a);
  const Set y = set_of(b);
  if (x == y) return true;
  // Inputs may be views of attributes.
  return (has(x, kInput) && has(y, kInput | kAttribute)) ||
         (has(y, kInput) && has(x, kInput | kAttribute));
}

bool AliasAnalysis::writes_attribute(const Node& node) const noexcept {
  const auto sets = writes(node);
  return std::any_of(sets.begin(), sets.end(), [&](Set set) { return has(set, kAttribute); });
}

void AliasAnalysis::add_touched_sets(const Node& node, std::vector<Set>& sets) const {
  auto add = [&](const Node& value) {
    if (is_written(value)) sets.push_back(set_of(value));
  };
  add(node);
  for (const Argument& arg : node.args()) arg.for_each_node(add);
  for (const KwArg& kwarg : node.kwargs()) kwarg.value.for_each_node(add);
  if (reads_attributes_[node.id()])
    sets.insert(sets.end(), written_attributes_.begin(), written_attributes_.end());
}

bool AliasAnalysis::writes_what_is_touched_by(const Node& writer, const Node& other) const {
  const auto written = writes(writer);
  if (written.empty()) return false;
  auto is_written_here = [&](Set set) {
    return std::binary_search(written.begin(), written.end(), set);
  };
  for (Set set : writes(other))
    if (is_written_here(set)) return true;
  if (is_written_here(set_of(other))) return true;
  if (reads_attributes_[other.id()] && writes_attribute(writer)) return true;
  bool touched = false;
  auto check = [&](Node& input) { touched |= is_written_here(set_of(input)); };
  for (const Argument& arg : other.args()) arg.for_each_node(check);
  for (const KwArg& kwarg : other.kwargs()) kwarg.value.for_each_node(check);
  return touched;
}

bool AliasAnalysis::conflict(const Node& a, const Node& b) const {
  if (writes_what_is_touched_by(a, b) || writes_what_is_touched_by(b, a)) return true;
  return has_ordered_effect(a) && has_ordered_effect(b);
}

}  // namespace fx
