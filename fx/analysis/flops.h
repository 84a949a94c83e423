#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx {

/// Floating point operations of a call.
struct FlopCount {
  std::uint64_t total = 0;
  /// Operators that multiply matrices ("aten::linear"), the most expensive first, then by name.
  std::vector<std::pair<std::string, std::uint64_t>> operators;
  /// Calls of such operators whose sizes are not known; they are not in `total`.
  std::size_t unknown = 0;
  /// The steps of a while_loop are not known: they are counted as one.
  bool has_loops = false;
};

/// Sizes of the tensor that a node gives; nothing if they are not known.
using SizesOf = std::function<std::optional<std::vector<std::int64_t>>(const Node&)>;

/// Counts what torch.utils.flop_counter counts, by sizes: products of matrices, convolutions,
/// attention and recurrent layers, a multiplication and an addition as two; everything else is
/// nothing beside them. Graphs that operators take count as often as they run: of cond the more
/// expensive branch, of scan and map each step. Sums that do not fit are the largest number.
///
/// @param sizes_of default: of the meta "tensor_meta", which ShapeProp and FakeTensorProp set; of
///   get_attr nodes without it those of the tensor.
/// O(nodes).
FlopCount count_flops(const GraphModule& module, const SizesOf& sizes_of = {});

}  // namespace fx
