#include "fx/passes/type_check.h"

#include <algorithm>
#include <unordered_map>

#include "fx/base/error.h"
#include "fx/graph/module_types.h"
#include "fx/passes/union_find.h"

namespace fx {
namespace {

bool is_number_type(std::string_view type) {
  return type == "int" || type == "float" || type == "bool" || type == "complex";
}

[[noreturn]] void fail(const Node& node, const std::string& problem) {
  throw PassError(ErrorCode::kTypeMismatch,
                  "type_check: node " + std::string(node.name()) + ": " + problem);
}

// The types of all nodes, while they are worked on. They reach the graph only by write().
class TypeTable {
 public:
  explicit TypeTable(GraphModule& module) : module_(module) {
    for (const Node& node : module.graph().nodes()) types_.emplace(&node, annotation_of(node));
  }

  ValueType& operator[](const Node& node) { return types_.at(&node); }

  // What a call_module node calls, or null.
  std::shared_ptr<torch::nn::Module> module_of(const Node& node) const {
    if (node.op() != Opcode::kCallModule) return nullptr;
    return module_.find_submodule(node.target().str());
  }

  TypeCall call(const Node& node, const torch::nn::Module* module) {
    return TypeCall(node, module, [this](const Node& of) -> ValueType& { return types_.at(&of); });
  }

  // Gives the nodes their types: those without an annotation, and those that have a TensorType.
  std::int64_t write() {
    std::int64_t changes = 0;
    for (Node& node : module_.graph().nodes()) {
      const ValueType& type = types_.at(&node);
      if (type.is_number || !(node.type().empty() || TensorType::parse(node.type()))) continue;
      const std::string text = type.tensor.to_string();
      if (node.type() == text) continue;
      node.set_type(text);
      ++changes;
    }
    return changes;
  }

 private:
  static ValueType annotation_of(const Node& node) {
    if (is_number_type(node.type())) return {.is_number = true, .tensor = TensorType::dyn()};
    if (std::optional<TensorType> type = TensorType::parse(node.type()))
      return {.is_number = false, .tensor = *std::move(type)};
    if (node.type().starts_with("TensorType"))
      fail(node, "its type is " + node.type() + ", wanted the form TensorType[1, Dyn, 3]");
    return {.is_number = false, .tensor = TensorType::dyn()};
  }

  GraphModule& module_;
  std::unordered_map<const Node*, ValueType> types_;
};

ValueType infer(TypeTable& types, const GraphModule& module, const Node& node,
                const TypeCheckOptions& options) {
  switch (node.op()) {
    case Opcode::kPlaceholder:
      return types[node];
    case Opcode::kGetAttr: {
      const at::Tensor tensor = module.find_tensor(node.target().str());
      if (!tensor.defined()) return types[node];
      return {.is_number = false,
              .tensor = TensorType::of({tensor.sizes().begin(), tensor.sizes().end()})};
    }
    case Opcode::kOutput: {
      const Node* result = node.num_args() > 0 ? node.args()[0].node_or_null() : nullptr;
      return result ? types[*result] : types[node];
    }
    default: {
      const std::shared_ptr<torch::nn::Module> called = types.module_of(node);
      const std::optional<TypeRule> rule = find_type_rule(node, called.get());
      if (rule) return rule->infer(types.call(node, called.get()));
      if (options.unknown_as_dyn) return types[node];
      fail(node, "there is no rule for " +
                     (called ? module_type_name(*called) : std::string(node.target().str())) +
                     ": add one by register_type_rule, or pass unknown_as_dyn");
    }
  }
}

void check(TypeTable& types, const GraphModule& module, const TypeCheckOptions& options) {
  for (const Node& node : module.graph().nodes()) {
    const ValueType found = infer(types, module, node, options);
    ValueType& type = types[node];
    if (found.is_number || type.is_number) {
      type = found;
      continue;
    }
    const std::optional<TensorType> both = greatest_upper_bound(found.tensor, type.tensor);
    if (!both)
      fail(node, "its annotation is " + type.tensor.to_string() + ", which does not fit " +
                     found.tensor.to_string() + ", the type that its inputs give it");
    type.tensor = *both;
  }
}

// Gives unknown dimensions symbols, and finds out which are equal.
class Refinement {
 public:
  Refinement(TypeTable& types, const Graph& graph) : types_(types), graph_(graph) {
    for (const Node& node : graph_.nodes())
      for_each_dim(node, [&](TypeDim& dim) { count_symbols(dim); });
    next_ = sets_.size();
    for (const Node& node : graph_.nodes())
      for_each_dim(node, [&](TypeDim& dim) {
        if (dim.is_dyn()) dim = TypeDim::symbol(static_cast<std::int64_t>(next_++));
      });
    sets_.grow(next_);
    values_.resize(next_);
  }

  // Whether anything new follows from the equalities of all rules.
  bool unite() {
    bool changed = false;
    each_rule([&](const TypeRule& rule, const TypeCall& call) {
      if (!rule.equalities) return;
      for (const DimEquality& equality : rule.equalities(call))
        changed |= unite(call.node(), resolve(equality.left), resolve(equality.right));
    });
    // The output node has the very type of what it returns.
    const Node& output = graph_.output_node();
    if (const Node* result = output.num_args() > 0 ? output.args()[0].node_or_null() : nullptr) {
      const TensorType& left = types_[*result].tensor;
      const TensorType& right = types_[output].tensor;
      if (!left.is_dyn() && !right.is_dyn())
        for (std::size_t i = 0; i < left.dims().size(); ++i)
          changed |= unite(output, resolve(left.dims()[i]), resolve(right.dims()[i]));
    }
    resolve_all();
    return changed;
  }

