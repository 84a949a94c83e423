#include "fx/passes/decompose_sizes.h"

#include "fx/graph/tensor_meta.h"
#include "fx/graph/tensor_type.h"

namespace fx {
namespace {

// What a node is asked for all sizes of; null for any other node.
Node* sized_tensor(const Node& node) {
  if (!node.kwargs().empty() || node.num_args() == 0) return nullptr;
  const bool is_size =
      node.op() == Opcode::kCallMethod && node.target() == "size" && node.num_args() == 1;
  const bool is_shape = node.op() == Opcode::kCallFunction && node.target() == "builtins.getattr" &&
                        node.num_args() == 2 && node.args()[1] == Argument("shape");
  return is_size || is_shape ? node.args()[0].node_or_null() : nullptr;
}

// The sizes as far as they are the same in every run; nothing if not even their number is known.
std::optional<std::vector<TypeDim>> known_sizes(const Node& tensor) {
  if (const auto type = TensorType::parse(tensor.type()); type && !type->is_dyn())
    return type->dims();
  if (const TensorMeta* meta = tensor_meta(tensor)) return std::vector<TypeDim>(meta->shape.size());
  return std::nullopt;
}

// The size that operator.getitem(size, index) gives; null if it gives none.
const Argument* item_of(const Node& user, const std::vector<Argument>& sizes) {
  if (user.op() != Opcode::kCallFunction || !(user.target() == "operator.getitem") ||
      user.num_args() != 2 || user.args()[1].kind() != Argument::Kind::kInt)
    return nullptr;
  const auto count = static_cast<std::int64_t>(sizes.size());
  const std::int64_t index = user.args()[1].to_int();
  if (index < -count || index >= count) return nullptr;
  return &sizes[static_cast<std::size_t>(index < 0 ? index + count : index)];
}

void put_in_place(Graph& graph, Node& node, const Argument& value) {
  for (Node* user : node.users().to_vector()) user->replace_input_with(node, value);
  graph.erase_node(node);
}

}  // namespace

PassResult decompose_sizes(GraphModule& module) {
  PassResult result;
  Graph& graph = module.graph();
  for (Node* node : graph.nodes().to_vector()) {
    Node* tensor = sized_tensor(*node);
    const auto known = tensor ? known_sizes(*tensor) : std::nullopt;
    if (!known) continue;
    std::vector<Argument> sizes;
    const auto guard = graph.inserting_before(*node);
    for (std::size_t i = 0; i < known->size(); ++i) {
      if (const auto number = (*known)[i].number())
        sizes.emplace_back(*number);
      else
        sizes.emplace_back(
            graph.call_function("aten::sym_size.int", {*tensor, static_cast<std::int64_t>(i)}));
    }
    for (Node* user : node->users().to_vector())
      if (const Argument* item = item_of(*user, sizes)) put_in_place(graph, *user, *item);
    put_in_place(graph, *node, Argument::tuple(sizes));
    for (const Argument& size : sizes)  // those that nobody asked for
      if (Node* made = size.node_or_null(); made && made->users().empty()) graph.erase_node(*made);
    ++result.rewrites;
  }
  result.changed = result.rewrites > 0;
  return result;
}

}  // namespace fx
