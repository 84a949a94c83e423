#include "fx/io/value_types.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fx/base/error.h"
#include "fx/graph/tensor_meta.h"
#include "fx/io/shown.h"
#include "fx/ops/rng_guard.h"
#include "fx/ops/value.h"
#include "fx/passes/fake_tensor_prop.h"

namespace fx::io {
namespace {

using ExprPtr = std::shared_ptr<const SymbolicExpr>;
/// A value for each symbol.
using Assignment = std::map<std::string, std::int64_t, std::less<>>;

std::optional<std::int64_t> value_at(const SymDim& dim, const Assignment& symbols) {
  if (dim.is_known()) return dim.value;
  return dim.expr->evaluate([&](std::string_view name) -> std::optional<std::int64_t> {
    auto it = symbols.find(name);
    return it == symbols.end() ? std::nullopt : std::optional(it->second);
  });
}

ExprPtr symbol_expr(const std::string& name) {
  auto expr = std::make_shared<SymbolicExpr>();
  expr->op = SymbolicExpr::Op::kSymbol;
  expr->name = name;
  return expr;
}

ExprPtr integer_expr(std::int64_t value) {
  auto expr = std::make_shared<SymbolicExpr>();
  expr->value = value;
  return expr;
}

ExprPtr combine(SymbolicExpr::Op op, const SymbolicExpr& a, const SymbolicExpr& b) {
  auto expr = std::make_shared<SymbolicExpr>();
  expr->op = op;
  for (const SymbolicExpr* part : {&a, &b})
    if (part->op == op)
      expr->args.insert(expr->args.end(), part->args.begin(), part->args.end());
    else
      expr->args.push_back(*part);
  for (const SymbolicExpr& arg : expr->args) expr->height = std::max(expr->height, arg.height + 1);
  return expr;
}

SymDim multiply(const SymDim& a, const SymDim& b) {
  if (a.is_known() && b.is_known()) return {a.value * b.value, nullptr};
  if (a.is_known() && a.value == 1) return b;
  if (b.is_known() && b.value == 1) return a;
  const SymDim& first = b.is_known() ? b : a;
  const SymDim& second = b.is_known() ? a : b;
  const ExprPtr left = first.expr ? first.expr : integer_expr(first.value);
  const bool hinted = first.value >= 0 && second.value >= 0;
  return {hinted ? first.value * second.value : -1,
          combine(SymbolicExpr::Op::kMul, *left, *second.expr)};
}

using Sizes = std::vector<std::int64_t>;

std::optional<Sizes> values_at(const std::vector<SymDim>& dims, const Assignment& symbols) {
  Sizes values;
  for (const SymDim& dim : dims) {
    const auto value = value_at(dim, symbols);
    if (!value || *value < 0) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

at::Tensor meta_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype) {
  return at::empty_strided(sizes, strides, at::TensorOptions().dtype(dtype).device(at::kMeta));
}

const ValueMetaPtr* claim_of(const Node& node) {
  const auto* claim = node.meta().get<ValueMetaPtr>("val");
  return claim && *claim ? claim : nullptr;
}

/// A value of that description, without memory; nothing if its sizes cannot be told.
std::optional<Value> value_of_claim(const ValueMeta& claim, const Assignment& symbols) {
  using Kind = ValueMeta::Kind;
  if (claim.kind == Kind::kFloat) return Value(claim.real);
  if (claim.kind == Kind::kTensor) {
    const auto sizes = values_at(claim.sizes, symbols);
    const auto strides = values_at(claim.strides, symbols);
    if (!sizes || !strides) return std::nullopt;
    return Value(meta_tensor(*sizes, *strides, claim.dtype));
  }
  const auto number = value_at(claim.number, symbols);
  if (!number) return std::nullopt;
  return claim.kind == Kind::kBool ? Value(*number != 0) : Value(*number);
}

bool reads_a_number(const Node& node) {
  return node.calls("aten::item") || node.calls("aten::_local_scalar_dense");
}

/// Runs a graph without memory and records what each node gives; a node that cannot be run gives
/// what is claimed of it.
class Propagation : public FakeTensorProp {
 public:
  Propagation(GraphModule& module, const Assignment& symbols,
              const std::unordered_map<const Node*, ValueMetaPtr>& made)
      : FakeTensorProp(module), symbols_(symbols), made_(made) {}

  Value run_node(Node& node) override {
    const bool knows_inputs = std::ranges::none_of(
        node.all_input_nodes(), [this](const Node* input) { return unknown_.contains(input); });
    if (knows_inputs && !made_.contains(&node)) {
      try {
        return FakeTensorProp::run_node(node);
      } catch (const std::exception& error) {
        // Shapes that depend on values, operators without such a kernel, wrong graphs. It matters
        // only if nothing else is known of the node.
        failures_[&node] = first_line(error.what());
      }
    }
    const ValueMetaPtr* claim = claim_of(node);
    if (const auto it = made_.find(&node); it != made_.end()) claim = &it->second;
    if (claim != nullptr)
      if (auto value = value_of_claim(**claim, symbols_)) return *value;
    unknown_.insert(&node);
    return {};
  }

  void record_value(Node& node, const Value& value) override { values_.emplace(&node, value); }

  // Nothing is written to the module, thus a copy.
  Value run_subgraph(GraphModule& graph, Values inputs) override {
    return FakeTensorProp::run_subgraph(*graph.deep_copy(), std::move(inputs));
  }

  const std::unordered_map<const Node*, std::string>& failures() const { return failures_; }

  /// Null for what is not known.
  const Value* find(const Node& node) const {
    auto it = values_.find(&node);
    return it == values_.end() || unknown_.contains(&node) ? nullptr : &it->second;
  }

 private:
  const Assignment& symbols_;
  const std::unordered_map<const Node*, ValueMetaPtr>& made_;
  static std::string first_line(const std::string& text) {
    return shown(text.substr(0, text.find('\n')));
  }

  std::unordered_map<const Node*, Value> values_;
  std::unordered_map<const Node*, std::string> failures_;
  std::set<const Node*> unknown_;
};

/// Finds expressions for sizes of which two values are known.
class Symbolizer {
 public:
  Symbolizer(const Assignment& first, const Assignment& second) : first_(first), second_(second) {
    for (const auto& [name, value] : first) add(symbol_expr(name));
  }

  void add(const ExprPtr& expr) {
    const SymDim dim{0, expr};
    const auto a = value_at(dim, first_), b = value_at(dim, second_);
    if (a && b && *a != *b) known_.try_emplace({*a, *b}, expr);
  }
  void add(const SymDim& dim) {
    if (!dim.is_known()) add(dim.expr);
  }

  /// Nothing if no expression fits.
  std::optional<SymDim> dim(std::int64_t a, std::int64_t b) {
    if (a == b) return SymDim{a, nullptr};
    if (auto it = known_.find({a, b}); it != known_.end()) return SymDim{a, it->second};
    for (const auto& [name, at_first] : first_) {
      const std::int64_t step = second_.find(name)->second - at_first;
      if (step == 0 || (b - a) % step != 0) continue;
      const std::int64_t factor = (b - a) / step, rest = a - factor * at_first;
      return SymDim{a, linear(name, factor, rest)};
    }
    return std::nullopt;
  }

  /// Remembers the products of sizes from the right, which strides and flattened sizes are.
  void add_products(const std::vector<SymDim>& sizes) {
    SymDim product{1, nullptr};
    for (std::size_t i = sizes.size(); i-- > 0;) {
      product = multiply(sizes[i], product);
      add(product);
    }
  }

 private:
  static ExprPtr linear(const std::string& name, std::int64_t factor, std::int64_t rest) {
    ExprPtr term = symbol_expr(name);
    if (factor != 1) term = combine(SymbolicExpr::Op::kMul, *integer_expr(factor), *term);
    return rest == 0 ? term : combine(SymbolicExpr::Op::kAdd, *term, *integer_expr(rest));
  }

  const Assignment& first_;
  const Assignment& second_;
  std::map<std::pair<std::int64_t, std::int64_t>, ExprPtr> known_;
};

class TypeFinder {
 public:
  TypeFinder(const GraphModule& module, const Values& examples, Problems& problems)
      : module_(module), examples_(examples), problems_(problems) {}

  ValueTypes find() {
    read_ranges();
    name_guard_symbols();
    find_inputs();
    make_numbers();
    collect_symbols();
    if (!problems_.empty()) return std::move(types_);
    run(first_, first_values_);
    types_.failures = first_values_->failures();
    if (first_ != second_) run(second_, second_values_);
    Symbolizer symbolizer(first_, second_);
    for (const auto& [node, claim] : claims()) {
      for (const auto* dims : {&claim->sizes, &claim->strides})
        for (const SymDim& dim : *dims) symbolizer.add(dim);
      symbolizer.add(claim->number);
    }
    for (const Node& node : module_.graph().nodes())
      if (!node.is_output()) types_.of.emplace(&node, type_of(node, symbolizer));
    return std::move(types_);
  }

 private:
  using Ranges = std::map<std::string, std::pair<std::int64_t, std::int64_t>, std::less<>>;
  static constexpr std::int64_t kLargestSize = 1 << 20;

  void read_ranges() {
    if (const auto* ranges = module_.meta().get<RangeConstraints>("range_constraints"))
      for (const auto& [name, range] : *ranges) {
        ranges_[name] = {range.first.value_or(0), range.second.value_or(kLargestSize)};
        taken_.insert(name);
      }
    for (const auto& [node, claim] : claims())
      for (const auto* dims : {&claim->sizes, &claim->strides})
        for (const SymDim& dim : *dims)
          if (dim.expr)
            for (const std::string& symbol : dim.expr->symbols()) taken_.insert(symbol);
  }

  /// Symbols of guards under names that torch has for symbols; those of an exported program are.
  void name_guard_symbols() {
    for (const InputGuard& guard : module_.input_guards())
      for (const InputGuard::Dim& dim : guard.dims) {
        if (dim.symbol.empty() || taken_.contains(dim.symbol)) continue;
        auto [it, added] = guard_symbols_.try_emplace(dim.symbol);
        if (!added) continue;
        it->second = fresh_symbol("s");
        types_.new_symbols.emplace_back(it->second, std::pair(dim.min, dim.max));
        ranges_[it->second] = {dim.min.value_or(2), dim.max.value_or(kLargestSize)};
      }
  }

  std::string fresh_symbol(const std::string& prefix) {
    for (std::size_t i = 0;; ++i)
      if (taken_.insert(prefix + std::to_string(i)).second) return prefix + std::to_string(i);
  }

  static ValueMetaPtr meta_of(const TensorMeta& tensor) {
    auto meta = std::make_shared<ValueMeta>();
    meta->dtype = tensor.dtype;
    meta->device = tensor.device.is_meta() ? c10::Device(at::kCPU) : tensor.device;
    meta->requires_grad = tensor.requires_grad;
    for (std::int64_t size : tensor.shape) meta->sizes.push_back({size, nullptr});
    for (std::int64_t stride : tensor.stride) meta->strides.push_back({stride, nullptr});
    return meta;
  }

  /// A contiguous tensor that the guard lets through; null if it leaves a dimension open.
  ValueMetaPtr meta_of(const InputGuard& guard) const {
    auto meta = std::make_shared<ValueMeta>();
    meta->dtype = guard.dtype;
    for (const InputGuard::Dim& dim : guard.dims) {
      if (!dim.size && dim.symbol.empty()) return nullptr;
      if (dim.size) {
        meta->sizes.push_back({*dim.size, nullptr});
        continue;
      }
      auto renamed = guard_symbols_.find(dim.symbol);
      meta->sizes.push_back(
          {-1, symbol_expr(renamed == guard_symbols_.end() ? dim.symbol : renamed->second)});
    }
    meta->strides.resize(meta->sizes.size());
    SymDim stride{1, nullptr};
    for (std::size_t i = meta->sizes.size(); i-- > 0;) {
      meta->strides[i] = stride;
      SymDim size = meta->sizes[i];
      if (size.is_known()) size.value = std::max<std::int64_t>(size.value, 1);
      stride = multiply(size, stride);
    }
    return meta;
  }

  void find_inputs() {
    std::size_t index = 0;
    for (const Node* input : module_.graph().placeholders()) {
      const std::size_t position = index++;
      if (const ValueMetaPtr* claim = claim_of(*input)) {
        inputs_[input] = *claim;
        continue;
      }
      if (input->num_args() > 0) continue;  // a default, which the graph has
      if (const TensorMeta* tensor = tensor_meta(*input)) {
        inputs_[input] = meta_of(*tensor);
        continue;
      }
      if (position < examples_.size() && examples_[position].isTensor()) {
        inputs_[input] = meta_of(TensorMeta(examples_[position].toTensor()));
        continue;
      }
      for (const InputGuard& guard : module_.input_guards())
        if (guard.input == input->target().str()) inputs_[input] = meta_of(guard);
      if (!inputs_[input])
        problems_.add(
            "shape and dtype of inputs are not known: pass example inputs "
            "(SavePt2Options::example_inputs)",
            "input " + shown(input->target().str()));
    }
  }

  /// Numbers that are read from tensors become symbols, as in torch.export.
  void make_numbers() {
    for (const Node& node : module_.graph().nodes()) {
      if (!reads_a_number(node) || claim_of(node) != nullptr) continue;
      auto meta = std::make_shared<ValueMeta>();
      meta->kind = ValueMeta::Kind::kInt;
      const Node* source = node.num_args() > 0 ? node.arg(0).node_or_null() : nullptr;
      const at::ScalarType dtype = source ? dtype_of(*source) : at::kLong;
      const bool is_float = at::isFloatingType(dtype);
      if (dtype == at::kBool || at::isComplexType(dtype)) {
        problems_.add("bools and complex numbers that are read from tensors have no form",
                      "node " + shown(node.name()));
        continue;
      }
      const std::string name = fresh_symbol(is_float ? "zuf" : "u");
      if (is_float) meta->kind = ValueMeta::Kind::kFloat;
      meta->number = {-1, symbol_expr(name)};
      made_.emplace(&node, meta);
      if (!is_float) {
        types_.new_symbols.emplace_back(
            name, std::pair(std::optional<std::int64_t>(), std::optional<std::int64_t>()));
        ranges_[name] = {2, kLargestSize};
      }
    }
  }

  /// The dtype as far as it is known before the run.
  static at::ScalarType dtype_of(const Node& node) {
    if (const ValueMetaPtr* claim = claim_of(node)) return (*claim)->dtype;
    if (const TensorMeta* tensor = tensor_meta(node)) return tensor->dtype;
    return at::kLong;
  }

  std::vector<std::pair<const Node*, ValueMetaPtr>> claims() const {
    std::vector<std::pair<const Node*, ValueMetaPtr>> out;
    for (const Node& node : module_.graph().nodes())
      if (const ValueMetaPtr* claim = claim_of(node)) out.emplace_back(&node, *claim);
    for (const auto& [node, meta] : inputs_)
      if (meta && claim_of(*node) == nullptr) out.emplace_back(node, meta);
    for (const auto& [node, meta] : made_) out.emplace_back(node, meta);
    return out;
  }

  /// Two values for each symbol: what it was at export, and another one in its range.
  void collect_symbols() {
    std::map<std::string, std::int64_t, std::less<>> hints;
    std::set<std::string> names;
    auto look = [&](const SymDim& dim) {
      if (dim.is_known()) return;
      for (const std::string& name : dim.expr->symbols()) names.insert(name);
      if (dim.expr->op == SymbolicExpr::Op::kSymbol && dim.value >= 0)
        hints[dim.expr->name] = dim.value;
    };
    for (const auto& [node, claim] : claims()) {
      for (const auto* dims : {&claim->sizes, &claim->strides})
        for (const SymDim& dim : *dims) look(dim);
      look(claim->number);
    }
    std::int64_t index = 0;
    for (const std::string& name : names) {
      ++index;
      auto range = ranges_.find(name);
      const std::int64_t low =
          range == ranges_.end() ? 0 : std::max<std::int64_t>(0, range->second.first);
      const std::int64_t high = range == ranges_.end() ? kLargestSize : range->second.second;
      auto hint = hints.find(name);
      const std::int64_t first =
          hint != hints.end() ? hint->second
                              : std::clamp<std::int64_t>(4 + index, low, std::max(low, high));
      // Steps that differ, so that two symbols are not taken for each other; even ones, since
      // programs often ask for a multiple of something small.
      std::int64_t second = first + 24 * index;
      if (second > high) second = first - 1 >= std::max<std::int64_t>(low, 1) ? first - 1 : first;
      first_[name] = first;
      second_[name] = second;
    }
  }

  void run(const Assignment& symbols, std::unique_ptr<Propagation>& out) {
    const at::NoGradGuard no_grad;
    const RngGuard generators;
    // FakeTensorProp takes a module that it may annotate; Propagation only reads.
    auto& module = const_cast<GraphModule&>(module_);
    out = std::make_unique<Propagation>(module, symbols, made_);
    RunOptions options;
    options.enable_io_processing = false;
    for (const auto& [node, meta] : inputs_)
      if (auto value = value_of_claim(*meta, symbols))
        options.kwargs.push_back({Symbol(node->target().str()), *value});
    try {
      out->run({}, options);
    } catch (const Error&) {
      // An input whose sizes cannot be told; what is claimed has to do.
    }
  }

  const Value* first_value(const Node& node) const {
    return first_values_ ? first_values_->find(node) : nullptr;
  }
  const Value* second_value(const Node& node) const {
    return second_values_ ? second_values_->find(node) : first_value(node);
  }

  bool agrees(const ValueMeta& claim, const Value& value) const {
    if (claim.kind == ValueMeta::Kind::kFloat) return value.isDouble();
    if (claim.kind != ValueMeta::Kind::kTensor) {
      const auto number = value_at(claim.number, first_);
      if (!number) return true;
      return value.isBool() ? value.toBool() == (*number != 0)
                            : value.isInt() && value.toInt() == *number;
    }
    if (!value.isTensor() || !value.toTensor().defined()) return false;
    const at::Tensor& tensor = value.toTensor();
    const auto sizes = values_at(claim.sizes, first_);
    return tensor.scalar_type() == claim.dtype && (!sizes || tensor.sizes() == *sizes);
  }

  ValueType type_of(const Node& node, Symbolizer& symbolizer) {
    const ValueMetaPtr* claim = claim_of(node);
    if (auto it = made_.find(&node); it != made_.end()) claim = &it->second;
    if (auto it = inputs_.find(&node); it != inputs_.end()) claim = &it->second;
    const Value* first = first_value(node);
    const Value* second = second_value(node);
    ValueType type;
    if (claim != nullptr && (first == nullptr || agrees(**claim, *first))) {
      type.kind = ValueType::Kind::kValue;
      type.meta = *claim;
    } else if (first != nullptr && second != nullptr) {
      type = type_of(node, *first, *second, symbolizer);
    }
    if (type.meta) {
      symbolizer.add_products(type.meta->sizes);
      type.meta = with_hints(type.meta);
    }
    return type;
  }

  /// Sizes that follow from inputs say what they are for one size of those: what was not known of
  /// an exported program is what the first run had.
  ValueMetaPtr with_hints(const ValueMetaPtr& meta) const {
    auto copy = std::make_shared<ValueMeta>(*meta);
    auto fill = [&](SymDim& dim) {
      if (dim.is_known() || dim.value >= 0) return;
      for (const std::string& symbol : dim.expr->symbols())
        if (symbol.starts_with('u') || symbol.starts_with('z')) return;
      if (const auto value = value_at(dim, first_)) dim.value = *value;
    };
    for (auto* dims : {&copy->sizes, &copy->strides})
      for (SymDim& dim : *dims) fill(dim);
    fill(copy->number);
    return copy;
  }

  ValueType type_of(const Node& node, const Value& first, const Value& second,
                    Symbolizer& symbolizer) {
    ValueType type;
    if (first.isNone() || (first.isTensor() && !first.toTensor().defined())) {
      type.kind = ValueType::Kind::kNone;
      return type;
    }
    if (is_sequence(first)) {
      const Values a = elements(first);
      const Values b = is_sequence(second) ? elements(second) : Values();
      if (a.size() != b.size()) return type;
      type.kind = ValueType::Kind::kSequence;
      for (std::size_t i = 0; i < a.size(); ++i)
        type.items.push_back(type_of(node, a[i], b[i], symbolizer));
      return type;
    }
    auto meta = std::make_shared<ValueMeta>();
    bool fits = true;
    auto dims = [&](at::IntArrayRef a, at::IntArrayRef b, std::vector<SymDim>& out) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        auto found = symbolizer.dim(a[i], b[i]);
        fits = fits && found;
        out.push_back(found.value_or(SymDim{a[i], nullptr}));
      }
    };
    if (first.isTensor()) {
      const at::Tensor& a = first.toTensor();
      const at::Tensor& b = second.isTensor() ? second.toTensor() : a;
      if (!b.defined() || a.dim() != b.dim()) return type;
      meta->dtype = a.scalar_type();
      dims(a.sizes(), b.sizes(), meta->sizes);
      symbolizer.add_products(meta->sizes);
      if (a.layout() == at::kStrided) dims(a.strides(), b.strides(), meta->strides);
    } else if (first.isInt() && second.isInt()) {
      meta->kind = ValueMeta::Kind::kInt;
      const auto number = symbolizer.dim(first.toInt(), second.toInt());
      fits = number.has_value();
      meta->number = number.value_or(SymDim{first.toInt(), nullptr});
    } else if (first.isBool() && second.isBool()) {
      meta->kind = ValueMeta::Kind::kBool;
      meta->number.value = first.toBool() ? 1 : 0;
      fits = first.toBool() == second.toBool();
    } else if (first.isDouble() && second.isDouble()) {
      meta->kind = ValueMeta::Kind::kFloat;
      meta->real = first.toDouble();
      fits = first.toDouble() == second.toDouble();
    } else {
      return type;
    }
    if (!fits)
      problems_.add("how it depends on the symbols of the inputs is not known",
                    "node " + shown(node.name()));
    type.kind = ValueType::Kind::kValue;
    type.meta = meta;
    return type;
  }

  const GraphModule& module_;
  const Values& examples_;
  Problems& problems_;
  ValueTypes types_;
  Ranges ranges_;
  std::set<std::string> taken_;
  std::map<std::string, std::string, std::less<>> guard_symbols_;
  std::unordered_map<const Node*, ValueMetaPtr> inputs_;
  std::unordered_map<const Node*, ValueMetaPtr> made_;
  Assignment first_, second_;
  std::unique_ptr<Propagation> first_values_, second_values_;
};

}  // namespace

ValueTypes find_value_types(const GraphModule& module, const Values& example_inputs,
                            Problems& problems) {
  return TypeFinder(module, example_inputs, problems).find();
}

}  // namespace fx::io
