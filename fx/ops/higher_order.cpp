#include "fx/ops/higher_order.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_set>
#include <utility>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/ops/stop.h"
#include "fx/ops/value_tensors.h"

namespace fx {
namespace {

using Kind = HigherOrderOp::Kind;

extern const HigherOrderOp kOps[8];

/// What the table holds for each row.
template <std::size_t row>
Value run_row(Values& args, KwValues& kwargs) {
  return call_higher_order(kOps[row], args, kwargs);
}

constexpr HigherOrderOp kOps[8] = {
    {Kind::kAssociativeScan, "associative_scan", 0, 1, 1, 2, run_row<0>},
    {Kind::kCond, "cond", 1, 2, 3, 1, run_row<1>},
    {Kind::kInvoke, "invoke_subgraph", 0, 1, 2, 0, run_row<2>},
    {Kind::kMap, "map_impl", 0, 1, 1, 2, run_row<3>},
    {Kind::kScan, "scan", 0, 1, 1, 3, run_row<4>},
    {Kind::kWhileLoop, "while_loop", 0, 2, 2, 2, run_row<5>},
    {Kind::kAutocast, "wrap_with_autocast", 4, 1, 5, 0, run_row<6>},
    {Kind::kGradMode, "wrap_with_set_grad_enabled", 1, 1, 2, 0, run_row<7>},
};
static_assert(std::ranges::is_sorted(kOps, {}, &HigherOrderOp::name));

std::atomic<GraphCaller> graph_caller{nullptr};

[[noreturn]] void refuse(const HigherOrderOp& op, const std::string& what,
                         ErrorCode code = ErrorCode::kWrongType) {
  throw RunError(code, std::string(op.name) + ": " + what);
}

Value run_graph(const HigherOrderOp& op, const Value& graph, const Values& inputs) {
  const GraphCaller caller = graph_caller.load(std::memory_order_acquire);
  if (!graph.isCapsule() || caller == nullptr)
    refuse(op, "a " + describe(graph) + " stands where a graph is wanted");
  return caller(graph, inputs);
}

Values list_at(const HigherOrderOp& op, const Values& args, std::size_t index) {
  if (!is_sequence(args[index]))
    refuse(op, "argument " + std::to_string(index + 1) + " is a " + describe(args[index]) +
                   ", wanted a list or tuple");
  return elements(args[index]);
}

Values joined(Values first, const Values& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The results of a graph that gives several.
Values results_of(const HigherOrderOp& op, const Value& value) {
  if (!is_sequence(value))
    refuse(op, "its graph gives a " + describe(value) + ", wanted a tuple of results");
  return elements(value);
}

Value tuple_of(Values values) { return c10::ivalue::Tuple::create(std::move(values)); }

bool is_meta(const Value& value) {
  bool meta = false;
  for_each_tensor(value, [&](const at::Tensor& t) { meta |= t.defined() && t.is_meta(); });
  return meta;
}

/// What has to stay the same from one step of a loop to the next, and between branches: all but
/// sizes.
std::string kind_of(const Value& value) {
  if (!value.isTensor()) return is_sequence(value) ? "sequence" : std::string(value.tagKind());
  const at::Tensor& tensor = value.toTensor();
  if (!tensor.defined()) return "None";
  return "Tensor " + std::string(short_dtype_name(tensor.scalar_type())) + " of rank " +
         std::to_string(tensor.dim()) + " on " + tensor.device().str();
}

void require_same_kind(const HigherOrderOp& op, const std::string& first, const Value& a,
                       const std::string& second, const Value& b) {
  if (const std::string one = kind_of(a), other = kind_of(b); one != other)
    refuse(op, first + " is a " + one + ", " + second + " a " + other + "; they have to agree");
  if (!is_sequence(a)) return;
  const Values left = elements(a), right = elements(b);
  if (left.size() != right.size())
    refuse(op, first + " has " + std::to_string(left.size()) + " values, " + second + " " +
                   std::to_string(right.size()) + "; they have to agree");
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::string at = "value " + std::to_string(i + 1) + " of ";
    require_same_kind(op, at + first, left[i], at + second, right[i]);
  }
}

bool same_sizes(const Value& a, const Value& b) {
  if (a.isTensor()) return a.toTensor().sizes() == b.toTensor().sizes();
  if (!is_sequence(a)) return true;
  const Values left = elements(a), right = elements(b);
  return std::ranges::equal(left, right, same_sizes);
}

const void* memory_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  if (!tensor.has_storage()) return tensor.unsafeGetTensorImpl();
  return tensor.storage().unsafeGetStorageImpl();
}

/// A result that is an operand, or a view of one, would make a later write be seen in two places
/// in one branch and not in the other. torch.export refuses such graphs.
void refuse_shared_memory(const HigherOrderOp& op, const Value& results, const Values& inputs) {
  std::unordered_set<const void*> taken;
  for (const Value& input : inputs)
    for_each_tensor(input, [&](const at::Tensor& tensor) { taken.insert(memory_of(tensor)); });
  taken.erase(nullptr);
  std::size_t num_results = 0;
  for_each_tensor(results, [&](const at::Tensor& tensor) {
    const void* memory = memory_of(tensor);
    if (memory == nullptr) return;
    ++num_results;
    if (!taken.insert(memory).second)
      refuse(op,
             "result " + std::to_string(num_results) +
                 " of its graph shares memory with an operand or another result; return a clone()");
  });
}

// --- the operators

bool truth(const HigherOrderOp& op, const Value& predicate) {
  if (predicate.isBool()) return predicate.toBool();
  const bool fits = predicate.isTensor() && predicate.toTensor().defined() &&
                    (op.kind == Kind::kCond ? predicate.toTensor().numel() == 1
                                            : predicate.toTensor().dim() == 0 &&
                                                  predicate.toTensor().scalar_type() == at::kBool);
  if (!fits)
    refuse(op,
           "the predicate is a " + describe(predicate) + ", wanted a bool or " +
               (op.kind == Kind::kCond ? "a tensor of one element" : "a bool tensor of rank 0"));
  return predicate.toTensor().is_nonzero();
}

Value cond(const HigherOrderOp& op, const Values& args) {
  const Values operands = list_at(op, args, 3);
  Value result;
  if (is_meta(args[0])) {
    result = run_graph(op, args[1], operands);
    const Value other = run_graph(op, args[2], operands);
    require_same_kind(op, "the first branch", result, "the second", other);
    if (!same_sizes(result, other))
      refuse(op, "the sizes of what it gives depend on the predicate, which is not known",
             ErrorCode::kNotRunnable);
  } else {
    result = run_graph(op, args[truth(op, args[0]) ? 1 : 2], operands);
  }
  refuse_shared_memory(op, result, operands);
  return result;
}

void require_carried(const HigherOrderOp& op, const Values& before, const Values& after) {
  for (std::size_t i = 0; i < before.size(); ++i)
    require_same_kind(op, "carried value " + std::to_string(i + 1), before[i], "after a step it",
                      after[i]);
}

Value while_loop(const HigherOrderOp& op, const Values& args) {
  Values carried = list_at(op, args, 2);
  const Values additional = list_at(op, args, 3);
  bool has_run = false;
  for (;;) {
    throw_if_stopped(StopScope::current());
    const Values inputs = joined(carried, additional);
    const Value predicate = run_graph(op, args[0], inputs);
    const bool unknown = is_meta(predicate);
    if (!unknown && !truth(op, predicate)) break;
    Values next = results_of(op, run_graph(op, args[1], inputs));
    if (next.size() != carried.size())
      refuse(op, "its body gives " + std::to_string(next.size()) + " values, carried are " +
                     std::to_string(carried.size()));
    require_carried(op, carried, next);
    refuse_shared_memory(op, tuple_of(next), inputs);
    carried = std::move(next);
    has_run = true;
    if (unknown) break;
  }
  if (!has_run)
    for (Value& value : carried)
      if (value.isTensor()) value = value.toTensor().clone();
  return tuple_of(std::move(carried));
}

/// The common first extent of what is run over.
std::int64_t extent_of(const HigherOrderOp& op, const Values& xs, bool may_be_empty = false) {
  std::int64_t extent = -1;
  for (const Value& x : xs) {
    if (!x.isTensor() || x.toTensor().dim() == 0)
      refuse(op, "runs over a " + describe(x) + ", wanted a tensor with a first dimension");
    const std::int64_t size = x.toTensor().size(0);
    if (extent >= 0 && size != extent)
      refuse(op,
             "runs over tensors of " + std::to_string(extent) + " and " + std::to_string(size) +
                 " elements in their first dimension; they have to agree",
             ErrorCode::kShapeMismatch);
    extent = size;
  }
  if (extent < 0 || (extent == 0 && !may_be_empty))
    refuse(op, extent < 0 ? "runs over no tensor at all" : "runs over tensors without elements",
           ErrorCode::kShapeMismatch);
  return extent;
}

Values slices_at(const Values& xs, std::int64_t index) {
  Values out;
  for (const Value& x : xs) out.emplace_back(x.toTensor().select(0, index));
  return out;
}

/// One tensor of `extent` steps. `steps` holds all of them, or the first for tensors without
/// memory.
Value stacked(const HigherOrderOp& op, const Values& steps, std::int64_t extent) {
  if (steps[0].isNone()) return {};
  std::vector<at::Tensor> tensors;
  for (const Value& step : steps) {
    if (!step.isTensor())
      refuse(op, "its graph gives a " + describe(step) + " for each step, wanted a tensor");
    tensors.push_back(step.toTensor());
  }
  if (tensors.size() == static_cast<std::size_t>(extent)) return at::stack(tensors);
  std::vector<std::int64_t> sizes = tensors[0].sizes().vec();
  sizes.insert(sizes.begin(), extent);
  return at::empty(sizes, tensors[0].options());
}

/// Collects the results of all steps, a column for each.
class Columns {
 public:
  explicit Columns(const HigherOrderOp& op) : op_(op) {}

