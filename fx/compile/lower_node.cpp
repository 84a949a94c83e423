#include "fx/compile/lower_node.h"

#include <ATen/Functions.h>
#include <ATen/ops/item.h>

#include <bit>

#include "fx/base/error.h"
#include "fx/compile/unsupported.h"
#include "fx/graph/argument_value.h"
#include "fx/ops/builtins.h"
#include "fx/ops/call.h"

namespace fx::loops {

namespace {

// Stand-ins of numbers: values that no program has, by the index of the number.
constexpr std::int64_t kFirstInt = 0x1B'5A17'C3E1'0000;
constexpr std::uint64_t kFirstDouble = 0x0329'5A17'C3E1'0000;
constexpr std::size_t kMaxNumbers = 0x10000;

}  // namespace

std::optional<c10::ScalarType> number_type(const Node& node) {
  const auto* type = node.meta().get<std::string>("type");
  if (!type) return std::nullopt;
  if (*type == "int") return c10::ScalarType::Long;
  if (*type == "float") return c10::ScalarType::Double;
  return std::nullopt;
}

const Overload& resolve_call(const Node& node, Values args, KwValues kwargs,
                             torch::jit::Stack& stack) {
  if (node.op() == Opcode::kCallMethod) {
    const std::string& name = node.target().str();
    if (!is_operator_method(name)) throw Unsupported("method " + name + " is no operator");
    return select_and_bind(OpInfo::of_method(name), name, args, kwargs, stack);
  }
  if (node.op() != Opcode::kCallFunction) throw Unsupported("not the call of an operator");
  const Function* function = node.target().function();
  if (find_builtin(function->name())) {
    // As Python: a number in front of a tensor asks the tensor.
    const bool reversed =
        function->name() == "operator.sub" && args.size() == 2 && !args[0].isTensor();
    const Function* tensor_function =
        tensor_function_of(reversed ? "operator.rsub" : function->name());
    if (!tensor_function) throw Unsupported(function->name() + " is no operator");
    if (reversed) std::swap(args[0], args[1]);
    function = tensor_function;
  }
  const OpInfo& info = OpInfo::of(*function);
  if (info.overloads.empty()) throw Unsupported(function->name() + " is no operator");
  return select_and_bind(info, function->name(), args, kwargs, stack);
}

// A tensor with the right dtype and sizes and no memory to speak of.
Value NodeLowering::stand_in(const Tensor& tensor) {
  std::vector<std::int64_t> sizes;
  for (Dim dim : tensor.dims) sizes.push_back(program_.shapes().example(dim));
  at::Tensor made = at::empty({}, at::TensorOptions(tensor.type)).expand(sizes);
  tensors_[made.unsafeGetTensorImpl()] = tensor;
  keep_alive_.push_back(made);
  return made;
}

Tensor NodeLowering::add_input(const Node& node, c10::ScalarType type,
                               std::span<const std::int64_t> sizes) {
  Tensor tensor = program_.input(type, sizes);
  set(node, {.tensors = {tensor}});
  return tensor;
}

Tensor NodeLowering::add_number(const Node& node, c10::ScalarType type) {
  if (numbers_.size() == kMaxNumbers) throw Unsupported("so many numbers");
  Tensor tensor = program_.scalar(type);
  const std::size_t index = numbers_.size();
  numbers_.push_back(tensor);
  set(node, {.tensors = {tensor}, .is_number = true});
  values_[&node] = type == c10::ScalarType::Long
                       ? Value(kFirstInt + static_cast<std::int64_t>(index))
                       : Value(std::bit_cast<double>(kFirstDouble + index));
  return tensor;
}

// Null for a value that is the stand-in of no number.
const Tensor* NodeLowering::number_of(const Value& value) const {
  std::uint64_t index = kMaxNumbers;
  if (value.isTensor()) {
    // Where the schema has a tensor a number became one.
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || !tensor.unsafeGetTensorImpl()->is_wrapped_number()) return nullptr;
    const c10::Scalar number = tensor.item();
    return number.isFloatingPoint() || number.isIntegral(false) ? number_of(Value(number))
                                                                : nullptr;
  }
  if (value.isInt())
    index = static_cast<std::uint64_t>(value.toInt() - kFirstInt);
  else if (value.isDouble())
    index = std::bit_cast<std::uint64_t>(value.toDouble()) - kFirstDouble;
  return index < numbers_.size() ? &numbers_[static_cast<std::size_t>(index)] : nullptr;
}

