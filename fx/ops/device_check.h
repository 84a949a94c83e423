#pragma once

#include <ATen/core/stack.h>

#include <string_view>

#include "fx/ops/function.h"
#include "fx/ops/value.h"

/// All tensors of one call live on one device: checked before the kernel runs, since LibTorch's own
/// check comes too late or, for some devices (meta), not at all.
namespace fx {

/// Zero-dimensional CPU tensors go with every device. Functions that take tensors of several
/// devices (copy_, to, index ...: ops/mixed_devices.def), wrapped functions and operators outside
/// of aten are not checked. O(arguments).
/// @throws RunError kDeviceMismatch listing the device of each argument.
void check_devices(const Function& function, const Values& args, const KwValues& kwargs);

/// The same for tensor method `name`.
void check_devices_of_method(std::string_view name, const Values& args, const KwValues& kwargs);

/// Whether calls of `function` are checked: false for functions that take several devices. O(log
/// n).
bool wants_one_device(const Function& function);
bool wants_one_device_method(std::string_view name);

/// Whether the tensors on the stack, in lists too, share a device (zero-dimensional CPU tensors go
/// with all).
bool share_device(const torch::jit::Stack& stack);

}  // namespace fx
