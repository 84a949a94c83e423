#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "fx/base/error.h"
#include "fx/capture/proxy_tensor.h"
#include "fx/capture/signature.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_call.h"
#include "fx/ops/call.h"
#include "fx/ops/effects.h"

namespace fx {

/// A submodule that a wrapped function takes.
template <>
struct FromValue<std::shared_ptr<torch::nn::Module>> {
  static std::shared_ptr<torch::nn::Module> get(const Value& value) {
    const auto* module =
        value.isCapsule() ? dynamic_cast<const ModuleValue*>(value.toCapsule().get()) : nullptr;
    if (!module) throw RunError(ErrorCode::kWrongType, "wanted a module, found " + describe(value));
    return module->module;
  }
};

/// A wrapped function: a leaf of symbolic tracing (torch.fx.wrap). Called with proxies or proxy
/// tensors it records one call_function node of its name, called with values it runs.
template <typename F>
class Wrapped {
 public:
  Wrapped(std::string name, F function) : name_(std::move(name)), function_(std::move(function)) {}

  template <typename... Args>
  auto operator()(const Args&... args) const {
    if constexpr ((std::is_same_v<Args, Proxy> || ...)) {
      return record_call(name_, {TraceArg(args)...});
    } else {
      using Result = std::invoke_result_t<const F&, const Args&...>;
      if ((traced(args) || ...)) {
        const Proxy made = record_call(name_, {TraceArg(args)...});
        if constexpr (std::is_same_v<std::decay_t<Result>, at::Tensor>)
          return static_cast<at::Tensor>(made);
        else
          throw TraceError(ErrorCode::kConcreteValue,
                           name_ + " returns no tensor, but was called on tensors while tracing");
      }
      return std::decay_t<Result>(function_(args...));
    }
  }

  const std::string& name() const noexcept { return name_; }

 private:
  template <typename T>
  static bool traced(const T& value) {
    if constexpr (std::is_same_v<T, at::Tensor>)
      return find_proxy(value) != nullptr;
    else
      return false;
  }

  std::string name_;
  F function_;
};

namespace detail {

template <typename F, typename... Params>
WrappedFunction boxed_wrapper(const std::string& name, F function, std::tuple<Params...>*) {
  return [name, function](Values args, KwValues kwargs) -> Value {
    if (!kwargs.empty() || args.size() != sizeof...(Params))
      throw RunError(ErrorCode::kNoMatchingOverload,
                     name + " takes " + std::to_string(sizeof...(Params)) +
                         " positional arguments, found " + std::to_string(args.size()) + " and " +
                         std::to_string(kwargs.size()) + " keywords");
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> Value {
      std::tuple<Params...> converted{FromValue<Params>::get(args[I])...};
      if constexpr (std::is_void_v<std::invoke_result_t<const F&, Params&...>>) {
        function(std::get<I>(converted)...);
        return {};
      } else {
        return to_value(function(std::get<I>(converted)...));
      }
    }(std::index_sequence_for<Params...>());
  };
}

}  // namespace detail

/// Wraps a C++ function under `name`, so that tracing records a call of it instead of looking
/// inside, and so that graphs with that target run. The function's parameter types must be known
/// (no template): tensors, numbers, strings, lists and tuples of them; a submodule of the traced
/// root as std::shared_ptr<torch::nn::Module>.
/// @param side_effect keeps calls whose result nobody uses.
/// @throws TraceError kWrap when the name belongs to an operator or built-in.
template <typename F>
auto wrap(std::string name, F function, bool side_effect = false) {
  static_assert(!detail::ModuleClass<std::remove_pointer_t<std::decay_t<F>>>,
                "fx::wrap takes functions; make a module a leaf with Tracer::is_leaf_module");
  using Params = typename detail::CallableSignature<std::decay_t<F>>::Params;
  static_assert(!std::is_void_v<Params>, "fx::wrap needs a function with known parameter types");
  register_wrapped_function(name,
                            detail::boxed_wrapper(name, function, static_cast<Params*>(nullptr)));
  if (side_effect) has_side_effect(*Function::get(name));
  return Wrapped<std::decay_t<F>>(std::move(name), std::move(function));
}

}  // namespace fx
