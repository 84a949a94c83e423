#include "fx/capture/value_sizes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "fx/base/text.h"
#include "fx/capture/program_isolation.h"

namespace fx {
namespace {

// --- other numbers of items ----------------------------------------------------------------------

bool is_mask(const at::Tensor& index) {
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

// Operators whose second argument may be a list of masks.
bool takes_indices(std::string_view name) {
  for (std::string_view each : {"aten::index", "aten::index_put", "aten::index_put_",
                                "aten::_index_put_impl_", "aten::_unsafe_index"})
    if (name == each) return true;
  return false;
}

bool has_mask(const c10::IValue& indices) {
  if (indices.isTensorList()) return std::ranges::any_of(indices.toTensorVector(), is_mask);
  return indices.isOptionalTensorList() &&
         std::ranges::any_of(indices.toOptionalTensorVector(), [](const auto& index) {
           return index && index->defined() && is_mask(*index);
         });
}

std::int64_t changed(std::int64_t size, ValueSizes change) {
  switch (change) {
    case ValueSizes::kOneMore:
      return size + 1;
    case ValueSizes::kMany:
      return 4 * size + 3;
    case ValueSizes::kTwo:
      return 2;
    case ValueSizes::kOne:
      return 1;
    case ValueSizes::kNone:
      return 0;
    default:
      return size;
  }
}

// Cut, or with the last item repeated; zeros where there is none.
at::Tensor with_other_size(const at::Tensor& tensor, std::int64_t dim, ValueSizes change) {
  if (!tensor.defined() || tensor.dim() == 0) return tensor;
  const std::int64_t size = tensor.size(dim), wanted = changed(size, change);
  if (wanted <= size) return tensor.narrow(dim, 0, wanted).clone();
  if (size == 0) {
    auto sizes = tensor.sizes().vec();
    sizes[static_cast<std::size_t>(dim < 0 ? dim + tensor.dim() : dim)] = wanted;
    return at::zeros(sizes, tensor.options());
  }
  const at::Tensor items = at::arange(wanted, at::device(tensor.device()).dtype(at::kLong));
  return tensor.index_select(dim, items.clamp_max(size - 1));
}

// Indices that select what the masks among these select, or another number of that.
c10::IValue other_indices(const c10::IValue& indices, ValueSizes change) {
  c10::List<std::optional<at::Tensor>> out;
  const auto add = [&](const at::Tensor& index) {
    if (!is_mask(index)) return out.push_back(index);
    const at::Tensor rows = with_other_size(index.nonzero(), 0, change);
    for (std::int64_t dim = 0; dim < index.dim(); ++dim) out.push_back(rows.select(1, dim));
  };
  if (indices.isTensorList()) {
    for (const at::Tensor& index : indices.toTensorVector()) add(index);
    return out;
  }
  for (const std::optional<at::Tensor>& index : indices.toOptionalTensorVector())
    if (index && index->defined())
      add(*index);
    else
      out.push_back(std::nullopt);
  return out;
}

// --- recordings ----------------------------------------------------------------------------------

bool same_constants(const GraphModule::Constants& a, const GraphModule::Constants& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    const at::Tensor &s = x.second, &t = y.second;
    if (x.first != y.first || s.sizes() != t.sizes() || s.scalar_type() != t.scalar_type())
      return false;
    return s.is_same(t) || (s.layout() == at::kStrided && at::equal(s, t));
  });
}

bool same(const Recording& a, const Recording& b) {
  return a.graph->same_structure(*b.graph) && same_constants(a.constants, b.constants);
}

// What the numbers of items have to be.
struct Holds {
  bool for_other = true;                  // than those of the example
  std::optional<std::int64_t> least = 0;  // if so; nothing: the example's
};

Holds holds_for(const Program& program, const std::vector<at::Tensor>& inputs) {
  ProgramIsolation isolation(program.root);
  const auto run = [&](ValueSizes change) {
    isolation.restore();
    return record(program, copies_for_run(inputs), {.value_sizes = change});
  };
  const Recording usual = run(ValueSizes::kAsTheyAre);
  const auto shows_the_same = [&](ValueSizes change) {
    try {
      return same(usual, run(change));
    } catch (const std::exception&) {
      return false;
    }
  };
  if (!shows_the_same(ValueSizes::kOneMore) || !shows_the_same(ValueSizes::kMany))
    return {.for_other = false};
  if (shows_the_same(ValueSizes::kOne)) return {.least = shows_the_same(ValueSizes::kNone) ? 0 : 1};
  return {.least = shows_the_same(ValueSizes::kTwo) ? std::optional(2) : std::nullopt};
}

// Asserts that a size is what the program is known to go this way for.
void assert_size(Graph& graph, const ValueSized& value, std::int64_t dim, std::int64_t size,
                 const Holds& holds) {
  const auto point = graph.inserting_before(*value.node->next());
  const std::int64_t least = holds.for_other ? holds.least.value_or(size) : size;
  const std::string source = value.where.source();
  Node& found = graph.call_function("aten::sym_size.int", {*value.node, dim});
  Node& is_known =
      graph.call_function(holds.for_other ? "operator.ge" : "operator.eq", {found, least});
  graph.call_function(
      "torch._assert",
      {is_known,
       Argument::tuple(
           {"the program looks at a size that depends on values: dimension " + std::to_string(dim) +
                " of " + std::string(value.node->name()) + " was " + std::to_string(size) +
                " when it was captured" + (source.empty() ? "" : ", at " + source) + "; " +
                (holds.for_other ? "below " + std::to_string(least) + " it may go another way"
                                 : "for other sizes it may go another way") +
                ", and now it is",
            found,
            ". Capture again for such inputs, or call it through fx::capture_with_guards, which "
            "does"})});
}

}  // namespace

