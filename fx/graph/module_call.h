#pragma once

#include <torch/nn/module.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/module_types.h"
#include "fx/ops/value.h"

/// Calls a C++ forward function with run-time values: converts each value to the parameter's type.
namespace fx {

/// Converts a value to the C++ type of a parameter (specialise for own types).
template <typename T>
struct FromValue {
  static T get(const Value& value) { return value.to<T>(); }
};
template <>
struct FromValue<at::Tensor> {
  static at::Tensor get(const Value& value) {
    return value.isNone() ? at::Tensor() : value.toTensor();
  }
};
template <>
struct FromValue<double> {
  static double get(const Value& value) {
    return value.isInt() ? static_cast<double>(value.toInt()) : value.toDouble();
  }
};
template <>
struct FromValue<std::vector<std::int64_t>> {
  static std::vector<std::int64_t> get(const Value& value) {
    std::vector<std::int64_t> out;
    for (const Value& item : elements(value)) out.push_back(item.toInt());
    return out;
  }
};
template <>
struct FromValue<std::vector<at::Tensor>> {
  static std::vector<at::Tensor> get(const Value& value) {
    std::vector<at::Tensor> out;
    for (const Value& item : elements(value)) out.push_back(item.toTensor());
    return out;
  }
};
template <typename T>
struct FromValue<std::optional<T>> {
  static std::optional<T> get(const Value& value) {
    if (value.isNone()) return std::nullopt;
    return FromValue<T>::get(value);
  }
};
template <typename... T>
struct FromValue<std::tuple<T...>> {
  static std::tuple<T...> get(const Value& value) {
    const Values items = elements(value);
    if (items.size() != sizeof...(T))
      throw RunError(ErrorCode::kWrongType, "wanted a tuple of " + std::to_string(sizeof...(T)) +
                                                ", found " + describe(value));
    return unpack(items, std::index_sequence_for<T...>());
  }

 private:
  template <std::size_t... I>
  static std::tuple<T...> unpack(const Values& items, std::index_sequence<I...>) {
    return {FromValue<T>::get(items[I])...};
  }
};

/// Converts a C++ result to a value; tuples nest.
template <typename T>
Value to_value(T&& result) {
  return Value(std::forward<T>(result));
}
template <typename... T>
Value to_value(std::tuple<T...> results) {
  return std::apply(
      [](auto&&... items) {
        return Value(c10::ivalue::Tuple::create(Values{to_value(std::move(items))...}));
      },
      std::move(results));
}
template <typename A, typename B>
Value to_value(std::pair<A, B> result) {
  return to_value(std::tuple<A, B>(std::move(result.first), std::move(result.second)));
}

namespace detail {

/// The parameters that "input,hx?" names; as many as forward has, those without a name may be left
/// out.
std::vector<ModuleParameter> parse_parameters(std::string_view names, std::size_t count);

/// Positional and keyword values in the order of the parameters; those left out are nullopt.
/// @throws RunError kNoMatchingOverload
std::vector<std::optional<Value>> arrange_arguments(std::string_view type_name,
                                                    const std::vector<ModuleParameter>& parameters,
                                                    Values args, KwValues kwargs);

/// What a C++ parameter gets when the call leaves it out: an undefined tensor, nullopt.
template <typename T>
T missing_argument(std::string_view type_name, std::size_t index) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    return {};
  } else if constexpr (std::is_same_v<T, bool>) {
    return true;  // need_weights, average_attn_weights: the only flags in torch::nn
  } else if constexpr (requires(T t) { t.has_value(); }) {
    return std::nullopt;
  } else {
    throw RunError(ErrorCode::kNoMatchingOverload, std::string(type_name) + " misses argument " +
                                                       std::to_string(index + 1) +
                                                       " of its forward");
  }
}

// IntArrayRef parameters need storage that outlives the call.
template <typename T>
struct Storage {
  using type = T;
};
template <>
struct Storage<std::optional<at::IntArrayRef>> {
  using type = std::optional<std::vector<std::int64_t>>;
};

template <typename T, typename S>
decltype(auto) pass(S& stored) {
  if constexpr (std::is_same_v<T, std::optional<at::IntArrayRef>>) {
    return stored ? std::optional<at::IntArrayRef>(*stored) : std::nullopt;
  } else {
    return (stored);
  }
}

template <typename Module, typename Result, typename... Params, std::size_t... I>
Value invoke_forward(Module& module, Result (Module::*forward)(Params...),
                     std::string_view type_name, std::vector<std::optional<Value>> values,
                     std::index_sequence<I...>) {
  std::tuple<typename Storage<std::decay_t<Params>>::type...> stored{(
      values[I] ? FromValue<typename Storage<std::decay_t<Params>>::type>::get(*values[I])
                : missing_argument<typename Storage<std::decay_t<Params>>::type>(type_name, I))...};
  if constexpr (std::is_void_v<Result>) {
    (module.*forward)(pass<std::decay_t<Params>>(std::get<I>(stored))...);
    return {};
  } else {
    return to_value((module.*forward)(pass<std::decay_t<Params>>(std::get<I>(stored))...));
  }
}

}  // namespace detail

/// Sets ModuleType::call, to what runs `forward`, and the parameters. `names` are those of the
/// parameters, separated by commas; a question mark behind a name says that the argument may be
/// left out: forward then gets an undefined tensor, nullopt or true.
template <typename Module, typename Result, typename... Params>
void set_forward(ModuleType& type, Result (Module::*forward)(Params...), std::string_view names) {
  type.parameters = detail::parse_parameters(names, sizeof...(Params));
  type.call = [forward, type_name = type.name, parameters = *type.parameters](
                  torch::nn::Module& module, Values args, KwValues kwargs) {
    return detail::invoke_forward(
        dynamic_cast<Module&>(module), forward, type_name,
        detail::arrange_arguments(type_name, parameters, std::move(args), std::move(kwargs)),
        std::index_sequence_for<Params...>());
  };
}

/// Registers an own module class, so that graphs can call it: its forward must not be overloaded or
/// a template. `names` are the parameter names of forward as set_forward takes them.
template <typename Module>
void register_module_type(std::string name, std::string names = "input", bool is_leaf = true) {
  ModuleType entry;
  entry.short_name = name.substr(name.rfind('.') + 1);
  entry.name = std::move(name);
  set_forward(entry, &Module::forward, names);
  entry.is_leaf = is_leaf;
  // Nothing is known of the effects of an own class: keep its calls.
  entry.is_impure = [](const torch::nn::Module&, bool) { return true; };
  register_module_type(std::type_index(typeid(Module)), std::move(entry));
}

}  // namespace fx
