#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKeySet.h>

namespace fx {

/// Runs an operator on LibTorch's functional tensors below the dispatch key of a capture, so that
/// what becomes of it reaches that key again, on plain tensors. `keys` are those of the call
/// without the capture's. Operators that neither write nor make views stay whole; LibTorch's
/// functionalization takes the others apart. @throws as the operator does.
void call_functional(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);

/// Whether this call is one that functionalization makes on meta tensors, to see whether the
/// operator takes its arguments: no part of the program.
bool is_functional_rehearsal(c10::DispatchKeySet keys);

/// Makes such a call. An operator that meta tensors cannot run gives back what it would write to.
void rehearse(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace fx