  void add(std::span<const Value> results) {
    if (columns_.empty()) columns_.resize(results.size());
    if (columns_.size() != results.size())
      refuse(op_, "its graph gives " + std::to_string(results.size()) + " results in one step, " +
                      std::to_string(columns_.size()) + " in another");
    for (std::size_t i = 0; i < results.size(); ++i) columns_[i].push_back(results[i]);
  }
  Values stack(std::int64_t extent) const {
    Values out;
    for (const Values& column : columns_) out.push_back(stacked(op_, column, extent));
    return out;
  }

 private:
  const HigherOrderOp& op_;
  std::vector<Values> columns_;
};

Value scan(const HigherOrderOp& op, const Values& args) {
  Values carried = list_at(op, args, 1);
  const Values xs = list_at(op, args, 2), additional = list_at(op, args, 3);
  const std::int64_t extent = extent_of(op, xs);
  const std::int64_t steps = is_meta(args[2]) ? 1 : extent;
  Columns columns(op);
  for (std::int64_t i = 0; i < steps; ++i) {
    throw_if_stopped(StopScope::current());
    const Values inputs = joined(joined(carried, slices_at(xs, i)), additional);
    Values results = results_of(op, run_graph(op, args[0], inputs));
    if (results.size() < carried.size())
      refuse(op, "its graph gives " + std::to_string(results.size()) + " values, carried are " +
                     std::to_string(carried.size()));
    require_carried(op, carried, results);
    refuse_shared_memory(op, tuple_of(results), inputs);
    const auto end_of_carried = static_cast<std::ptrdiff_t>(carried.size());
    columns.add(std::span(results).subspan(carried.size()));
    carried.assign(results.begin(), results.begin() + end_of_carried);
  }
  return tuple_of(joined(std::move(carried), columns.stack(extent)));
}

/// The rows of each of an associative scan: neighbours are combined, all pairs at once, these are
/// scanned, and what lies between is combined with what came before it. torch has the same order of
/// combinations, and so the same results.
class AssociativeScan {
 public:
  AssociativeScan(const HigherOrderOp& op, const Value& graph, const Values& additional)
      : op_(op), graph_(graph), additional_(additional) {}

