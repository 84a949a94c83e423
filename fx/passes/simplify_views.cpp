#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "fx/passes/operation.h"
#include "fx/passes/simplify_context.h"

/// Rules of the pass simplify that make one view of two.
namespace fx::detail {
namespace {

using Ints = std::vector<std::int64_t>;

// The sizes or dimensions behind the first argument, as a list or one by one, all of them known.
std::optional<Ints> literal_ints(const Node& node) {
  if (!node.kwargs().empty() || node.num_args() < 2) return std::nullopt;
  const Argument& first = node.args()[1];
  const bool is_list =
      first.kind() == Argument::Kind::kList || first.kind() == Argument::Kind::kTuple;
  if (is_list && node.num_args() != 2) return std::nullopt;
  const std::span<const Argument> items =
      is_list ? std::span<const Argument>(first.items()) : node.args().subspan(1);
  Ints out;
  for (const Argument& item : items) {
    if (item.kind() != Argument::Kind::kInt) return std::nullopt;
    out.push_back(item.to_int());
  }
  return out;
}

bool is_transpose(const Node& node) {
  const std::string_view name = operation_of(node);
  return name == "transpose" || name == "swapaxes" || name == "swapdims";
}

struct Order {
  std::string_view name;
  Ints dims;  // of permute: all; of transpose: the two
};

std::optional<Order> order_of(const Node& node) {
  const std::string_view name = operation_of(node);
  if (name == "t" && node.num_args() == 1 && node.kwargs().empty()) return Order{"t", {}};
  if (name != "permute" && !is_transpose(node)) return std::nullopt;
  const auto dims = literal_ints(node);
  if (!dims || (name != "permute" && dims->size() != 2)) return std::nullopt;
  return Order{name == "permute" ? name : "transpose", *dims};
}

// Where each dimension of the result comes from; nothing for an order that does not fit the rank.
std::optional<Ints> permutation(const Order& order, std::int64_t rank) {
  Ints out(static_cast<std::size_t>(rank));
  std::iota(out.begin(), out.end(), 0);
  const auto in_range = [&](std::int64_t dim) { return dim >= -rank && dim < rank; };
  const auto index = [&](std::int64_t dim) {
    return static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
  };
  if (order.name == "t") {
    if (rank > 2) return std::nullopt;
    std::reverse(out.begin(), out.end());
    return out;
  }
  if (!std::ranges::all_of(order.dims, in_range)) return std::nullopt;
  if (order.name == "transpose") {
    std::swap(out[index(order.dims[0])], out[index(order.dims[1])]);
    return out;
  }
  if (order.dims.size() != out.size()) return std::nullopt;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::int64_t>(index(order.dims[i]));
  return out;
}

bool is_swap_back(const Order& a, const Order& b) {
  if (a.name != b.name || a.name == "permute") return false;
  return a.dims == b.dims || (a.dims[0] == b.dims[1] && a.dims[1] == b.dims[0]);
}

// view or reshape to sizes; not the view of the bits as another dtype.
bool reshapes(const Node& node, std::string_view name) {
  if (operation_of(node) != name || !node.kwargs().empty() || node.num_args() < 2) return false;
  const Argument& first = node.args()[1];
  return first.is_aggregate() || first.kind() == Argument::Kind::kInt ||
         (first.is_node() && node.op() == Opcode::kCallMethod && node.num_args() > 2);
}

bool is_contiguous(const TensorMeta* meta) {
  return meta && meta->memory_format == c10::MemoryFormat::Contiguous;
}

struct Slice {
  std::int64_t dim, start, end;
};

// A slice with step 1 and bounds that count from the front.
std::optional<Slice> slice_of(const Node& node) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  if (!node.calls("aten::slice.Tensor") || !node.kwargs().empty()) return std::nullopt;
  const auto number = [&](std::size_t at, std::int64_t none) -> std::optional<std::int64_t> {
    if (at >= node.num_args() || node.args()[at].is_none()) return none;
    if (node.args()[at].kind() != Argument::Kind::kInt) return std::nullopt;
    return node.args()[at].to_int();
  };
  const auto dim = number(1, 0), start = number(2, 0), end = number(3, kEnd), step = number(4, 1);
  if (!dim || !start || !end || *start < 0 || *end < 0 || step != 1) return std::nullopt;
  return Slice{*dim, *start, *end};
}

}  // namespace

