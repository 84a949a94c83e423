#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/passes/decompose.h"

/// The parts of core_aten_decompositions(), and how they are written: a C++ function for each
/// operator, whose parameters are those of the schema, defaults filled in.
namespace fx::core {

/// Adds decompositions to a table.
class Entries {
 public:
  explicit Entries(DecompositionTable& table) : table_(table) {}

  /// `fn` is what the operator does, in the dtypes of its arguments.
  template <typename R, typename... A>
  void add(std::string_view name, R (*fn)(A...)) {
    put(name, false, [fn](const torch::jit::Stack& stack) {
      return call(fn, stack, std::index_sequence_for<A...>());
    });
  }

  /// The same for operators that compute in float32 where their arguments are float16 or bfloat16,
  /// and round once: `fn` sees float32 in their place.
  template <typename R, typename... A>
  void add_wide(std::string_view name, R (*fn)(A...)) {
    put(name, true, [fn](const torch::jit::Stack& stack) {
      return call(fn, stack, std::index_sequence_for<A...>());
    });
  }

 private:
  using OnStack = std::function<Value(const torch::jit::Stack&)>;
  void put(std::string_view name, bool wide, OnStack run);

  template <typename T>
  static T argument(const Value& value) {
    if constexpr (std::is_same_v<T, at::Tensor>)
      return value.isNone() ? at::Tensor() : value.toTensor();
    else
      return value.to<T>();
  }

  static Value result(at::Tensor tensor) { return tensor; }
  static Value result(std::vector<at::Tensor> tensors) { return tensors; }
  template <typename... T>
  static Value result(std::tuple<T...> items) {
    return items;
  }

  template <typename R, typename... A, std::size_t... I>
  static Value call(R (*fn)(A...), const torch::jit::Stack& stack, std::index_sequence<I...>) {
    return result(fn(argument<std::decay_t<A>>(stack.at(I))...));
  }

  DecompositionTable& table_;
};

/// float32 for float16 and bfloat16; undefined tensors stay.
at::Tensor wide(const at::Tensor& x);
/// Integers as the default dtype.
at::Tensor floating(const at::Tensor& x);

void add_activations(Entries& entries);
void add_pointwise(Entries& entries);
void add_reductions(Entries& entries);
void add_losses(Entries& entries);
void add_norms(Entries& entries);
void add_views(Entries& entries);
void add_indexing(Entries& entries);
void add_factories(Entries& entries);

}  // namespace fx::core
