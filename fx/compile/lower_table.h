#pragma once

#include <span>
#include <string_view>

#include "fx/compile/lower_call.h"

/// The table of operators that have a lowering, lower_table.def.
namespace fx::loops {

struct Lowering {
  std::string_view name;  ///< with overload: "aten::add.Tensor"
  Tensors (*lower)(const Call&);
};

/// Sorted by name.
std::span<const Lowering> lowerings();

/// Null if there is none. O(log n).
const Lowering* find_lowering(std::string_view name);

#define FX_LOWER(name, function) Tensors lower_##function(const Call& call);
#include "fx/compile/lower_table.def"
#undef FX_LOWER

}  // namespace fx::loops
