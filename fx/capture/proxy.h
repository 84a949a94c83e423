#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/capture/trace_arg.h"
#include "fx/graph/graph.h"

namespace fx {

class TracerBase;

/// A stand-in for a value while a program is traced (torch.fx.Proxy): operating on it computes
/// nothing, records a node and gives the proxy of that node. It knows its node and its tracer, no
/// shape and no dtype. Copies stand for the same node.
///
/// It converts to at::Tensor, so that `torch::relu(x)` and every other ATen call records too, and
/// from at::Tensor. What only a value can answer throws TraceError: bool(x), iteration, x.sizes(),
/// x.item<float>(), x.data_ptr<float>().
class Proxy {
 public:
  /// A proxy of `node`. Without a tracer, operations append to the node's graph at its insertion
  /// point.
  explicit Proxy(Node& node, TracerBase* tracer = nullptr);
  /// The proxy behind a proxy tensor; a real tensor becomes a constant of the running trace.
  /// @throws TraceError kNotTracing for a real tensor when no trace runs on this thread.
  Proxy(const at::Tensor& tensor);
  Proxy(const Proxy&) = default;
  Proxy(Proxy&&) = default;
  Proxy& operator=(const Proxy&) & = default;
  Proxy& operator=(Proxy&&) & = default;
  // x[i] = y would be lost: proxies take no item assignment. Use where, masked_fill or index_put.
  Proxy& operator=(const Proxy&) && = delete;  // no item assignment: use where, index_put, ...

  /// A lazily recorded attribute, such as attr("shape"): the getattr node appears at the first use.
  Proxy attr(std::string_view name) const;

  Node& node() const;
  TracerBase& tracer() const;
  /// "Proxy(add)".
  std::string repr() const;

  /// A tensor that stands for this proxy in ATen calls.
  operator at::Tensor() const;
  /// Data-dependent control flow cannot be traced: TracerBase::to_bool decides, by default it
  /// throws TraceError kControlFlow.
  explicit operator bool() const;

  /// operator.getitem: x[0], x[fx::slice(1, 3)], x[{i, j}] by index(...).
  Proxy operator[](const TraceArg& index) const;
  /// Several indices at once: x.index(0, fx::slice(1, 3)).
  template <typename... T>
  Proxy index(const T&... indices) const {
    return (*this)[TraceArg::tuple({TraceArg(indices)...})];
  }
  /// The first N items of a sequence value: `auto [a, b] = x.unpack<2>();`.
  template <std::size_t N>
  std::array<Proxy, N> unpack() const {
    return unpack_items(std::make_index_sequence<N>());
  }

  /// Records a method call by name.
  Proxy call_method(std::string_view name, TraceArgs args = {}, KwTraceArgs kwargs = {}) const;

