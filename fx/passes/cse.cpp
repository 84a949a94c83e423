#include "fx/passes/cse.h"

#include <algorithm>
#include <unordered_map>

#include "fx/analysis/alias.h"
#include "fx/base/hash.h"
#include "fx/graph/subgraphs.h"
#include "fx/passes/argument_hash.h"
#include "fx/passes/named_arguments.h"
#include "fx/passes/nested.h"

namespace fx {
namespace {

// What a value is computed from: equal keys, equal values.
struct Key {
  Opcode op;
  const void* target;  // function, method name, module object, tensor
  Args args;           // in the order of the schema where there is one, missing ones none
  Kwargs kwargs;       // the rest, sorted
  std::vector<std::uint32_t> epochs;  // how often the memory of each input was written before
  bool operator==(const Key&) const = default;
};

std::uint64_t hash_of(const Key& key) {
  Hasher hash;
  hash.add(static_cast<std::uint64_t>(key.op));
  hash.add(reinterpret_cast<std::uintptr_t>(key.target));
  for (const Argument& arg : key.args) hash.add(argument_hash(arg));
  for (const KwArg& kwarg : key.kwargs) {
    hash.add(reinterpret_cast<std::uintptr_t>(kwarg.key.id()));
    hash.add(argument_hash(kwarg.value));
  }
  for (std::uint32_t epoch : key.epochs) hash.add(std::uint64_t{epoch});
  return hash.value();
}

class Merger {
 public:
  Merger(GraphModule& module, const CseOptions& options)
      : module_(module), graph_(module.graph()), aliases_(graph_), options_(options) {}

  std::int64_t run() {
    epochs_.resize(aliases_.num_sets());
    returned_.resize(graph_.id_bound());
    std::int64_t merged = 0;
    for (Node& node : graph_.nodes()) {
      returned_[node.id()] = aliases_.reaches_output(node);
      merged += can_merge(node) && merge(node);
      for (AliasAnalysis::Set set : aliases_.writes(node)) ++epochs_[set];
      if (aliases_.writes_attribute(node)) ++attribute_epoch_;
    }
    return merged;
  }

 private:
  bool can_merge(const Node& node) const {
    switch (node.op()) {
      case Opcode::kPlaceholder:
      case Opcode::kOutput:
        return false;
      // Reading an attribute twice gives the same object, written to or not.
      case Opcode::kGetAttr:
        return true;
      default:
        return !node.is_impure() && !aliases_.is_written(node) &&
               !(options_.banned && options_.banned(node));
    }
  }

  bool merge(Node& node) {
    Key key = key_of(node);
    auto& known = table_[hash_of(key)];
    for (auto& [other_key, other] : known) {
      if (!(other_key == key) || both_returned(*other, node)) continue;
      node.replace_all_uses_with(*other);
      returned_[other->id()] = returned_[other->id()] || returned_[node.id()];
      graph_.erase_node(node);
      return true;
    }
    known.emplace_back(std::move(key), &node);
    return false;
  }

  // Merging would make one tensor of two that the caller may write to one by one.
  bool both_returned(const Node& a, const Node& b) const {
    return !options_.share_outputs && a.op() != Opcode::kGetAttr && returned_[a.id()] &&
           returned_[b.id()];
  }

  const void* target_of(const Node& node) const {
    if (node.op() == Opcode::kCallModule) {
      if (const auto called = module_.find_submodule(node.target().str())) return called.get();
    } else if (node.op() == Opcode::kGetAttr) {
      const at::Tensor tensor = module_.find_tensor(node.target().str());
      if (tensor.defined()) return tensor.unsafeGetTensorImpl();
      if (const auto body = module_.find_submodule(node.target().str())) return body.get();
    }
    return node.target().id();
  }

  Key key_of(const Node& node) const {
    Key key{node.op(), target_of(node), {}, {}, {}};
    if (const auto named = NamedArguments::of(node)) {
      key.args = named->values();
    } else {
      key.args.assign(node.args().begin(), node.args().end());
      key.kwargs.assign(node.kwargs().begin(), node.kwargs().end());
      std::sort(key.kwargs.begin(), key.kwargs.end(),
                [](const KwArg& a, const KwArg& b) { return a.key.str() < b.key.str(); });
    }
    if (!aliases_.has_writes()) return key;
    auto add_epoch = [&](Node& input) { key.epochs.push_back(epochs_[aliases_.set_of(input)]); };
    for (const Argument& arg : key.args) arg.for_each_node(add_epoch);
    for (const KwArg& kwarg : key.kwargs) kwarg.value.for_each_node(add_epoch);
    if (node.op() == Opcode::kCallModule || higher_order_of(node) != nullptr)
      key.epochs.push_back(attribute_epoch_);
    return key;
  }

  GraphModule& module_;
  Graph& graph_;
  const AliasAnalysis aliases_;
  const CseOptions& options_;
  std::unordered_map<std::uint64_t, std::vector<std::pair<Key, Node*>>> table_;
  std::vector<std::uint32_t> epochs_;  // by set
  std::uint32_t attribute_epoch_ = 0;
  std::vector<bool> returned_;  // by node id
};

}  // namespace

PassResult cse(GraphModule& module, const CseOptions& options) {
  return rewrite_each_graph_module(
      module, [&](GraphModule& nested) { return Merger(nested, options).run(); });
}

}  // namespace fx
