#include "fx/passes/operation.h"

namespace fx {

std::string_view operation_of(const Node& node) {
  if (node.op() == Opcode::kCallMethod) return node.target().str();
  if (node.op() != Opcode::kCallFunction) return {};
  const Function& function = *node.target().function();
  // Operators of others may do anything under any name.
  const bool is_foreign =
      function.kind() == FunctionKind::kWrapped ||
      (function.kind() == FunctionKind::kOperator && !function.name().starts_with("aten::"));
  return is_foreign ? std::string_view() : function.base_name();
}

Node* input_of(const Node& node) {
  const Argument* input = node.num_args() > 0 ? &node.args()[0] : node.find_kwarg("input");
  return input ? input->node_or_null() : nullptr;
}

bool is_number(const Argument* argument, double wanted) {
  if (!argument) return false;
  return (argument->kind() == Argument::Kind::kInt || argument->kind() == Argument::Kind::kFloat) &&
         argument->to_double() == wanted;
}

bool is_int(const Argument* argument, std::int64_t wanted) {
  return argument && argument->kind() == Argument::Kind::kInt && argument->to_int() == wanted;
}

}  // namespace fx
