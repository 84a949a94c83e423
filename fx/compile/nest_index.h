#pragma once

#include <utility>
#include <vector>

#include "fx/compile/nest.h"

/// Where an element of a tensor stands, in terms of the axes of a nest.
namespace fx::loops {

/// The index in one dimension: affine in the axes, plus values that were computed, times steps.
struct AxisIndex {
  Affine affine = {};
  std::vector<std::pair<ValueId, Dim>> values = {};

  bool is_zero() const { return affine.is_zero() && values.empty(); }
  friend bool operator==(const AxisIndex&, const AxisIndex&) = default;
  friend auto operator<=>(const AxisIndex&, const AxisIndex&) = default;
};

/// For each dimension of a tensor.
using AxisMap = std::vector<AxisIndex>;

/// `outer`, whose axes are dimensions of a result, where these have the indices `map`.
AxisIndex substitute(Shapes& shapes, const Affine& outer, const AxisMap& map);

/// The indices in args[0] of a reshape for those in its result: neighbours are counted as one
/// number, and that is taken apart again. @throws Unsupported where it does not come apart, unless
/// the axes have the sizes of the dimensions of args[0].
AxisMap reshape_map(Shapes& shapes, const std::vector<Dim>& axes, const Expr& reshape,
                    const Dims& from, const AxisMap& map);

/// The sizes that each size is a product of, where a reshape asks for it: see reshape_map.
void collect_factors(const Shapes& shapes, const Expr& reshape, const Dims& from,
                     std::vector<std::pair<Dim, Dims>>& factors);

}  // namespace fx::loops