  // Expressions for the sizes behind windows; in the order of the graph, so that one holds those
  // before it. Whether there are new ones.
  bool relate() {
    bool changed = false;
    each_rule([&](const TypeRule& rule, const TypeCall& call) {
      if (!rule.relations) return;
      resolve_inputs(call.node());
      const TensorType now = types_[call.node()].tensor;
      const TensorType related = rule.relations(call);
      if (now.is_dyn() || related.is_dyn()) return;
      for (std::size_t i = 0; i < now.dims().size(); ++i)
        changed |= unite(call.node(), resolve(now.dims()[i]), resolve(related.dims()[i]));
    });
    resolve_all();
    return changed;
  }

  // Symbols that are left get the numbers from 0 on, in the order of the graph.
  std::int64_t renumber() {
    std::unordered_map<std::int64_t, std::int64_t> numbers;
    for (const Node& node : graph_.nodes())
      for_each_dim(node, [&](TypeDim& dim) {
        const std::optional<std::int64_t> symbol = symbol_in(dim);
        if (!symbol) return;
        const auto number = static_cast<std::int64_t>(numbers.size());
        dim = dim.substitute(*symbol,
                             TypeDim::symbol(numbers.emplace(*symbol, number).first->second));
      });
    return static_cast<std::int64_t>(numbers.size());
  }

 private:
  template <typename Function>
  void for_each_dim(const Node& node, Function&& function) {
    TensorType& type = types_[node].tensor;
    if (type.is_dyn()) return;
    std::vector<TypeDim> dims = type.dims();
    for (TypeDim& dim : dims) function(dim);
    type = TensorType::of(std::move(dims));
  }

  template <typename Function>
  void each_rule(Function&& function) {
    for (const Node& node : graph_.nodes()) {
      if (node.op() != Opcode::kCallFunction && node.op() != Opcode::kCallMethod &&
          node.op() != Opcode::kCallModule)
        continue;
      const std::shared_ptr<torch::nn::Module> called = types_.module_of(node);
      if (const std::optional<TypeRule> rule = find_type_rule(node, called.get()))
        function(*rule, types_.call(node, called.get()));
    }
  }

  // The one symbol that an expression holds.
  static std::optional<std::int64_t> symbol_in(const TypeDim& dim) {
    return dim.innermost().symbol_index();
  }

  void count_symbols(const TypeDim& dim) {
    if (const std::optional<std::int64_t> symbol = symbol_in(dim))
      sets_.grow(static_cast<std::size_t>(*symbol) + 1);
  }

  TypeDim resolve(const TypeDim& dim) {
    const std::optional<std::int64_t> symbol = symbol_in(dim);
    if (!symbol) return dim;
    const std::size_t root = sets_.find(static_cast<std::size_t>(*symbol));
    const std::optional<TypeDim>& value = values_[root];
    return dim.substitute(
        *symbol, value ? resolve(*value) : TypeDim::symbol(static_cast<std::int64_t>(root)));
  }

  void resolve_inputs(const Node& node) {
    for (Node* input : node.all_input_nodes())
      for_each_dim(*input, [&](TypeDim& dim) { dim = resolve(dim); });
  }

  void resolve_all() {
    for (const Node& node : graph_.nodes())
      for_each_dim(node, [&](TypeDim& dim) { dim = resolve(dim); });
  }

  // Both are resolved. Whether something new is known.
  bool unite(const Node& node, const TypeDim& left, const TypeDim& right) {
    if (left == right || left.is_dyn() || right.is_dyn()) return false;
    const std::optional<std::int64_t> a = left.symbol_index(), b = right.symbol_index();
    if (a && b) {
      sets_.join(static_cast<std::size_t>(*a), static_cast<std::size_t>(*b));
      return true;
    }
    if (!a && !b) {
      if (left.number() && right.number())
        fail(node,
             "a dimension would have to be both " + left.to_string() + " and " + right.to_string());
      return false;  // expressions that may or may not be the same number
    }
    const TypeDim& value = a ? right : left;
    const std::int64_t symbol = a ? *a : *b;
    if (symbol_in(value) == symbol) return false;  // a fixed point: nothing that can be written
    values_[static_cast<std::size_t>(symbol)] = value;
    return true;
  }

  TypeTable& types_;
  const Graph& graph_;
  UnionFind sets_;
  std::size_t next_ = 0;
  std::vector<std::optional<TypeDim>> values_;  // of the symbols that stand for a set
};

}  // namespace

PassResult type_check(GraphModule& module, const TypeCheckOptions& options) {
  TypeTable types(module);
  check(types, module, options);
  const std::int64_t changes = types.write();
  return {.changed = changes > 0, .rewrites = changes};
}

SymbolicTypes infer_symbolic_types(GraphModule& module, const TypeCheckOptions& options) {
  TypeTable types(module);
  check(types, module, options);
  Refinement refinement(types, module.graph());
  do {
    while (refinement.unite()) {
    }
  } while (refinement.relate());
  SymbolicTypes result;
  result.num_symbols = refinement.renumber();
  result.changed = types.write() > 0;
  return result;
}

}  // namespace fx