  // The methods of at::Tensor that keep their name: x.relu(), x.view({2, -1}), x.sum(1,
  // fx::kw(...)).
#define FX_PROXY_METHOD(name)                                   \
  template <typename... Args>                                   \
  Proxy name(const Args&... args) const {                       \
    return method(#name, args...);                              \
  }                                                             \
  Proxy name(std::initializer_list<std::int64_t> sizes) const { \
    return call_method(#name, {TraceArg(sizes)});               \
  }
#include "fx/capture/proxy_methods.def"
#undef FX_PROXY_METHOD

  /// x.item() is recorded; x.item<T>() asks for a value and throws.
  Proxy item() const { return call_method("item"); }
  template <typename T>
  T item() const {
    concrete_value("item<T>()");
  }

  // What needs a value, or a tracer that knows it (MetaTracer; the references last as long as the
  // node). @throws TraceError kConcreteValue naming the node and the way out.
  at::IntArrayRef sizes() const { return known_tensor("sizes()").sizes(); }
  at::IntArrayRef strides() const { return known_tensor("strides()").strides(); }
  std::int64_t len() const { return known_tensor("len()").size(0); }
  at::ScalarType scalar_type() const { return known_tensor("scalar_type()").scalar_type(); }
  bool is_contiguous() const { return known_tensor("is_contiguous()").is_contiguous(); }
  template <typename T>
  [[noreturn]] T* data_ptr() const {
    concrete_value("data_ptr()");
  }
  /// Iteration. @throws TraceError kIterate, unless the tracer's iter() is overridden.
  Proxy* begin() const;
  Proxy* end() const;

 private:
  struct State;

  template <typename... Args>
  Proxy method(std::string_view name, const Args&... args) const {
    TraceArgs positional;
    KwTraceArgs keywords;
    (sort_argument(positional, keywords, args), ...);
    return call_method(name, std::move(positional), std::move(keywords));
  }
  template <typename T>
  static void sort_argument(TraceArgs& positional, KwTraceArgs& keywords, const T& arg) {
    if constexpr (std::is_same_v<T, KwTraceArg>)
      keywords.push_back(arg);
    else
      positional.emplace_back(arg);
  }
  template <std::size_t... I>
  std::array<Proxy, sizeof...(I)> unpack_items(std::index_sequence<I...>) const {
    return {(*this)[TraceArg(static_cast<std::int64_t>(I))]...};
  }
  const at::Tensor& known_tensor(std::string_view asked) const;
  [[noreturn]] void concrete_value(std::string_view what) const;

  std::shared_ptr<State> state_;
};

std::ostream& operator<<(std::ostream& out, const Proxy& proxy);

/// An index for Proxy::operator[]; missing bounds are None.
inline TraceArg slice(TraceArg start, TraceArg stop, TraceArg step = {}) {
  return TraceArg::slice(std::move(start), std::move(stop), std::move(step));
}

/// Records a call of `function` with the tracer of its proxy arguments.
/// @throws TraceError kMixedTracers, kNotTracing when no argument is a proxy and no trace runs.
Proxy record_call(std::string_view function, TraceArgs args, KwTraceArgs kwargs = {});

namespace detail {

template <typename T>
inline constexpr bool kIsProxy = std::is_same_v<std::decay_t<T>, Proxy>;
/// A proxy, or a list of them as cat and stack take.
template <typename T>
inline constexpr bool kHasProxies = kIsProxy<T>;
template <>
inline constexpr bool kHasProxies<std::vector<Proxy>> = true;
template <std::size_t N>
inline constexpr bool kHasProxies<std::array<Proxy, N>> = true;

template <typename... Args>
Proxy record_function(std::string_view function, const Args&... args) {
  TraceArgs positional;
  KwTraceArgs keywords;
  auto sort = [&](const auto& arg) {
    if constexpr (std::is_same_v<std::decay_t<decltype(arg)>, KwTraceArg>)
      keywords.push_back(arg);
    else
      positional.emplace_back(arg);
  };
  (sort(args), ...);
  return record_call(function, std::move(positional), std::move(keywords));
}

template <typename A, typename B>
concept BinaryOperands = (kIsProxy<A> && std::constructible_from<TraceArg, const B&>) ||
                         (kIsProxy<B> && std::constructible_from<TraceArg, const A&>);

}  // namespace detail

// Python's operators: call_function nodes of operator.add and so on, operands in written order.
#define FX_PROXY_BINARY(op, name)                                     \
  template <typename A, typename B>                                   \
    requires detail::BinaryOperands<A, B>                             \
  Proxy operator op(const A& a, const B& b) {                         \
    return record_call("operator." name, {TraceArg(a), TraceArg(b)}); \
  }
FX_PROXY_BINARY(+, "add")
FX_PROXY_BINARY(-, "sub")
FX_PROXY_BINARY(*, "mul")
FX_PROXY_BINARY(/, "truediv")
FX_PROXY_BINARY(%, "mod")
FX_PROXY_BINARY(&, "and_")
FX_PROXY_BINARY(|, "or_")
FX_PROXY_BINARY(^, "xor")
FX_PROXY_BINARY(<<, "lshift")
FX_PROXY_BINARY(>>, "rshift")
FX_PROXY_BINARY(==, "eq")
FX_PROXY_BINARY(!=, "ne")
FX_PROXY_BINARY(<, "lt")
FX_PROXY_BINARY(<=, "le")
FX_PROXY_BINARY(>, "gt")
FX_PROXY_BINARY(>=, "ge")
#undef FX_PROXY_BINARY

// x += y on a proxy records the plain operation, as in torch.fx, and rebinds the variable.
#define FX_PROXY_COMPOUND(op)                            \
  template <typename B>                                  \
    requires std::constructible_from<TraceArg, const B&> \
  Proxy& operator op##=(Proxy & a, const B & b) {        \
    return a = a op b;                                   \
  }
FX_PROXY_COMPOUND(+)
FX_PROXY_COMPOUND(-)
FX_PROXY_COMPOUND(*)
FX_PROXY_COMPOUND(/)
#undef FX_PROXY_COMPOUND

inline Proxy operator-(const Proxy& a) { return record_call("operator.neg", {a}); }
inline Proxy operator+(const Proxy& a) { return record_call("operator.pos", {a}); }
inline Proxy operator~(const Proxy& a) { return record_call("operator.invert", {a}); }

// Torch functions for generic code: an unqualified relu(x) is at::relu for a Tensor and records
// torch.relu for a Proxy.
#define FX_TORCH_FUNCTION(name)                              \
  template <typename... Args>                                \
    requires(detail::kHasProxies<Args> || ...)               \
  Proxy name(const Args&... args) {                          \
    return detail::record_function("torch." #name, args...); \
  }
#include "fx/capture/torch_functions.def"
#undef FX_TORCH_FUNCTION

/// torch.fx records abs(x) of a proxy as operator.abs.
inline Proxy abs(const Proxy& x) { return record_call("operator.abs", {x}); }
/// Python's len() as a node (torch.fx.wrap('len')).
inline Proxy len(const Proxy& x) { return record_call("builtins.len", {x}); }
/// Floor division and matrix product, which C++ has no operators for.
template <typename A, typename B>
  requires detail::BinaryOperands<A, B>
Proxy floordiv(const A& a, const B& b) {
  return record_call("operator.floordiv", {TraceArg(a), TraceArg(b)});
}
/// @throws TraceError kAlreadyTyped when the value has a type. Gives `proxy` back
/// (torch.fx.annotate).
Proxy annotate(const Proxy& proxy, std::string_view type);

}  // namespace fx
