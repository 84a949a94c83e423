#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace c10 {
struct IValue;
}

namespace fx {

struct OpInfo;
struct KwValue;

/// A C++ implementation of a wrapped function, called with positional and keyword values.
using WrappedFunction =
    std::function<c10::IValue(std::vector<c10::IValue> args, std::vector<KwValue> kwargs)>;

/// How a call_function target gets its meaning.
enum class FunctionKind : std::uint8_t {
  kOperator,  ///< "aten::add.Tensor": one overload of a dispatcher operator (LibTorch's own naming)
  kTorch,  ///< "torch.add", "torch.nn.functional.relu": overload chosen by the values, as in Python
  kBuiltin,  ///< "operator.add", "operator.getitem", "builtins.getattr": Python's built-ins
  kWrapped,  ///< a C++ function registered with fx::wrap under its own name
};

/// The target of a call_function node: interned and immortal, so that equality is pointer equality.
/// "operator.add", "torch.add" and "aten::add.Tensor" are three different functions.
///
/// A name alone never touches the dispatcher: schemas and kernels are resolved at first use
/// (ops/schema.h), so that graphs can hold operators which this process cannot run.
class Function {
 public:
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  /// Full name, for example "aten::add.Tensor" or "operator.add".
  const std::string& name() const noexcept { return name_; }
  FunctionKind kind() const noexcept { return kind_; }
  /// Last part without namespace and overload: "add".
  std::string_view base_name() const noexcept { return base_name_; }
  /// Overload name of an operator: "Tensor"; empty for the default overload and other kinds.
  std::string_view overload_name() const noexcept { return overload_; }
  /// What torch.fx derives node names from: "add_tensor" for aten::add.Tensor, "add" for the
  /// others.
  const std::string& candidate_name() const noexcept { return candidate_; }

  /// The C++ implementation of a wrapped function, or null: see register_wrapped_function. Thread
  /// safe.
  const WrappedFunction* implementation() const noexcept {
    return implementation_.load(std::memory_order_acquire);
  }
  /// @param implementation lives for ever.
  void set_implementation(const WrappedFunction* implementation) const noexcept {
    implementation_.store(implementation, std::memory_order_release);
  }

  /// The function of that name. "ns::op", "ns::op.overload" are operators, "torch.*" torch
  /// functions, "operator.*", "_operator.*", "builtins.*" and "math.*" built-ins, everything else a
  /// wrapped function. "ns::op.default" is the same as "ns::op". Thread safe, O(length).
  /// @throws GraphError kBadTarget for an empty name or one with white space.
  static const Function* get(std::string_view name);

 private:
  friend struct FunctionTable;
  friend struct OpInfo;
  Function(std::string name, FunctionKind kind);

  std::string name_;
  FunctionKind kind_;
  std::string_view base_name_;
  std::string_view overload_;
  std::string candidate_;
  mutable std::atomic<const OpInfo*> info_{nullptr};  // cache of OpInfo::of
  mutable std::atomic<const WrappedFunction*> implementation_{nullptr};
};

}  // namespace fx
