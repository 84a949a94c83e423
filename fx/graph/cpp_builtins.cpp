#include "fx/graph/cpp_builtins.h"

#include "fx/base/error.h"
#include "fx/graph/node.h"

namespace fx::cpp {

using Kind = Argument::Kind;

void not_expressible(const Node& node, std::string_view why) {
  throw GraphError(ErrorCode::kNotExpressible,
                   "cannot write C++ code for " + node.format_node() + ": " + std::string(why));
}

Expr Builtins::assert_call(const Node& node) {
  const Expr condition = node.num_args() > 0 ? expr(node.args()[0]) : Expr{};
  const Expr message = message_of(node.args(), nodes_);
  if (message.type != Type::kString) not_expressible(node, "a message that is no text");
  if (condition.type == Type::kTensor)
    return {
        Type::kNone, "TORCH_CHECK(" + condition.text + ".item<bool>(), " + message.text + ")", {}};
  if (condition.type != Type::kBool)
    not_expressible(node, "a condition that is neither tensor nor bool");
  return {Type::kNone, "TORCH_CHECK(" + condition.text + ", " + message.text + ")", {}};
}

Expr Builtins::on_numbers(const Node& node, const Operator& op) {
  const auto args = node.args();
  auto is_number = [](const Expr& e) { return e.type == Type::kInt || e.type == Type::kFloat; };
  const Expr a = !args.empty() ? expr(args[0]) : Expr{};
  if (args.size() == 1 && op.name == "neg" && is_number(a))
    return {a.type, "-(" + a.text + ")", {}};
  if (args.size() != 2) not_expressible(node, "operands that are neither tensors nor numbers");
  const Expr b = expr(args[1]);
  if (auto compared = equality(a, b, op.infix)) return *compared;
  if (!is_number(a) || !is_number(b))
    not_expressible(node, "operands that are neither tensors nor numbers");
  const bool ints = a.type == Type::kInt && b.type == Type::kInt;
  const bool comparison = op.infix.size() == 2 || op.infix == "<" || op.infix == ">";
  if (!op.infix.empty())
    return {comparison ? Type::kBool
            : ints     ? Type::kInt
                       : Type::kFloat,
            a.text + " " + std::string(op.infix) + " " + b.text,
            {}};
  if (op.name == "truediv")
    return {Type::kFloat, "static_cast<double>(" + a.text + ") / (" + b.text + ")", {}};
  if (ints && (op.name == "floordiv" || op.name == "mod")) {
    helpers_.integers = true;
    return {Type::kInt,
            (op.name == "mod" ? "floor_mod(" : "floor_div(") + a.text + ", " + b.text + ")",
            {}};
  }
  not_expressible(node, "this operator on numbers has no C++ form");
}

Expr Builtins::attribute(const Node& node, const Expr& object, std::string_view name) {
  if (object.type != Type::kTensor) not_expressible(node, "an attribute of what is no tensor");
  struct Row {
    std::string_view name;
    Type type;
    std::string_view text;  // after the object, or a function before it
  };
  constexpr Row kRows[] = {{"H", Type::kTensor, ".matrix_H()"},
                           {"T", Type::kTensor, ".numpy_T()"},
                           {"data", Type::kTensor, ".detach()"},
                           {"device", Type::kDevice, ".device()"},
                           {"dtype", Type::kDtype, ".scalar_type()"},
                           {"imag", Type::kTensor, "at::imag"},
                           {"is_leaf", Type::kBool, ".is_leaf()"},
                           {"layout", Type::kLayout, ".layout()"},
                           {"mH", Type::kTensor, ".mH()"},
                           {"mT", Type::kTensor, ".mT()"},
                           {"ndim", Type::kInt, ".dim()"},
                           {"real", Type::kTensor, "at::real"},
                           {"requires_grad", Type::kBool, ".requires_grad()"},
                           {"shape", Type::kIntList, ".sizes().vec()"}};
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    if (row.text.starts_with('.')) return {row.type, object.text + std::string(row.text), {}};
    return {row.type, std::string(row.text) + "(" + object.text + ")", {}};
  }
  not_expressible(node, "this attribute has no C++ form");
}

Expr Builtins::get_item(const Node& node, const Argument& object_argument, const Argument& index) {
  const Expr object = expr(object_argument);
  if (object.type == Type::kTensor)
    return {Type::kTensor, object.text + ".index(" + tensor_index(node, index) + ")", {}};
  if (index.kind() != Kind::kInt)
    not_expressible(node, "an index of a list that is no constant int");
  const std::int64_t at = index.to_int();
  if (object.type == Type::kTuple) {
    const auto size = static_cast<std::int64_t>(object.items.size());
    const std::int64_t position = at < 0 ? at + size : at;
    if (position < 0 || position >= size) not_expressible(node, "the index is out of range");
    return {object.items[static_cast<std::size_t>(position)],
            "std::get<" + std::to_string(position) + ">(" + object.text + ")",
            {}};
  }
  Type item;
  switch (object.type) {
    case Type::kTensorList:
      item = Type::kTensor;
      break;
    case Type::kIntList:
      item = Type::kInt;
      break;
    case Type::kFloatList:
      item = Type::kFloat;
      break;
    default:
      not_expressible(node, "an item of what is neither tensor nor list");
  }
  const std::string position =
      at < 0 ? object.text + ".size() - " + std::to_string(-at) : std::to_string(at);
  return {item, object.text + ".at(" + position + ")", {}};
}

Expr Builtins::set_item(const Node& node) {
  const Expr object = expr(node.args()[0]), value = expr(node.args()[2]);
  if (object.type != Type::kTensor) not_expressible(node, "an item of what is no tensor");
  if (value.type != Type::kTensor && value.type != Type::kInt && value.type != Type::kFloat &&
      value.type != Type::kBool)
    not_expressible(node, "a value that is neither tensor nor number");
  const std::string index = tensor_index(node, node.args()[1]);
  return {Type::kNone, object.text + ".index_put_(" + index + ", " + value.text + ")", {}};
}

// "{0, at::indexing::Slice(1, at::indexing::None)}"
std::string Builtins::tensor_index(const Node& node, const Argument& index) {
  helpers_.indexing = true;
  if (index.kind() != Kind::kTuple) return "{" + one_index(node, index) + "}";
  std::string out = "{";
  for (const Argument& item : index.items())
    out += (out.size() > 1 ? ", " : "") + one_index(node, item);
  return out + "}";
}

std::string Builtins::one_index(const Node& node, const Argument& index) {
  switch (index.kind()) {
    case Kind::kNone:
      return "at::indexing::None";
    case Kind::kEllipsis:
      return "at::indexing::Ellipsis";
    case Kind::kSlice: {
      std::string out = "at::indexing::Slice(";
      for (std::size_t i = 0; i < 3; ++i) {
        const Argument& bound = index.items()[i];
        const Expr e = expr(bound);
        if (e.type != Type::kInt && e.type != Type::kNone)
          not_expressible(node, "a slice that is no int");
        out += (i ? ", " : "") + (bound.is_none() ? "at::indexing::None" : e.text);
      }
      return out + ")";
    }
    case Kind::kList: {
      const Expr list = expr(index);
      if (list.type != Type::kIntList) not_expressible(node, "an index list that is not of ints");
      return "at::tensor(" + list.text + ", at::kLong)";
    }
    default: {
      const Expr e = expr(index);
      if (e.type != Type::kInt && e.type != Type::kBool && e.type != Type::kTensor)
        not_expressible(node, "an index that is neither int, bool nor tensor");
      return e.text;
    }
  }
}

}  // namespace fx::cpp
