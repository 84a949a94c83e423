#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "fx/capture/recording.h"

namespace fx {

/// Whether the sizes of what a call gives depend on the values of its operands: nonzero,
/// masked_select, unique, masks as indices; not integers as indices.
bool has_sizes_of_values(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args);

/// The dimension of the first result (of all items of a list) that the number of items is in; none
/// where any of any result may depend on values.
std::optional<std::int64_t> dimension_of_items(const c10::OperatorHandle& op,
                                               c10::ArrayRef<c10::IValue> args);

/// Calls an operator as if other operands were true: what it gives, where its sizes depend on
/// values, has as many items as `change` says, repeated or cut, so that indices stay valid. Masks
/// as indices select as many. Other operators as they are.
void call_with_other_sizes(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                           ValueSizes change);

/// Makes a recording true for sizes that depend on values (`recording.value_sizes`). The program
/// cannot be seen to look at one, so it runs again, on copies of `inputs`, with other numbers of
/// items. Where the recordings are the same, the graph hands the sizes on; where not, it gets
/// assertions, of the number or of the least one for which runs show the same. Programs below
/// autograd do not run again: their graphs hold for the numbers of the example.
///
/// Runs: 4 more, if there are such sizes at all. Leaves no trace in the module, the inputs and the
/// random generators.
void check_value_sizes(const Program& program, const std::vector<at::Tensor>& inputs,
                       Recording& recording);

/// Whether a graph holds such an assertion.
bool has_size_checks(const Graph& graph);

}  // namespace fx
