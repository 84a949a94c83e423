#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "fx/capture/proxy.h"

/// What C++ tells about the parameters of a callable.
namespace fx::detail {

template <typename F>
struct MemberSignature;
#define FX_MEMBER_SIGNATURE(qualifiers)               \
  template <typename C, typename R, typename... A>    \
  struct MemberSignature<R (C::*)(A...) qualifiers> { \
    using Params = std::tuple<std::decay_t<A>...>;    \
  }
FX_MEMBER_SIGNATURE();
FX_MEMBER_SIGNATURE(const);
FX_MEMBER_SIGNATURE(noexcept);
FX_MEMBER_SIGNATURE(const noexcept);
#undef FX_MEMBER_SIGNATURE

/// Parameter types of a function or of a lambda that is no template; `void` when C++ cannot tell.
template <typename F>
struct CallableSignature {
  using Params = void;
};
template <typename F>
  requires requires { &F::operator(); }
struct CallableSignature<F> {
  using Params = typename MemberSignature<decltype(&F::operator())>::Params;
};
template <typename R, typename... A>
struct CallableSignature<R (*)(A...)> {
  using Params = std::tuple<std::decay_t<A>...>;
};
template <typename R, typename... A>
struct CallableSignature<R(A...)> {
  using Params = std::tuple<std::decay_t<A>...>;
};

template <typename M>
struct ForwardSignature {
  using Params = void;  // forward is a template or overloaded
};
template <typename M>
  requires requires { &M::forward; }
struct ForwardSignature<M> {
  using Params = typename MemberSignature<decltype(&M::forward)>::Params;
};

template <typename T, std::size_t>
using Repeat = T;

template <typename F, typename T, typename Indices>
struct InvocableWith;
template <typename F, typename T, std::size_t... I>
struct InvocableWith<F, T, std::index_sequence<I...>> {
  static constexpr bool kValue = std::is_invocable_v<F, Repeat<T&, I>...>;
};

inline constexpr std::size_t kMaxArity = 12;

/// The smallest number of T arguments that F can be called with; kMaxArity + 1 when there is none.
template <typename F, typename T, std::size_t N = 0>
constexpr std::size_t arity() {
  if constexpr (N > kMaxArity) {
    return N;
  } else if constexpr (InvocableWith<F, T, std::make_index_sequence<N>>::kValue) {
    return N;
  } else {
    return arity<F, T, N + 1>();
  }
}

template <typename M>
concept ModuleClass = std::derived_from<M, torch::nn::Module>;

}  // namespace fx::detail