bool simplify_permute_permute(SimplifyContext& context, Node& node) {
  const auto outer = order_of(node);
  Node* inner = outer ? context.inner_of(node) : nullptr;
  const auto order = inner ? order_of(*inner) : std::nullopt;
  if (!order) return false;
  Node& x = inner->args()[0].node();
  if (is_swap_back(*outer, *order)) {
    context.replace(node, x);
    return true;
  }
  std::optional<std::int64_t> rank;
  if (outer->name == "permute") rank = static_cast<std::int64_t>(outer->dims.size());
  if (order->name == "permute") rank = static_cast<std::int64_t>(order->dims.size());
  if (const TensorMeta* meta = rank ? nullptr : context.meta_of(x)) rank = meta->dim();
  if (!rank) return false;
  const auto first = permutation(*order, *rank);
  const auto second = permutation(*outer, *rank);
  if (!first || !second) return false;
  Ints dims;
  for (const std::int64_t dim : *second) dims.push_back((*first)[static_cast<std::size_t>(dim)]);
  if (std::ranges::is_sorted(dims)) {
    context.replace(node, x);
  } else {
    context.retarget(node, "permute", "", {x, dims});
  }
  return true;
}

bool simplify_view_view(SimplifyContext& context, Node& node) {
  if (!reshapes(node, "view") && !reshapes(node, "reshape")) return false;
  Node* inner = context.inner_of(node);
  if (!inner) return false;
  Node& x = inner->args()[0].node();
  // A reshape of something that does not lie in one piece may be a copy.
  if (!reshapes(*inner, "view") &&
      !(reshapes(*inner, "reshape") && is_contiguous(context.meta_of(x))))
    return false;
  context.rewire(node, with_input(node, x));
  return true;
}

bool simplify_squeeze_unsqueeze(SimplifyContext& context, Node& node) {
  const std::string_view name = operation_of(node);
  if ((name != "squeeze" && name != "select") || !node.kwargs().empty() ||
      node.num_args() != (name == "squeeze" ? 2u : 3u))
    return false;
  if (name == "select" && !is_int(&node.args()[2], 0) && !is_int(&node.args()[2], -1)) return false;
  const Node* inner = context.inner_of(node);
  if (!inner || operation_of(*inner) != "unsqueeze" || inner->num_args() != 2 ||
      !inner->kwargs().empty() || inner->args()[1].kind() != Argument::Kind::kInt ||
      !is_int(&node.args()[1], inner->args()[1].to_int()))
    return false;
  context.replace(node, inner->args()[0].node());
  return true;
}

bool simplify_expand_expand(SimplifyContext& context, Node& node) {
  if (operation_of(node) != "expand") return false;
  Node* inner = context.inner_of(node);
  if (!inner || operation_of(*inner) != "expand") return false;
  const auto first = literal_ints(*inner);
  const auto second = literal_ints(node);
  if (!first || !second || first->size() > second->size()) return false;
  for (const std::int64_t size : *second)
    if (size < 0) return false;
  // Only what is no error now: a size stays, or is 1 before.
  const std::size_t added = second->size() - first->size();
  for (std::size_t i = 0; i < first->size(); ++i)
    if ((*first)[i] != (*second)[added + i] && (*first)[i] != 1 && (*first)[i] != -1) return false;
  context.rewire(node, with_input(node, inner->args()[0]));
  return true;
}

bool simplify_slice_slice(SimplifyContext& context, Node& node) {
  const auto outer = slice_of(node);
  Node* inner = outer ? context.inner_of(node) : nullptr;
  const auto first = inner ? slice_of(*inner) : std::nullopt;
  if (!first || first->dim != outer->dim) return false;
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const auto sum = [](std::int64_t a, std::int64_t b) { return a > kEnd - b ? kEnd : a + b; };
  const std::int64_t start = sum(first->start, outer->start);
  const std::int64_t end = std::min(first->end, sum(first->start, outer->end));
  context.rewire(node, {inner->args()[0], outer->dim, start, end});
  return true;
}

}  // namespace fx::detail
