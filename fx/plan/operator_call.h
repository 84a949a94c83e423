#pragma once

#include <optional>

#include "fx/plan/plan.h"

namespace fx {

/// The calls that a step with these arguments can mean, in the order in which fx::call tries them:
/// those overloads of `info` that the number, the keywords and the constants of the arguments
/// allow. Empty when fx::call has to sort it out, with its full error message.
std::vector<OperatorCall> plan_operator_calls(const OpInfo& info, const std::vector<Operand>& args,
                                              const std::vector<std::pair<Symbol, Operand>>& kwargs,
                                              bool one_device);

}  // namespace fx
