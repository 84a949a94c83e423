#pragma once

#include <torch/nn/modules.h>
#include <torch/nn/options.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "fx/base/error.h"
#include "fx/capture/module_scopes.h"
#include "fx/capture/proxy_tensor.h"
#include "fx/capture/sequential.h"
#include "fx/capture/tracer.h"
#include "fx/graph/module_types.h"

/// Drop-in holders for the modules of torch::nn that tell a running symbolic trace or capture where
/// a module begins and ends: write `namespace nn = fx::nn;` instead of `namespace nn = torch::nn;`.
/// Outside of a trace they cost one thread-local read per call.
namespace fx::nn {

using namespace torch::nn;  // NOLINT: everything that has no holder keeps its name

namespace detail {

template <typename T>
bool is_traced(const T& value) {
  if constexpr (std::is_same_v<T, Proxy>)
    return true;
  else if constexpr (std::is_same_v<T, at::Tensor>)
    return find_proxy(value) != nullptr;
  else
    return false;
}

/// The recorded result as the type that forward returns: a tensor, or a tuple of them.
template <typename T>
struct FromProxy {
  static T get(const Proxy& proxy) {
    if constexpr (std::is_same_v<T, Proxy>)
      return proxy;
    else
      return T(static_cast<at::Tensor>(proxy));
  }
};
template <typename... T>
struct FromProxy<std::tuple<T...>> {
  static std::tuple<T...> get(const Proxy& proxy) {
    return items(proxy, std::index_sequence_for<T...>());
  }
  template <std::size_t... I>
  static std::tuple<T...> items(const Proxy& proxy, std::index_sequence<I...>) {
    return {FromProxy<T>::get(proxy[TraceArg(static_cast<std::int64_t>(I))])...};
  }
};

}  // namespace detail

/// A torch::nn::ModuleHolder whose calls report the module boundary to the running trace: what leaf
/// modules of the tracer become call_module nodes. In captures by make_fx each node knows its
/// module. With proxies it returns proxies, with tensors what forward returns.
template <typename Contained>
class ModuleHolder : public torch::nn::ModuleHolder<Contained> {
 public:
  using Base = torch::nn::ModuleHolder<Contained>;
  using Base::Base;
  ModuleHolder() = default;
  ModuleHolder(std::shared_ptr<Contained> module) : Base(std::move(module)) {}  // NOLINT

  template <typename... Args>
  auto operator()(Args&&... args) {
    constexpr bool kProxies = (std::is_same_v<std::decay_t<Args>, Proxy> || ...);
    Tracer* tracer = Tracer::current();
    if constexpr (kProxies) {
      if (!tracer)
        throw TraceError(ErrorCode::kNotTracing,
                         "a module was called with a proxy outside of a trace");
      return Proxy(traced_proxy(*tracer, args...));
    } else {
      using Result = std::decay_t<decltype(this->impl_->forward(std::forward<Args>(args)...))>;
      if (tracer && (detail::is_traced<std::decay_t<Args>>(args) || ...))
        return detail::FromProxy<Result>::get(traced_proxy(*tracer, args...));
      const ModuleScope scope(*this->impl_);
      if constexpr (std::is_same_v<Contained, torch::nn::SequentialImpl> &&
                    std::is_same_v<std::tuple<std::decay_t<Args>...>, std::tuple<at::Tensor>>)
        return fx::detail::run_in_scopes(*this->impl_, args...);
      else
        return Result(this->impl_->forward(std::forward<Args>(args)...));
    }
  }

 private:
  template <typename... Args>
  Proxy traced_proxy(Tracer& tracer, const Args&... args) {
    auto run_through = [&]() -> TraceArg {
      if constexpr (std::is_same_v<Contained, torch::nn::SequentialImpl>) {
        static_assert(sizeof...(Args) == 1, "fx::nn::Sequential traces with one input");
        return fx::detail::trace_sequential(tracer, *this->impl_, Proxy(args)...);
      } else if constexpr (requires { this->impl_->forward(args...); }) {
        return TraceArg(this->impl_->forward(args...));
      } else {
        throw TraceError(ErrorCode::kBadArgument,
                         "forward of " + module_type_name(*this->impl_) +
                             " does not take the proxies it was called with");
      }
    };
    TraceArg result = tracer.call_module(*this->impl_, run_through, {TraceArg(args)...}, {});
    if (result.kind() == TraceArg::Kind::kProxy) return result.proxy();
    if (result.kind() == TraceArg::Kind::kTensor) return Proxy(result.tensor());
    // A traced-through module that returns several values: one tuple value.
    throw TraceError(ErrorCode::kBadResult,
                     "the traced-through module " + module_type_name(*this->impl_) +
                         " returns several values through a holder; call its forward directly");
  }
};

#define FX_NN_MODULE(Class, effects, arguments) \
  using Class = fx::nn::ModuleHolder<torch::nn::Class##Impl>;
#include "fx/graph/module_types.def"
#undef FX_NN_MODULE

/// torch::nn::Sequential, constructible like it, with a boundary around each child.
class Sequential : public ModuleHolder<torch::nn::SequentialImpl> {
 public:
  using Holder = ModuleHolder<torch::nn::SequentialImpl>;
  using Holder::Holder;
  Sequential() : Holder(std::make_shared<torch::nn::SequentialImpl>()) {}
  Sequential(std::initializer_list<torch::nn::NamedAnyModule> modules)
      : Holder(std::make_shared<torch::nn::SequentialImpl>(modules)) {}
};

}  // namespace fx::nn

/// Declares holder `Name` for an own module class `NameImpl`, like TORCH_MODULE, with the boundary.
#define FX_MODULE(Name)                                   \
  class Name : public fx::nn::ModuleHolder<Name##Impl> {  \
   public:                                                \
    using fx::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
    using Impl [[maybe_unused]] = Name##Impl;             \
  }