  /// O(n) combinations of rows in O(log n) calls of the graph.
  Values run(const Values& elems) const {
    const std::int64_t count = elems[0].toTensor().size(0);
    if (count < 2) return elems;
    const Values odd = run(combined(rows(elems, 0, -1, 2), rows(elems, 1, count, 2)));
    const Values later = rows(elems, 2, count, 2);
    Values out = elems;
    const Values even =
        count == 2 ? Values() : combined(count % 2 == 0 ? rows(odd, 0, -1, 1) : odd, later);
    for (std::size_t i = 0; i < elems.size(); ++i) {
      at::Tensor first = elems[i].toTensor().slice(0, 0, 1);
      if (!even.empty()) first = at::cat({first, even[i].toTensor()});
      out[i] = interleaved(first, odd[i].toTensor());
    }
    return out;
  }

 private:
  static Values rows(const Values& elems, std::int64_t start, std::int64_t end, std::int64_t step) {
    Values out;
    for (const Value& elem : elems) out.emplace_back(elem.toTensor().slice(0, start, end, step));
    return out;
  }

  Values combined(const Values& left, const Values& right) const {
    throw_if_stopped(StopScope::current());
    const Values inputs = joined(joined(left, right), additional_);
    Values results = results_of(op_, run_graph(op_, graph_, inputs));
    const Value wanted = tuple_of(right), found = tuple_of(results);
    require_same_kind(op_, "what it runs over", wanted, "the result of its graph", found);
    if (!same_sizes(wanted, found))
      refuse(op_,
             "its graph gives other sizes than it is given; it has to combine element by element",
             ErrorCode::kShapeMismatch);
    refuse_shared_memory(op_, found, inputs);
    return results;
  }

