#include "fx/passes/fake_tensor_prop.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "fx/base/error.h"
#include "fx/graph/module_types.h"
#include "fx/graph/subgraphs.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/value_map.h"
#include "fx/ops/higher_order.h"
#include "fx/ops/op_info.h"
#include "fx/ops/rng_guard.h"
#include "fx/ops/value_tensors.h"
#include "fx/passes/graph_stand_in.h"
#include "fx/passes/nested.h"
#include "fx/passes/tools_common.h"

namespace fx {
namespace {

bool has_device_argument(const OpInfo& info) {
  return std::ranges::any_of(info.overloads, [](const Overload& overload) {
    return std::ranges::any_of(overload.rules,
                               [](const ArgRule& rule) { return rule.name == "device"; });
  });
}

// Whether the result depends on the elements of tensors: the schema says so by its tags.
void check_values_do_not_matter(const OpInfo& info, std::string_view name) {
  for (const Overload& overload : info.overloads)
    if (overload.handle.hasTag(at::Tag::dynamic_output_shape) ||
        overload.handle.hasTag(at::Tag::data_dependent_output))
      throw RunError(ErrorCode::kNotRunnable,
                     "what " + std::string(name) +
                         " gives depends on the values of its arguments, which are not known");
}

// Runs on zeros of the shapes at hand. In-place operators write to those.
template <typename Run>
Value on_zeros(Values args, KwValues kwargs, Run&& run) {
  map_tensors(args, kwargs, [](const at::Tensor& tensor) -> Value {
    if (!tensor.defined() || !tensor.is_meta()) return tensor;
    const auto options = tensor.options().device(at::kCPU);
    if (tensor.layout() != at::kStrided) return at::zeros(tensor.sizes(), options);
    return at::empty_strided(tensor.sizes(), tensor.strides(), options).zero_();
  });
  for (Value& arg : args)
    if (arg.isDevice()) arg = Value(c10::Device(c10::DeviceType::CPU));
  for (KwValue& kwarg : kwargs)
    if (kwarg.value.isDevice()) kwarg.value = Value(c10::Device(c10::DeviceType::CPU));
  return run(std::move(args), std::move(kwargs));
}

template <typename Run>
Value run_or_try_zeros(const Values& args, const KwValues& kwargs, Run&& run) {
  try {
    return run(args, kwargs);
  } catch (const c10::NotImplementedError&) {
    return on_zeros(args, kwargs, run);
  }
}

// tensor_meta on the devices that the tensors stand for.
void set_devices(NestedTensorMeta& meta, const Value& value, auto&& device_of) {
  if (auto* tensor = std::get_if<TensorMeta>(&meta.data)) {
    tensor->device = device_of(value.toTensor());
  } else if (auto* items = std::get_if<std::vector<NestedTensorMeta>>(&meta.data)) {
    const Values values = elements(value);
    for (std::size_t i = 0; i < items->size(); ++i) set_devices((*items)[i], values[i], device_of);
  }
}

bool has_loop(GraphModule& module) {
  bool found = false;
  for_each_graph_module(module, [&](GraphModule& nested) {
    for (const Node& node : nested.graph().nodes()) {
      const HigherOrderOp* op = higher_order_of(node);
      found |= op != nullptr && op->kind == HigherOrderOp::Kind::kWhileLoop;
    }
  });
  return found;
}

}  // namespace

Value FakeTensorProp::stand_in_for(const std::shared_ptr<GraphModule>& graph) {
  return graph_stand_in(graph, [this](GraphModule& nested, Values inputs) {
    return run_subgraph(nested, std::move(inputs));
  });
}

Value FakeTensorProp::run_subgraph(GraphModule& graph, Values inputs) {
  FakeTensorProp inner(graph);
  inner.devices_ = devices_;
  return inner.run(std::move(inputs));
}

Value FakeTensorProp::propagate(Values inputs) {
  const at::NoGradGuard no_grad;
  const RngGuard generators;
  for (Value& input : inputs) input = without_memory(input);
  return run(std::move(inputs));
}

Value FakeTensorProp::without_memory(const Value& value) {
  return map_tensors(value, [this](const at::Tensor& tensor) -> Value {
    if (!tensor.defined()) return tensor;
    auto& [original, known] = stand_ins_[tensor.unsafeGetTensorImpl()];
    if (!known.defined()) {
      original = tensor;
      const auto options = tensor.options().device(at::kMeta).requires_grad(false);
      known = tensor.layout() == at::kStrided
                  ? at::empty_strided(tensor.sizes(), tensor.strides(), options)
                  : at::empty(tensor.sizes(), options);
      devices_.insert_or_assign(known.unsafeGetTensorImpl(), std::pair(tensor.device(), known));
    }
    return known;
  });
}

Value FakeTensorProp::placed(const Value& result, Place place) {
  return map_tensors(result, [&](const at::Tensor& tensor) -> Value {
    if (!tensor.defined()) return tensor;
    at::Tensor own = tensor;
    if (!tensor.is_meta()) {
      const auto options = tensor.options().device(at::kMeta);
      own = tensor.layout() == at::kStrided
                ? at::empty_strided(tensor.sizes(), tensor.strides(), options)
                : at::empty(tensor.sizes(), options);
    }
    const auto known = devices_.find(own.unsafeGetTensorImpl());
    // x.to(device) gives x itself here, which stands for a tensor of another device.
    if (known != devices_.end() && place.is_given && known->second.first != place.device)
      own = own.detach();
    devices_.try_emplace(own.unsafeGetTensorImpl(), place.device, own);
    return own;
  });
}

// Puts the meta device in place of devices among the arguments. A result is on the last of them,
// else with the first tensor that has dimensions, else with the first one: numbers follow.
FakeTensorProp::Place FakeTensorProp::take_devices(Values& args, KwValues& kwargs) const {
  Place place{c10::Device(c10::DeviceType::CPU)};
  bool has_number = false, has_tensor = false;
  auto look = [&](const at::Tensor& tensor) {
    const auto known = devices_.find(tensor.unsafeGetTensorImpl());
    if (known == devices_.end() || has_tensor || (has_number && tensor.dim() == 0)) return;
    place.device = known->second.first;
    (tensor.dim() == 0 ? has_number : has_tensor) = true;
  };
  for (const Value& arg : args) for_each_tensor(arg, look);
  for (const KwValue& kwarg : kwargs) for_each_tensor(kwarg.value, look);
  auto take = [&](Value& value) {
    if (!value.isDevice()) return;
    place = {value.toDevice(), true};
    value = Value(c10::Device(c10::DeviceType::Meta));
  };
  for (Value& arg : args) take(arg);
  for (KwValue& kwarg : kwargs) take(kwarg.value);
  return place;
}

Value FakeTensorProp::get_attr(std::string_view target, Values args, KwValues kwargs) {
  return without_memory(Interpreter::get_attr(target, std::move(args), std::move(kwargs)));
}

Value FakeTensorProp::call_function(const Target& target, Values args, KwValues kwargs) {
  const OpInfo& info = OpInfo::of(*target.function());
  check_values_do_not_matter(info, target.str());
  if (const HigherOrderOp* op = find_higher_order(*target.function())) {
    // Under autocast only values tell dtypes: the graph itself runs, on zeros.
    const bool has_values = op->kind == HigherOrderOp::Kind::kAutocast;
    for (Value& arg : args)
      if (const auto graph = graph_of_value(arg)) {
        if (!has_values)
          arg = stand_in_for(graph);
        else if (has_loop(*graph))
          throw RunError(ErrorCode::kNotRunnable,
                         "how often a loop under autocast runs depends on values");
      }
  }
  const Place place = take_devices(args, kwargs);
  bool has_tensor = false;
  for (const Value& arg : args)
    for_each_tensor(arg, [&](const at::Tensor& t) { has_tensor |= t.defined(); });
  // What makes tensors out of nothing would make them on the CPU.
  if (!place.is_given && !has_tensor && has_device_argument(info)) {
    std::erase_if(kwargs, [](const KwValue& kwarg) { return kwarg.key == "device"; });
    kwargs.push_back({Symbol("device"), Value(c10::Device(c10::DeviceType::Meta))});
  }
  return placed(run_or_try_zeros(args, kwargs,
                                 [&](Values values, KwValues keywords) {
                                   return Interpreter::call_function(target, std::move(values),
                                                                     std::move(keywords));
                                 }),
                place);
}

Value FakeTensorProp::call_method(std::string_view target, Values args, KwValues kwargs) {
  check_values_do_not_matter(OpInfo::of_method(target), target);
  Place place = take_devices(args, kwargs);
  if ((target == "cpu" || target == "cuda") && !args.empty() && args[0].isTensor()) {
    place.device =
        target == "cpu" ? c10::Device(c10::DeviceType::CPU) : c10::Device(c10::DeviceType::CUDA, 0);
    place.is_given = true;
    return placed(args[0], place);
  }
  return placed(run_or_try_zeros(args, kwargs,
                                 [&](Values values, KwValues keywords) {
                                   return Interpreter::call_method(target, std::move(values),
                                                                   std::move(keywords));
                                 }),
                place);
}

Value FakeTensorProp::call_module(std::string_view target, Values args, KwValues kwargs) {
  const Place place = take_devices(args, kwargs);
  const auto called = target_.find_submodule(target);
  if (!called) return Interpreter::call_module(target, std::move(args), std::move(kwargs));
  auto& stand_in = modules_[called.get()];
  if (!stand_in) stand_in = called->clone();
  const bool has_tensors = !stand_in->parameters().empty() || !stand_in->buffers().empty();
  auto run = [&](Values values, KwValues keywords) {
    return ::fx::call_module(*stand_in, std::move(values), std::move(keywords));
  };
  return placed(has_tensors ? on_zeros(args, kwargs, run) : run_or_try_zeros(args, kwargs, run),
                place);
}

void FakeTensorProp::record_value(Node& node, const Value& value) {
  NestedTensorMeta meta(value);
  set_devices(meta, value, [this](const at::Tensor& tensor) {
    const auto known = devices_.find(tensor.unsafeGetTensorImpl());
    return known == devices_.end() ? tensor.device() : known->second.first;
  });
  set_tensor_meta(node, std::move(meta));
  node.meta().set("type", type_text(value));
  if (value.isTensor())
    node.meta().set("val", value.toTensor());
  else
    node.meta().erase("val");
}

}  // namespace fx