bool has_sizes_of_values(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args) {
  const std::string& name = op.schema().name();
  if (takes_indices(name)) return op.hasTag(at::Tag::dynamic_output_shape) && has_mask(args[1]);
  if (name == "aten::one_hot") return args[1].isInt() && args[1].toInt() < 0;
  // Of one argument, and lists: LibTorch does not tag them.
  if (name == "aten::nonzero_numpy" || (name == "aten::where" && args.size() == 1)) return true;
  return op.hasTag(at::Tag::dynamic_output_shape);
}

std::optional<std::int64_t> dimension_of_items(const c10::OperatorHandle& op,
                                               c10::ArrayRef<c10::IValue> args) {
  const std::string& name = op.schema().name();
  if (name == "aten::one_hot") return -1;
  if (name == "aten::unique_dim" || name == "aten::unique_dim_consecutive") return args[1].toInt();
  if (name == "aten::unique_consecutive") return args[3].isInt() ? args[3].toInt() : 0;
  if (name == "aten::repeat_interleave")
    return args.size() == 4 && args[2].isInt() ? args[2].toInt() : 0;
  for (std::string_view each :
       {"aten::nonzero", "aten::argwhere", "aten::masked_select", "aten::nonzero_numpy",
        "aten::where", "aten::_unique", "aten::_unique2", "aten::bincount"})
    if (name == each) return 0;
  return std::nullopt;
}

void call_with_other_sizes(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                           ValueSizes change) {
  const std::string& name = op.schema().name();
  const std::size_t num_args = op.schema().arguments().size();
  if (takes_indices(name)) {
    c10::IValue& indices = (*stack)[stack->size() - num_args + 1];
    if (has_mask(indices)) indices = other_indices(indices, change);
    return op.callBoxed(stack);
  }
  const auto args = torch::jit::last(*stack, num_args).vec();
  const bool of_values = has_sizes_of_values(op, args);
  op.callBoxed(stack);
  if (!of_values || !dimension_of_items(op, args)) return;
  const std::size_t first = stack->size() - op.schema().returns().size();
  c10::IValue& result = (*stack)[first];
  if (result.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : result.toTensorVector())
      list.push_back(with_other_size(tensor, 0, change));
    result = list;
    return;
  }
  const std::int64_t dim = *dimension_of_items(op, args);
  const std::int64_t items = result.toTensor().size(dim);
  result = with_other_size(result.toTensor(), dim, change);
  // The counts of unique, and not what says where each element went.
  c10::IValue& last = stack->back();
  if (name.find("unique") != std::string::npos && stack->size() - first > 2 && last.isTensor() &&
      last.toTensor().dim() == 1 && last.toTensor().size(0) == items)
    last = with_other_size(last.toTensor(), 0, change);
}

void check_value_sizes(const Program& program, const std::vector<at::Tensor>& inputs,
                       Recording& recording) {
  if (recording.value_sizes.empty()) return;
  const Holds holds =
      program.options.pre_dispatch ? holds_for(program, inputs) : Holds{.for_other = false};
  if (holds.for_other && holds.least == 0) return;
  for (const ValueSized& value : recording.value_sizes)
    for (const auto& [dim, size] : value.sizes)
      assert_size(*recording.graph, value, dim, size, holds);
  recording.has_checks = true;
  // Writes and random numbers may come first.
  recording.effects_before_checks = true;
}

bool has_size_checks(const Graph& graph) {
  return std::ranges::any_of(graph.find_calls("torch._assert"), [](const Node* check) {
    const auto inputs = check->all_input_nodes();
    return std::ranges::any_of(
        inputs, [](const Node* input) { return input->calls("aten::sym_size.int"); });
  });
}

}  // namespace fx
