#include "fx/capture/functional_call.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "fx/capture/boxed.h"
#include "fx/capture/functional_layout.h"
#include "fx/ops/effects.h"
#include "fx/ops/hidden_aliases.h"

namespace fx {
namespace {

namespace functional = at::functionalization::impl;

at::Tensor wrapper(const at::Tensor& tensor) {
  return tensor.defined() ? functional::to_functional_tensor(tensor) : tensor;
}

// Applies `fn` to a tensor or to those in a list.
template <typename Fn>
c10::IValue map_tensors(const c10::IValue& value, Fn&& fn) {
  if (value.isTensor()) return fn(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const at::Tensor& tensor : value.toTensorVector()) out.push_back(fn(tensor));
    return out;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> out;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      out.push_back(tensor ? std::optional(fn(*tensor)) : std::nullopt);
    return out;
  }
  return value;
}

// Writes nothing and gives new memory, in this call.
bool stays_whole(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const c10::FunctionSchema& schema = op.schema();
  const c10::OperatorName& name = op.operator_name();
  const Function& function =
      *Function::get(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  if (has_hidden_alias(name.name)) return false;
  const auto has_alias = [](const c10::Argument& argument) { return argument.alias_info(); };
  if (std::ranges::any_of(schema.arguments(), has_alias) ||
      std::ranges::any_of(schema.returns(), has_alias))
    return false;
  const Effects effects = effects_of(function, [](std::string_view) { return false; });
  if (!effects.mutates) return true;
  if (effects.unless_false_name.empty()) return false;
  const c10::IValue& flag =
      torch::jit::last(stack, schema.arguments().size())[effects.unless_false_index];
  return flag.isBool() && !flag.toBool();
}

void call_whole(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t num_args = op.schema().arguments().size();
  for (std::size_t i = stack->size() - num_args; i < stack->size(); ++i)
    (*stack)[i] = map_tensors((*stack)[i], functional_content);
  {
    const c10::impl::ExcludeDispatchKeyGuard plain(c10::DispatchKey::Functionalize);
    op.callBoxed(stack);
  }
  const std::size_t num_returns = op.schema().returns().size();
  for (std::size_t i = stack->size() - num_returns; i < stack->size(); ++i)
    (*stack)[i] = map_tensors((*stack)[i], wrapper);
}

// The schema of native_batch_norm does not say that it writes to the running statistics; that of
// its twin does, and so that one can be made functional.
const c10::OperatorHandle& with_honest_schema(const c10::OperatorHandle& op,
                                              const torch::jit::Stack& stack) {
  constexpr std::size_t kArgs = 8, kRunningMean = 3;
  static const c10::OperatorHandle honest =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_native_batch_norm_legit", "");
  if (op.schema().name() != "aten::native_batch_norm") return op;
  return torch::jit::last(stack, kArgs)[kRunningMean].isTensor() ? honest : op;
}

// An expand that repeats nothing, as the view that it is, or an undefined tensor. Writes through an
// expand become sums of differences, which round and make infinities nan; eager refuses them where
// something is repeated.
at::Tensor as_view(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  constexpr std::size_t kArgs = 3;
  if (op.schema().name() != "aten::expand") return {};
  const auto args = torch::jit::last(stack, kArgs);
  const at::Tensor& self = args[0].toTensor();
  const auto given = args[1].toDimVector();
  std::vector<std::int64_t> sizes(given.begin(), given.end());
  if (sizes.size() < static_cast<std::size_t>(self.dim())) return {};
  const std::size_t added = sizes.size() - static_cast<std::size_t>(self.dim());
  std::int64_t numel = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && i >= added) sizes[i] = self.size(static_cast<std::int64_t>(i - added));
    numel *= sizes[i];
  }
  return numel == self.numel() ? self.view(sizes) : at::Tensor();
}

// A resize_ to the size that a tensor has does nothing, whatever its strides. LibTorch's functional
// form makes it a view of contiguous strides.
bool keeps_its_size(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  constexpr std::size_t kArgs = 3;
  if (op.schema().name() != "aten::resize_") return false;
  const auto args = torch::jit::last(*stack, kArgs);
  if (!args[2].isNone() || args[0].toTensor().sizes() != args[1].toDimVector()) return false;
  torch::jit::drop(*stack, kArgs - 1);
  return true;
}

}  // namespace

void call_functional(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  if (stays_whole(op, *stack)) return call_whole(op, stack);
  if (at::Tensor view = as_view(op, *stack); view.defined()) {
    torch::jit::drop(*stack, op.schema().arguments().size());
    stack->emplace_back(std::move(view));
    return;
  }
  if (draw_in_memory_order(op, stack) || keeps_its_size(op, stack)) return;
  const WrittenLayouts layouts(op, torch::jit::last(*stack, op.schema().arguments().size()));
  with_honest_schema(op, *stack).redispatchBoxed(keys, stack);
  layouts.keep();
}

void rehearse(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t num_args = op.schema().arguments().size();
  const std::vector<c10::IValue> args = torch::jit::last(*stack, num_args).vec();
  const std::size_t below = stack->size() - num_args;
  try {
    op.callBoxed(stack);
  } catch (const c10::NotImplementedError&) {
    std::vector<c10::IValue> results;
    for (std::size_t i = 0; i < op.schema().returns().size(); ++i) {
      const auto written = written_argument(op.schema(), i);
      if (!written) throw;
      results.push_back(args[*written]);
    }
    stack->resize(below);
    stack->insert(stack->end(), results.begin(), results.end());
  }
}

bool is_functional_rehearsal(c10::DispatchKeySet keys) {
  return keys.has_backend(c10::BackendComponent::MetaBit) &&
         c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::Functionalize);
}

}  // namespace fx
