#include "fx/capture/meta_tracer.h"

#include <ATen/ATen.h>

#include <functional>
#include <optional>

#include "fx/graph/argument_value.h"
#include "fx/graph/module_types.h"
#include "fx/ops/call.h"

namespace fx {
namespace {

// `value` with every tensor in it replaced.
Value map_tensors(const Value& value, const std::function<at::Tensor(const at::Tensor&)>& map) {
  if (value.isTensor())
    return value.toTensor().defined() ? map(value.toTensor()) : value.toTensor();
  if (is_sequence(value)) {
    Values items;
    for (const Value& item : elements(value)) items.push_back(map_tensors(item, map));
    if (value.isTuple()) return c10::ivalue::Tuple::create(std::move(items));
    return make_list(std::move(items));
  }
  return value;
}

at::Tensor without_data(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

at::Tensor zeros_for(const at::Tensor& tensor) {
  return tensor.is_meta() ? at::zeros_like(tensor, tensor.options().device(at::kCPU)) : tensor;
}

// What a call gives for tensors without data; nothing where it cannot be run at all.
std::optional<Value> run(const std::function<Value(Values, KwValues, bool with_data)>& call,
                         const Values& args, const KwValues& kwargs) {
  at::NoGradGuard no_grad;
  try {
    return map_tensors(call(args, kwargs, false), without_data);
  } catch (const std::exception&) {
    // Not every operator runs without data.
  }
  try {
    Values zeros;
    for (const Value& arg : args) zeros.push_back(map_tensors(arg, zeros_for));
    KwValues named;
    for (const KwValue& arg : kwargs) named.push_back({arg.key, map_tensors(arg.value, zeros_for)});
    return map_tensors(call(std::move(zeros), std::move(named), true), without_data);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

struct Unknown {};

}  // namespace

void MetaTracer::learn(Node& node, Value value) {
  if (value.isTensor() && value.toTensor().defined()) node.meta().set("val", value.toTensor());
  values_.insert_or_assign(&node, std::move(value));
}

const at::Tensor* MetaTracer::known_tensor(const Node& node) const {
  return node.meta().get<at::Tensor>("val");
}

Node& MetaTracer::create_node(Opcode op, Target target, Args args, Kwargs kwargs,
                              std::string_view name, std::string_view type) {
  Node& node = Tracer::create_node(op, target, std::move(args), std::move(kwargs), name, type);
  values_.erase(&node);
  if (op == Opcode::kPlaceholder) {
    const auto given = inputs_.find(target.str());
    if (given != inputs_.end()) learn(node, without_data(given->second));
  }
  if (op != Opcode::kCallFunction && op != Opcode::kCallMethod) return node;
  // A wrapped function may do anything.
  if (op == Opcode::kCallFunction && target.function()->kind() == FunctionKind::kWrapped)
    return node;
  auto call = [&](Values values, KwValues named, bool) {
    return op == Opcode::kCallMethod
               ? call_method(target.str(), std::move(values), std::move(named))
               : fx::call(*target.function(), std::move(values), std::move(named));
  };
  auto [values, named, known] = inputs_of(node);
  if (!known) return node;
  if (std::optional<Value> result = run(call, values, named)) learn(node, std::move(*result));
  return node;
}

Argument MetaTracer::create_tensor_arg(const at::Tensor& tensor) {
  const Argument made = Tracer::create_tensor_arg(tensor);
  if (Node* node = made.node_or_null(); node && !values_.contains(node))
    learn(*node, without_data(tensor));
  return made;
}

void MetaTracer::trace_module(const torch::nn::Module& module, std::string_view path, Node& node) {
  Tracer::trace_module(module, path, node);
  auto [values, named, known] = inputs_of(node);
  if (!known) return;
  // A copy: training changes buffers.
  auto call = [&](Values args, KwValues kwargs, bool with_data) {
    const auto copy = with_data ? module.clone() : module.clone(at::Device(at::kMeta));
    return fx::call_module(*copy, std::move(args), std::move(kwargs));
  };
  if (std::optional<Value> result = run(call, values, named)) learn(node, std::move(*result));
}

MetaTracer::Inputs MetaTracer::inputs_of(const Node& node) const {
  Inputs inputs;
  auto read = [&](Node& input) -> Value {
    const auto found = values_.find(&input);
    if (found == values_.end()) throw Unknown();
    return found->second;
  };
  try {
    for (const Argument& argument : node.args()) inputs.args.push_back(value_of(argument, read));
    for (const KwArg& argument : node.kwargs())
      inputs.kwargs.push_back({argument.key, value_of(argument.value, read)});
    inputs.known = true;
  } catch (const Unknown&) {
  }
  return inputs;
}

}  // namespace fx
