#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "fx/ops/function.h"

namespace fx {

/// What a call may do besides returning a value, read off the operator's schema: alias annotations
/// (`a!`), the nondeterministic_seeded tag, and a small table for operators whose schema hides an
/// effect (ops/hidden_effects.def).
struct Effects {
  bool mutates = false;  ///< writes to an argument (in place, out=, running statistics)
  bool random = false;   ///< draws from the random generator
  bool other = false;    ///< any other side effect: assertions, setitem, a wrapped function's own
  /// When set, the effects happen only if this boolean argument is not the constant False, for
  /// example "training" of aten::batch_norm.
  std::string_view unless_false_name;
  std::size_t unless_false_index = 0;

  bool any() const noexcept { return mutates || random || other; }
};

/// Asks whether a call passes a keyword (an `out` keyword selects the writing overload).
using HasKwarg = std::function<bool(std::string_view)>;

/// Effects of calling `function`. An operator this process does not know counts as impure
/// (`other`), since nothing is known of it. O(1) after the first call.
Effects effects_of(const Function& function, const HasKwarg& has_kwarg);

/// Effects of calling tensor method `name`: those of the ATen operator of that name; a method that
/// no operator stands for is pure (size, dim, type).
Effects effects_of_method(std::string_view name, const HasKwarg& has_kwarg);

/// Marks a wrapped or built-in function as having side effects (torch.fx.node.has_side_effect).
/// Thread safe.
void has_side_effect(const Function& function);

}  // namespace fx
