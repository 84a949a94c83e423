#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx::loops {

/// What a compilation took for granted of its inputs and attributes, where in-place operators
/// became functional ones: the memory of an in-place operator keeps its dtype and size, whatever
/// the other operand is, and a functional one would follow that. Other sizes that are not 1 make no
/// difference.
class InputKinds {
 public:
  InputKinds(const GraphModule& module, const Values& inputs);

  /// Whether inputs, and the module's attributes as they are now, have those dtypes, ranks and
  /// dimensions of one element. O(tensors), no allocation.
  bool hold_for(const Values& inputs) const;

 private:
  struct Kind {
    c10::ScalarType dtype;
    std::int64_t dim;
    std::uint64_t ones;  // a bit for each dimension of one element
    bool operator==(const Kind&) const = default;
  };
  static Kind kind_of(const at::Tensor& tensor);

  std::vector<Kind> inputs_;
  std::vector<std::pair<at::Tensor, Kind>> attributes_;
};

}  // namespace fx::loops