  // a[0], b[0], a[1] ...: b has as many rows as a, or one less.
  static at::Tensor interleaved(const at::Tensor& a, at::Tensor b) {
    const std::int64_t count = a.size(0) + b.size(0);
    if (b.size(0) < a.size(0)) b = at::cat({b, at::zeros_like(a.slice(0, 0, 1))});
    return at::stack({a, b}, 1).flatten(0, 1).slice(0, 0, count);
  }

  const HigherOrderOp& op_;
  const Value& graph_;
  const Values& additional_;
};

Value associative_scan(const HigherOrderOp& op, const Values& args) {
  const Values xs = list_at(op, args, 1), additional = list_at(op, args, 2);
  const std::int64_t extent = extent_of(op, xs, /*may_be_empty=*/true);
  const bool empty =
      std::ranges::any_of(xs, [](const Value& x) { return x.toTensor().numel() == 0; });
  Values out = extent < 2 || empty ? xs : AssociativeScan(op, args[0], additional).run(xs);
  if (extent < 2 || empty)
    for (Value& x : out) x = x.toTensor().clone();
  return tuple_of(std::move(out));
}

Value map(const HigherOrderOp& op, const Values& args) {
  const Values xs = list_at(op, args, 1), additional = list_at(op, args, 2);
  const std::int64_t extent = extent_of(op, xs);
  const std::int64_t steps = is_meta(args[1]) ? 1 : extent;
  Columns columns(op);
  bool is_list = false;
  for (std::int64_t i = 0; i < steps; ++i) {
    throw_if_stopped(StopScope::current());
    const Values inputs = joined(slices_at(xs, i), additional);
    const Value result = run_graph(op, args[0], inputs);
    refuse_shared_memory(op, result, inputs);
    is_list = is_sequence(result);
    columns.add(is_list ? elements(result) : Values{result});
  }
  Values out = columns.stack(extent);
  return is_list ? tuple_of(std::move(out)) : out[0];
}

Value with_grad_mode(const HigherOrderOp& op, const Values& args) {
  if (!args[0].isBool())
    refuse(op, "the first argument is a " + describe(args[0]) + ", wanted a bool");
  const at::AutoGradMode mode(args[0].toBool());
  return run_graph(op, args[1], {args.begin() + 2, args.end()});
}

/// torch.autocast of one device type.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype, bool enabled, bool cache)
      : device_(device),
        dtype_(at::autocast::get_autocast_dtype(device)),
        enabled_(at::autocast::is_autocast_enabled(device)),
        cache_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::increment_nesting();
    at::autocast::set_autocast_cache_enabled(cache);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
    at::autocast::set_autocast_cache_enabled(cache_);
  }

 private:
  at::DeviceType device_;
  at::ScalarType dtype_;
  bool enabled_, cache_;
};

