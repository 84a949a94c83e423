#pragma once

#include <ATen/core/function_schema.h>

#include <string>
#include <string_view>
#include <vector>

#include "fx/ops/function.h"

/// What the dispatcher of this process has to offer, for looking things up.
namespace fx {

/// The schemas that a call of `function` can mean: names, types and defaults of its arguments and
/// its results. One for "aten::add.Tensor", every overload for "torch.add"; none for built-ins,
/// wrapped functions and operators that are not registered. Valid while the operators stay
/// registered.
std::vector<const c10::FunctionSchema*> schemas_of(const Function& function);

/// The operators of a namespace ("aten"), or all of them, as targets of call_function nodes and in
/// alphabetical order: "aten::add.Tensor", "aten::relu". fx::is_runnable asks for one.
std::vector<std::string> registered_operators(std::string_view name_space = {});

}  // namespace fx
