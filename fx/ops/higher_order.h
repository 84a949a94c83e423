#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fx/ops/function.h"
#include "fx/ops/value.h"

namespace fx {

inline constexpr std::string_view kHigherOrderPrefix = "torch.ops.higher_order.";

/// An operator that takes graphs (torch.ops.higher_order): which of its arguments they are, and
/// which are what the graphs take. docs/design/higher-order.md has what each one means.
struct HigherOrderOp {
  enum class Kind : std::uint8_t {
    kAssociativeScan,  ///< (graph, xs, additional)
    kCond,             ///< (predicate, graph, graph, operands)
    kWhileLoop,        ///< (graph, graph, carried, additional)
    kScan,             ///< (graph, init, xs, additional)
    kMap,              ///< (graph, xs, additional)
    kGradMode,         ///< (enabled, graph, operands...)
    kAutocast,         ///< (device, dtype, enabled, cache, graph, operands...)
    kInvoke,           ///< (graph, identifier, operands...)
  };
  Kind kind;
  std::string_view name;  ///< "cond"
  std::size_t first_graph;
  std::size_t num_graphs;
  std::size_t first_operand;
  /// Number of list arguments that hold the operands (of an associative scan the first one twice);
  /// 0: all arguments from first_operand on.
  std::size_t num_lists;
  /// call_higher_order with this row, as a built-in.
  Value (*run)(Values& args, KwValues& kwargs);

  bool is_graph(std::size_t argument) const noexcept {
    return argument >= first_graph && argument < first_graph + num_graphs;
  }
  /// Results share no memory with operands and with each other; enforced when they run.
  bool makes_new_values() const noexcept { return num_lists > 0; }
};

/// All of them.
std::span<const HigherOrderOp> higher_order_ops();

/// The row of "torch.ops.higher_order.cond"; null for other functions and for operators of that
/// kind which this library cannot run. O(1) for names without the prefix.
const HigherOrderOp* find_higher_order(std::string_view function_name);
inline const HigherOrderOp* find_higher_order(const Function& function) {
  return function.kind() == FunctionKind::kTorch ? find_higher_order(function.name()) : nullptr;
}

/// Runs a higher-order operator. Graphs are values that get_attr of a GraphModule gives.
///
/// Where tensors have no memory (device meta), so that nobody knows which way a predicate goes,
/// both branches run and have to agree, and a loop runs once.
/// @throws RunError kWrongType for arguments, results of graphs and carried values that are not
///   what they have to be, kShapeMismatch, kNotRunnable; what the graphs throw.
Value call_higher_order(const HigherOrderOp& op, Values& args, const KwValues& kwargs);

/// How a graph as a value is called: graph/ knows modules, this stage does not. Set once, before
/// main. Thread safe.
using GraphCaller = Value (*)(const Value& graph, Values inputs);
void set_graph_caller(GraphCaller caller) noexcept;

}  // namespace fx