Value with_autocast(const HigherOrderOp& op, const Values& args) {
  auto fits = [&](std::size_t index, bool good, const char* wanted) {
    if (!good)
      refuse(op, "argument " + std::to_string(index + 1) + " is a " + describe(args[index]) +
                     ", wanted " + wanted);
  };
  fits(0, args[0].isString(), "the name of a device type");
  fits(1, args[1].isNone() || args[1].isInt(), "a dtype or None");
  fits(2, args[2].isBool(), "a bool");
  fits(3, args[3].isNone() || args[3].isBool(), "a bool or None");
  const at::DeviceType device = at::Device(args[0].toStringRef()).type();
  if (!at::autocast::is_autocast_available(device))
    refuse(op, "there is no autocast for device type " + str_repr(args[0].toStringRef()));
  const Values operands(args.begin() + 5, args.end());
  // Tensors without memory are never cast; FakeTensorProp then takes zeros.
  for (const Value& operand : operands)
    TORCH_CHECK_NOT_IMPLEMENTED(!is_meta(operand) || device == at::kMeta,
                                "autocast of device type ", args[0].toStringRef(),
                                " for tensors without memory");
  const Autocast mode(
      device,
      args[1].isNone() ? at::autocast::get_autocast_dtype(device)
                       : static_cast<at::ScalarType>(args[1].toInt()),
      args[2].toBool(),
      args[3].isNone() ? at::autocast::is_autocast_cache_enabled() : args[3].toBool());
  return run_graph(op, args[4], operands);
}

}  // namespace

std::span<const HigherOrderOp> higher_order_ops() { return kOps; }

const HigherOrderOp* find_higher_order(std::string_view function_name) {
  if (!function_name.starts_with(kHigherOrderPrefix)) return nullptr;
  function_name.remove_prefix(kHigherOrderPrefix.size());
  const auto* op = std::ranges::lower_bound(kOps, function_name, {}, &HigherOrderOp::name);
  return op != std::end(kOps) && op->name == function_name ? op : nullptr;
}

void set_graph_caller(GraphCaller caller) noexcept {
  graph_caller.store(caller, std::memory_order_release);
}

Value call_higher_order(const HigherOrderOp& op, Values& args, const KwValues& kwargs) {
  const std::size_t least = op.first_operand + op.num_lists;
  // torch 2.15 adds the indices of written operands as text, which running needs not.
  if (op.num_lists > 0 && args.size() == least + 1 && args.back().isString()) args.pop_back();
  if (!kwargs.empty() || args.size() < least || (op.num_lists > 0 && args.size() > least))
    refuse(op, "takes " + std::to_string(least) + (op.num_lists > 0 ? "" : " or more") +
                   " arguments by position, found " + std::to_string(args.size()) + " and " +
                   std::to_string(kwargs.size()) + " by name");
  switch (op.kind) {
    case Kind::kAssociativeScan:
      return associative_scan(op, args);
    case Kind::kCond:
      return cond(op, args);
    case Kind::kWhileLoop:
      return while_loop(op, args);
    case Kind::kScan:
      return scan(op, args);
    case Kind::kMap:
      return map(op, args);
    case Kind::kGradMode:
      return with_grad_mode(op, args);
    case Kind::kAutocast:
      return with_autocast(op, args);
    case Kind::kInvoke:
      return run_graph(op, args[0], {args.begin() + 2, args.end()});
  }
  FX_ASSERT(false, "unknown higher-order operator");
}

}  // namespace fx