void NodeLowering::set(const Node& node, NodeExpr expr) {
  exprs_[&node] = std::move(expr);
  values_.erase(&node);
}

const NodeExpr* NodeLowering::find(const Node& node) const {
  const auto found = exprs_.find(&node);
  return found == exprs_.end() ? nullptr : &found->second;
}

Value NodeLowering::read(const Node& node) {
  if (const auto known = values_.find(&node); known != values_.end()) {
    numbers_read_ += number_of(known->second) ? 1 : 0;
    return known->second;
  }
  const NodeExpr* expr = find(node);
  if (!expr)
    throw Unsupported("argument " + std::string(node.name()) + " is no tensor that kernels read");
  Value value;
  if (expr->is_tuple) {
    std::vector<Value> items;
    for (const Tensor& tensor : expr->tensors) items.push_back(stand_in(tensor));
    value = c10::ivalue::Tuple::create(std::move(items));
  } else {
    value = stand_in(expr->tensors[0]);
  }
  values_[&node] = value;
  return value;
}

LowerArg NodeLowering::argument(const Value& value) {
  LowerArg arg;
  if (const Tensor* number = number_of(value)) {
    ++numbers_found_;
    arg.tensor = *number;
    arg.is_number = true;
    return arg;
  }
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor& tensor = value.toTensor();
    if (const auto found = tensors_.find(tensor.unsafeGetTensorImpl()); found != tensors_.end()) {
      arg.tensor = found->second;
      return arg;
    }
    arg.is_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    if (!arg.is_number) throw Unsupported("a constant tensor");
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    for (const Value& item : elements(value)) arg.items.push_back(argument(item));
    return arg;
  }
  arg.constant = value;
  return arg;
}

const NodeExpr& NodeLowering::lower(const Node& node) {
  if (node.calls("operator.getitem") && node.args().size() == 2 && node.arg(0).is_node() &&
      node.arg(1).kind() == Argument::Kind::kInt) {
    if (const NodeExpr* tuple = find(node.arg(0).node()); tuple && tuple->is_tuple) {
      const auto size = static_cast<std::int64_t>(tuple->tensors.size());
      std::int64_t index = node.arg(1).to_int();
      if (index < 0) index += size;
      if (index < 0 || index >= size) throw Unsupported("an index out of range");
      NodeExpr item{.tensors = {tuple->tensors[static_cast<std::size_t>(index)]}};
      set(node, std::move(item));
      return exprs_.at(&node);
    }
  }
  numbers_read_ = 0;
  numbers_found_ = 0;
  const auto reader = [this](Node& input) { return read(input); };
  Values args;
  KwValues kwargs;
  for (const Argument& arg : node.args()) args.push_back(value_of(arg, reader));
  for (const auto& [key, arg] : node.kwargs()) kwargs.push_back({key, value_of(arg, reader)});
  torch::jit::Stack stack;
  const Overload* overload = nullptr;
  try {
    overload = &resolve_call(node, std::move(args), std::move(kwargs), stack);
  } catch (const Error& e) {
    throw Unsupported("no operator takes these arguments");
  }
  if (overload->mutates) throw Unsupported("writes to an argument");
  if (overload->random) throw Unsupported("draws random numbers");
  std::vector<LowerArg> lower_args;
  for (const Value& value : stack) lower_args.push_back(argument(value));
  // In a list, or as a bool or the float of an int: nothing that a stand-in can stand for.
  if (numbers_found_ != numbers_read_)
    throw Unsupported("a number that the graph computes is more than an operand");
  std::vector<Tensor> results = lower_operator(program_, *overload, lower_args);
  const auto& returns = overload->handle.schema().returns();
  const bool is_list = returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::ListType;
  NodeExpr expr{.is_tuple = is_list || returns.size() != 1, .tensors = std::move(results)};
  set(node, std::move(expr));
  return exprs_.at(&node);
}

}  // namespace fx::loops
