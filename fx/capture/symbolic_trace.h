#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/base/error.h"
#include "fx/capture/proxy_tensor.h"
#include "fx/capture/sequential.h"
#include "fx/capture/signature.h"
#include "fx/capture/tracer.h"
#include "fx/graph/module_types.h"

namespace fx {
namespace detail {

/// Names for `count` inputs: the given ones, then x, y, z, w, arg4, ...
/// @throws TraceError kConcreteArgs when more names are given than there are inputs.
std::vector<std::string> default_input_names(std::size_t count, const TraceOptions& options);

/// The value fixed for input `name`, after recording that the input must equal it.
/// @throws TraceError kConcreteArgs when there is none.
const Argument& concrete_value(const TraceOptions& options, const std::string& name,
                               const Proxy& input, std::string_view type);

/// @throws TraceError kConcreteArgs for a concrete argument that names no input.
void check_concrete_args(const TraceOptions& options, const std::vector<std::string>& names);

/// The GraphModule of a finished trace.
std::shared_ptr<GraphModule> make_graph_module(const Tracer& tracer, const torch::nn::Module& root,
                                               std::shared_ptr<Graph> graph,
                                               std::string class_name);

/// One parameter of the traced callable: a proxy, a proxy tensor, or the concrete value.
template <typename T>
T make_input(const Proxy& proxy, const std::string& name, const TraceOptions& options) {
  if constexpr (std::is_same_v<T, Proxy>) {
    return proxy;
  } else if constexpr (std::is_same_v<T, at::Tensor> ||
                       std::is_same_v<T, std::optional<at::Tensor>>) {
    return T(static_cast<at::Tensor>(proxy));
  } else if constexpr (std::is_same_v<T, bool>) {
    return concrete_value(options, name, proxy, "bool").to_bool();
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(concrete_value(options, name, proxy, "int").to_int());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(concrete_value(options, name, proxy, "float").to_double());
  } else if constexpr (std::is_same_v<T, std::string>) {
    return concrete_value(options, name, proxy, "str").to_string();
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    std::vector<std::int64_t> ints;
    for (const Argument& item : concrete_value(options, name, proxy, "list of ints").items())
      ints.push_back(item.to_int());
    return ints;
  } else {
    static_assert(std::is_same_v<T, Proxy>,
                  "symbolic_trace: parameters must be tensors, proxies, numbers, bools or strings");
  }
}

template <typename Fn, typename... Args>
TraceArg invoke_traced(Fn& fn, Args&&... args) {
  if constexpr (std::is_void_v<std::invoke_result_t<Fn&, Args...>>) {
    fn(std::forward<Args>(args)...);
    return {};
  } else {
    return TraceArg(fn(std::forward<Args>(args)...));
  }
}

template <typename Fn, typename Params, std::size_t... I>
TraceArg call_with_params(Fn& fn, std::vector<Proxy>& inputs, const std::vector<std::string>& names,
                          const TraceOptions& options, std::index_sequence<I...>) {
  // Lvalues: forward may take its parameters by reference.
  std::tuple<std::tuple_element_t<I, Params>...> params{
      make_input<std::tuple_element_t<I, Params>>(inputs[I], names[I], options)...};
  return invoke_traced(fn, std::get<I>(params)...);
}

template <typename Fn, std::size_t... I>
TraceArg call_with_proxies(Fn& fn, std::vector<Proxy>& inputs, std::index_sequence<I...>) {
  return invoke_traced(fn, inputs[I]...);
}

/// Traces `fn`, whose parameter types are the tuple Params, or all proxies when that is void.
template <typename Params, typename Fn>
std::shared_ptr<Graph> trace_callable(Tracer& tracer, const torch::nn::Module& root, Fn& fn,
                                      const TraceOptions& options) {
  if constexpr (std::is_void_v<Params>) {
    constexpr std::size_t kArity = arity<Fn&, Proxy>();
    static_assert(kArity <= kMaxArity,
                  "symbolic_trace: the callable takes neither proxies nor a known signature");
    const auto names = default_input_names(kArity, options);
    check_concrete_args(options, names);
    return tracer.trace_with(root, names, [&](std::vector<Proxy>& inputs) {
      return call_with_proxies(fn, inputs, std::make_index_sequence<kArity>());
    });
  } else {
    constexpr std::size_t kArity = std::tuple_size_v<Params>;
    const auto names = default_input_names(kArity, options);
    check_concrete_args(options, names);
    return tracer.trace_with(root, names, [&](std::vector<Proxy>& inputs) {
      return call_with_params<Fn, Params>(fn, inputs, names, options,
                                          std::make_index_sequence<kArity>());
    });
  }
}

template <typename T>
concept ModulePointer = requires(const T& t) {
  { *t } -> std::convertible_to<const torch::nn::Module&>;
  t.operator->();
};

}  // namespace detail

/// Runs `tracer` on a module, a (smart) pointer or holder of one, or a callable; the graph of
/// torch.fx's `Tracer.trace`. Use tracer.constants() for the tensors it met.
template <typename Root>
std::shared_ptr<Graph> trace(Tracer& tracer, Root&& root, const TraceOptions& options = {}) {
  using R = std::remove_cvref_t<Root>;
  if constexpr (std::is_same_v<R, torch::nn::SequentialImpl>) {
    // Its forward takes anything: one input, named as in Python, goes through the children.
    R& module = const_cast<R&>(root);
    const auto names = options.input_names.empty() ? std::vector<std::string>{"input"}
                                                   : detail::default_input_names(1, options);
    detail::check_concrete_args(options, names);
    return tracer.trace_with(root, names, [&](std::vector<Proxy>& inputs) {
      return detail::trace_sequential(tracer, module, inputs[0]);
    });
  } else if constexpr (detail::ModuleClass<R>) {
    R& module = const_cast<R&>(root);
    auto forward = [&module](auto&&... args) -> decltype(module.forward(
                                                 std::forward<decltype(args)>(args)...)) {
      return module.forward(std::forward<decltype(args)>(args)...);
    };
    return detail::trace_callable<typename detail::ForwardSignature<R>::Params>(tracer, root,
                                                                                forward, options);
  } else if constexpr (detail::ModulePointer<R>) {
    return trace(tracer, *root, options);
  } else {
    static const torch::nn::Module kNoModule;
    return detail::trace_callable<typename detail::CallableSignature<std::decay_t<Root>>::Params>(
        tracer, kNoModule, root, options);
  }
}

/// Traces with an own tracer and gives a GraphModule that shares the root's state.
template <typename Root>
std::shared_ptr<GraphModule> symbolic_trace(Tracer& tracer, Root&& root,
                                            const TraceOptions& options = {}) {
  using R = std::remove_cvref_t<Root>;
  if constexpr (!detail::ModuleClass<R> && detail::ModulePointer<R>) {
    return symbolic_trace(tracer, *root, options);
  } else {
    auto graph = trace(tracer, root, options);
    if constexpr (detail::ModuleClass<R>) {
      return detail::make_graph_module(
          tracer, root, std::move(graph),
          options.class_name.empty() ? module_type_name(root) : options.class_name);
    } else {
      static const torch::nn::Module kNoModule;
      return detail::make_graph_module(
          tracer, kNoModule, std::move(graph),
          options.class_name.empty() ? "GraphModule" : options.class_name);
    }
  }
}

/// Captures a program as a graph by running it once on proxies (torch.fx.symbolic_trace).
///
/// `root` is a torch::nn::Module whose forward takes `auto`, fx::Proxy or at::Tensor parameters, a
/// holder or pointer of one, or any callable. Nothing is computed and no input is needed, so the
/// graph holds for every shape. Generic code (`auto forward(auto x)`) records Python's operators
/// and torch functions; code on at::Tensor records ATen operators. Modules held by fx::nn holders
/// become call_module nodes.
/// @throws TraceError for what proxies cannot answer, with the node and the way out.
template <typename Root>
  requires(!std::derived_from<std::remove_cvref_t<Root>, Tracer>)
std::shared_ptr<GraphModule> symbolic_trace(Root&& root, const TraceOptions& options = {}) {
  Tracer tracer;
  return symbolic_trace(tracer, std::forward<Root>(root), options);
}

}  // namespace fx
