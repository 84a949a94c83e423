#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fx/graph/argument.h"

namespace torch::nn {
class Module;
}

namespace fx {

class Proxy;
class TracerBase;

/// A value on its way into a traced graph: anything that may be an Argument, and tensors, which
/// only the tracer can turn into one (a proxy tensor is its node, a real tensor an attribute).
/// Aggregates nest. Cheap to copy.
class TraceArg {
 public:
  enum class Kind : std::uint8_t {
    kArgument,
    kTensor,
    kProxy,
    kList,
    kTuple,
    kDict,
    kSlice,
    kModule,
    kObject,
  };

  TraceArg() : kind_(Kind::kArgument) {}
  TraceArg(Argument argument) : kind_(Kind::kArgument), argument_(std::move(argument)) {}
  template <typename T>
    requires(std::constructible_from<Argument, T> && !std::convertible_to<T, at::Tensor> &&
             !std::same_as<std::decay_t<T>, Argument> && !std::same_as<std::decay_t<T>, TraceArg>)
  TraceArg(T&& value) : kind_(Kind::kArgument), argument_(std::forward<T>(value)) {}
  TraceArg(const at::Tensor& tensor) : kind_(Kind::kTensor), tensor_(tensor) {}
  TraceArg(const at::Scalar& scalar);
  TraceArg(const Proxy& proxy);
  TraceArg(at::IntArrayRef ints) : TraceArg(Argument(ints.vec())) {}
  template <typename T>
    requires(std::constructible_from<TraceArg, const T&> &&
             !std::constructible_from<Argument, const std::vector<T>&>)
  TraceArg(const std::vector<T>& items) : kind_(Kind::kList), items_(items.begin(), items.end()) {}
  TraceArg(std::initializer_list<std::int64_t> ints)
      : TraceArg(Argument(std::vector<std::int64_t>(ints))) {}
  template <typename T, std::size_t N>
  TraceArg(const std::array<T, N>& items)
      : kind_(Kind::kList), items_(items.begin(), items.end()) {}
  template <typename T>
  TraceArg(const std::optional<T>& value) : TraceArg(value ? TraceArg(*value) : TraceArg()) {}
  template <typename... T>
  TraceArg(const std::tuple<T...>& items)
      : kind_(Kind::kTuple),
        items_(std::apply([](const T&... i) { return std::vector<TraceArg>{TraceArg(i)...}; },
                          items)) {}
  template <typename A, typename B>
  TraceArg(const std::pair<A, B>& items) : kind_(Kind::kTuple), items_{items.first, items.second} {}
  template <typename T>
  TraceArg(const std::map<std::string, T>& items) : kind_(Kind::kDict) {
    for (const auto& [key, value] : items) {
      keys_.emplace_back(key);
      items_.emplace_back(value);
    }
  }

  /// A submodule of the traced root, for a wrapped function that takes one: becomes a get_attr
  /// node.
  template <typename M>
    requires std::derived_from<M, torch::nn::Module>
  TraceArg(const std::shared_ptr<M>& module) : kind_(Kind::kModule), module_(module) {}
  /// An object that says itself what it is in a graph (torch.fx's __fx_create_arg__):
  /// `fx::Argument fx_create_arg(fx::TracerBase& tracer) const`.
  template <typename T>
    requires requires(const T& object, TracerBase& tracer) {
      { object.fx_create_arg(tracer) } -> std::convertible_to<Argument>;
    }
  TraceArg(const T& object)
      : kind_(Kind::kObject),
        create_arg_(std::make_shared<const CreateArg>(
            [object](TracerBase& tracer) -> Argument { return object.fx_create_arg(tracer); })) {}

  static TraceArg list(std::vector<TraceArg> items) {
    return aggregate(Kind::kList, std::move(items));
  }
  static TraceArg tuple(std::vector<TraceArg> items) {
    return aggregate(Kind::kTuple, std::move(items));
  }
  static TraceArg slice(TraceArg start, TraceArg stop, TraceArg step = {}) {
    return aggregate(Kind::kSlice, {std::move(start), std::move(stop), std::move(step)});
  }
  static TraceArg dict(std::vector<std::pair<Argument, TraceArg>> items);

  Kind kind() const noexcept { return kind_; }
  const Argument& argument() const noexcept { return argument_; }
  const at::Tensor& tensor() const noexcept { return tensor_; }
  const Proxy& proxy() const;
  const std::vector<TraceArg>& items() const noexcept { return items_; }
  const std::vector<Argument>& keys() const noexcept { return keys_; }
  const torch::nn::Module& module() const noexcept { return *module_; }
  /// What an object becomes.
  Argument create_arg(TracerBase& tracer) const { return (*create_arg_)(tracer); }

 private:
  static TraceArg aggregate(Kind kind, std::vector<TraceArg> items) {
    TraceArg made;
    made.kind_ = kind;
    made.items_ = std::move(items);
    return made;
  }

  Kind kind_;
  Argument argument_;
  at::Tensor tensor_;
  std::shared_ptr<const Proxy> proxy_;
  std::vector<TraceArg> items_;
  std::vector<Argument> keys_;  // of a dict
  std::shared_ptr<const torch::nn::Module> module_;
  using CreateArg = std::function<Argument(TracerBase&)>;
  std::shared_ptr<const CreateArg> create_arg_;
};

/// A keyword argument of a recorded call: `fx::kw("min", 0.0)`.
struct KwTraceArg {
  std::string key;
  TraceArg value;
};
inline KwTraceArg kw(std::string key, TraceArg value) { return {std::move(key), std::move(value)}; }

using TraceArgs = std::vector<TraceArg>;
using KwTraceArgs = std::vector<KwTraceArg>;

}  // namespace fx
