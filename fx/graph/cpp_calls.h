#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fx/graph/cpp_values.h"
#include "fx/ops/op_info.h"

namespace fx::cpp {

/// Helper functions that a piece of source calls, to be put in front of it.
struct Helpers {
  bool dispatcher = false;  ///< call<Results...>("ns::op", "overload", {...})
  bool values = false;      ///< tuple({...}), list({...}), dict({...})
  bool integers = false;    ///< floor_div, floor_mod
  bool indexing = false;    ///< at::indexing
  bool scalar_ops = false;  ///< at::native::wrapped_scalar_tensor
};

/// The source of the helpers, inside an anonymous namespace; empty if none is needed.
std::string helpers_source(const Helpers& helpers);

/// The call of the first overload that takes these arguments. Empty text when none does.
Expr operator_call(const OpInfo& info, std::span<const Argument> args,
                   std::span<const KwArg> kwargs, const NodeExpr& node, Helpers& helpers);

}  // namespace fx::cpp
