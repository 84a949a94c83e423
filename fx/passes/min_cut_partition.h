#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/passes/joint.h"

namespace fx {

/// A joint graph cut in two. Attributes of both are shared with the joint graph's.
struct TrainingGraphs {
  std::shared_ptr<GraphModule> forward;   ///< (inputs...) -> (result, (saved...))
  std::shared_ptr<GraphModule> backward;  ///< (saved..., tangents...) -> (gradients...)
  JointSignature signature;
  std::vector<at::Tensor> parameters;  ///< those that get gradients, as the signature lists them

  std::vector<std::string> saved;      ///< names of the nodes whose values are kept, in order
  std::int64_t saved_bytes = 0;        ///< of the memory that is kept, inputs included
  std::int64_t saved_input_bytes = 0;  ///< of the inputs among them, which the caller may hold too
  std::size_t num_recomputed = 0;      ///< operators that both graphs run, views not counted
  /// "3 values of 4.0 KiB are kept, 1.0 KiB of them inputs; 2 operators run again".
  std::string str() const;
};

/// Cuts where the forward ends: everything that the result needs runs in the forward alone, and
/// what the backward uses of it is kept (torch's functorch default_partition). Instead of views
/// what they show is kept. Attributes are not kept but read again, unless the forward writes to
/// them. O(nodes + arguments).
/// @throws PassError kBadPartition when `joint` is not what fx::joint makes.
TrainingGraphs default_partition(const GraphModule& joint);

struct MinCutOptions {
  /// Recompute whatever is neither random nor compute-heavy, also where it costs time: least
  /// memory (functorch's aggressive_recomputation).
  bool aggressive = false;
};

/// Cuts so that little memory is kept from forward to backward, where cheap operators may run in
/// both (torch's functorch min_cut_rematerialization_partition): the smallest cut of a flow network
/// whose edges weigh what it costs to keep a value. Which operators may run again stands in
/// recompute_rules.h: never those with effects, so that masks of dropout are kept and written
/// buffers are written once. Keeps at most what default_partition keeps, and is that one where
/// nothing is gained. O(V^2 E) in the worst case, about O(nodes) on real programs.
/// @throws as default_partition.
TrainingGraphs min_cut_rematerialization_partition(const GraphModule& joint,
                                                   const MinCutOptions& options = {});

}  // namespace fx
