#pragma once

// Internal: functions over symbolic numbers, by torch.export's names and by ours.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "fx/ops/builtins.h"

namespace fx::io {

struct SymbolicTarget {
  std::string_view target;
  std::string_view builtin;
};

/// Functions that torch has under names of its own.
inline constexpr std::array kSymbolicTargets = {
    SymbolicTarget{"torch.sym_sqrt", "math.sqrt"},
    SymbolicTarget{"torch._sym_sqrt", "math.sqrt"},
    SymbolicTarget{"torch.sym_float", "builtins.float"},
    SymbolicTarget{"torch.sym_int", "builtins.int"},
    SymbolicTarget{"torch.sym_max", "builtins.max"},
    SymbolicTarget{"torch.sym_min", "builtins.min"},
    SymbolicTarget{"torch.sym_not", "operator.not_"},
};

/// "operator.add" for "_operator.add", "builtins.max" for "torch.sym_max"; empty if there is none.
inline std::string builtin_of_target(std::string_view target) {
  auto row = std::ranges::find(kSymbolicTargets, target, &SymbolicTarget::target);
  if (row != kSymbolicTargets.end()) return std::string(row->builtin);
  if (target.starts_with("_operator.")) target.remove_prefix(1);
  if (!target.starts_with("operator.") && !target.starts_with("math.")) return {};
  return find_builtin(target) != nullptr ? std::string(target) : std::string();
}

/// The inverse, for functions that torch.export knows; empty for others.
inline std::string symbolic_target(std::string_view builtin) {
  auto row = std::ranges::find(kSymbolicTargets, builtin, &SymbolicTarget::builtin);
  if (row != kSymbolicTargets.end()) return std::string(row->target);
  static constexpr std::array<std::string_view, 18> kArithmetic = {
      "add", "and_", "eq", "floordiv", "ge",  "gt",  "le",     "lshift", "lt",
      "mod", "mul",  "ne", "neg",      "or_", "pow", "rshift", "sub",    "truediv"};
  if (builtin == "math.trunc") return std::string(builtin);
  if (!builtin.starts_with("operator.")) return {};
  const std::string_view name = builtin.substr(std::string_view("operator.").size());
  return std::ranges::find(kArithmetic, name) != kArithmetic.end() ? "_" + std::string(builtin)
                                                                   : std::string();
}

}  // namespace fx::io
