#pragma once

#include <ATen/core/stack.h>

#include <string_view>
#include <vector>

/// Checks ahead of the kernels of LibTorch that take sizes or indices on trust: they would read or
/// write outside of their tensors. Found by calling operators with tensors that end where memory
/// ends (tests/ops/kernel_checks_test.cpp).
namespace fx {

struct Overload;

/// The arguments of one call, as a check wants them.
class CheckedCall;

/// What is checked ahead of calls of an overload, and where its arguments are on the stack.
struct KernelCheck {
  std::string_view name;  ///< "aten::native_batch_norm", without overload
  void (*check)(const CheckedCall&);
  std::vector<int>
      positions;  ///< of what the check asks for; -1: this overload has no such argument
};

/// The check of an overload, or null: nearly all operators check for themselves. The result lives
/// for ever.
const KernelCheck* find_kernel_check(const Overload& overload);

/// @throws RunError kShapeMismatch, kWrongType naming the argument, what was found and what was
/// wanted. O(arguments), and
///   O(elements) of tensors of indices. Tensors without values (meta, those of a trace) pass as far
///   as their values matter.
void run_kernel_check(const KernelCheck& check, const torch::jit::Stack& stack);

}  // namespace fx
