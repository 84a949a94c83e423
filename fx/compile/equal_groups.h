#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "fx/compile/fused_kernel.h"

namespace fx::loops {

/// The groups of operators of one compilation, by what they do: a cell that is unrolled 32 times
/// has the same groups 32 times, of which one is lowered and compiled.
class EqualGroups {
 public:
  /// The kernel of a group whose graph is equal to this one but for names, with inputs and results
  /// of the same dtypes, sizes and strides in the example; null if there is none. O(nodes).
  std::shared_ptr<FusedKernel> find(const Graph& graph);
  /// The kernel of the graph that find() was last asked for.
  void add(std::shared_ptr<FusedKernel> kernel);

 private:
  struct Group {
    std::shared_ptr<Graph> form;  // inputs are called by their places
    std::shared_ptr<FusedKernel> kernel;
  };
  std::unordered_multimap<std::uint64_t, Group> groups_;
  std::shared_ptr<Graph> asked_;
};

}  // namespace fx::loops
