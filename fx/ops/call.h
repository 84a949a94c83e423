#pragma once

#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <string>

#include "fx/ops/function.h"
#include "fx/ops/op_info.h"
#include "fx/ops/value.h"

namespace fx {

/// Converts positional and keyword values to the stack that `overload` takes: Python's argument
/// rules (keywords by schema name, "input" also for "self", defaults filled in, ints for floats,
/// one int for "int[2]"). Consumes the values on success only.
/// @param numbers_as_tensors also lets a number stand for a tensor (torch.add(x, 2)).
/// @returns an empty string, or why the values do not fit; `stack` then is unspecified.
std::string bind(const Overload& overload, Values& args, KwValues& kwargs, torch::jit::Stack& stack,
                 bool numbers_as_tensors = false);

/// The same without the reason, for trying one overload after the other.
bool try_bind(const Overload& overload, Values& args, KwValues& kwargs, torch::jit::Stack& stack,
              bool numbers_as_tensors = false);

/// Converts one value to what `rule` takes, as bind() does. `out` is unspecified on false.
/// @returns whether the value fits.
bool convert_argument(const ArgRule& rule, const Value& value, Value& out,
                      bool numbers_as_tensors = false);

/// Whether keyword `key` stands for the argument of `rule`.
bool is_keyword_of(const ArgRule& rule, std::string_view key);

/// The overload of `info` that takes these values, bound to `stack`.
/// @throws RunError kNoMatchingOverload listing every schema with the reason it does not fit.
const Overload& select_and_bind(const OpInfo& info, std::string_view name, Values& args,
                                KwValues& kwargs, torch::jit::Stack& stack);

/// Calls a function as Python would: an operator through the dispatcher, a built-in or a wrapped
/// function through its implementation. Several results come back as a tuple, none as None.
/// @throws RunError kUnknownOperator, kNoMatchingOverload; LibTorch's own exceptions pass through.
Value call(const Function& function, Values args, KwValues kwargs = {});

/// Calls method `name` on args[0]: a tensor, also the methods that are no operators (float, long,
/// cpu, size ...), or an object of a class registered with torch::class_.
Value call_method(std::string_view name, Values args, KwValues kwargs = {});

/// Whether ints behind the tensor of a method are one list, as in view(2, 3), reshape, permute,
/// repeat, expand: its only other positional argument is a list of ints. roll(1, 0) has two.
bool gathers_ints(const Overload& overload);

/// Whether call_method(name) on a tensor always means the ATen operator of that name, so that a
/// caller may resolve it once.
bool is_operator_method(std::string_view name);

/// Calls `overload` on a stack that fits it, after checking what its kernel takes on trust.
/// @throws RunError as run_kernel_check does; LibTorch's own exceptions pass through.
inline void call_boxed(const Overload& overload, torch::jit::Stack& stack) {
  if (overload.check) [[unlikely]]
    run_kernel_check(*overload.check, stack);
  overload.handle.callBoxed(stack);
}

/// Result values of a boxed call as one value: None, the value, or a tuple.
Value pack_results(torch::jit::Stack& stack, std::size_t count);

/// Registers (or replaces) the implementation of a wrapped function; fx::wrap is the typed way.
/// @throws TraceError kWrap when `name` names an operator or built-in. Thread safe.
void register_wrapped_function(std::string_view name, WrappedFunction implementation);

/// Whether this process can run `function`.
bool is_runnable(const Function& function);

}  // namespace fx
