#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/interpret/value_map.h"
#include "fx/ops/rng_guard.h"

namespace fx {

class AliasAnalysis;
class TensorCopies;

/// While it lives, running the graph of a module leaves no trace: attributes that the graph may
/// write to (running statistics, buffers, also those of called modules) stand on copies of their
/// memory, written inputs are copied, and the random generators are put back at the end.
///
/// Not for concurrent runs of the same module: its tensors point elsewhere meanwhile.
class Isolation {
 public:
  /// Replaces the tensors of `inputs`, nested ones too, by copies if the graph may write to inputs:
  /// with the same strides in copies of their whole memory, shared as the inputs share theirs.
  /// O(nodes), plus the memory that may be written.
  Isolation(GraphModule& module, Values& inputs);
  Isolation(const Isolation&) = delete;
  Isolation& operator=(const Isolation&) = delete;

 private:
  // Attributes and the memory they had; gives it back, also when making the Isolation fails.
  struct Originals {
    std::vector<std::pair<at::Tensor, at::Tensor>> tensors;
    Originals() = default;
    Originals(const Originals&) = delete;
    Originals& operator=(const Originals&) = delete;
    ~Originals();
  };

  void copy_attributes(GraphModule& module, const AliasAnalysis& aliases, TensorCopies& copies);

  std::optional<RngGuard> generators_;
  Originals originals_;
};

}  // namespace fx
