#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/interpret/compare.h"
#include "fx/passes/tools_common.h"

/// Finding the part of a model that a backend computes wrongly (torch.fx.passes.net_min_base).
namespace fx {

/// Runs a part of a model in some way and returns its result: one value, or a tuple. Each call gets
/// a part of its own and may change it, but not write into its tensors, which are the model's.
using RunPart = std::function<Value(GraphModule& part, const Values& inputs)>;

/// How Minimizer::minimize walks through the nodes.
enum class TraverseMethod : std::uint8_t {
  kSequential,  ///< each node by itself
  kBinary,      ///< all, then each half of what is wrong
  kAccumulate,  ///< the first node, the first two, the first three, ... up to the first wrong
                ///< result
  kSkip,        ///< the stretches between the nodes of `skip`
  kDefined,     ///< all nodes as one part
  kBlock,       ///< by bisection the smallest stretch that is wrong as a whole
};

/// "sequential", "binary", "accumulate", "skip", "defined" or "block".
/// @throws PassError kBadPassOption "Unknown traverse method ...!"
TraverseMethod traverse_method(std::string_view name);

struct MinimizerOptions {
  TraverseMethod method = TraverseMethod::kSequential;
  /// Go on after the first wrong part (kSequential, kBinary).
  bool find_all = false;
  /// Give the second way what the second way made of the nodes before, where that is known from
  /// earlier parts, so that errors add up; else both get the first way's values.
  bool accumulate_error = false;
  /// Compare all results of a part; false, as torch.fx has it: that of its last node alone, which
  /// says nothing of branches that do not lead there.
  bool all_outputs = true;
  /// run_nodes() compares the values of all nodes.
  bool return_intermediate = false;
  /// Nodes to leave out (kSkip); each must exist then.
  std::vector<std::string> skip = {};
  /// kBlock: only one end of the stretch: true the last node, false the first.
  std::optional<bool> find_last_node = {};
  /// Nodes that are not tried.
  std::function<bool(const Node&)> exclude = {};
  /// Says how two results differ, empty if they do not; not given: compare_values.
  std::function<std::string(const Value& expected, const Value& actual)> compare = {};
  CompareOptions tolerance = {};
  /// Called with each part whose results differ and the inputs that it had.
  std::function<void(const std::string& name, const GraphModule& part, const Values& inputs)>
      export_part = {};
};

/// What running one part both ways came to.
struct PartComparison {
  enum class Outcome : std::uint8_t { kAgrees, kDiffers, kFails };
  Outcome outcome = Outcome::kAgrees;
  /// How the results differ, or what was thrown.
  std::string reason = {};
  std::vector<std::string> outputs = {};  ///< names of the nodes whose values were compared
};

/// Finds the nodes that make two ways of running a model disagree. It cuts a part out of the model,
/// runs it both ways on the values that it has in the model, and compares:
///
///     Minimizer minimizer(gm, {x}, fx::run_part, run_on_backend);
///     std::vector<Node*> culprits = minimizer.minimize();
///
/// The part is a GraphModule of its own (split_by_tags); what stands before it is interpreted. The
/// order of effects is kept, a part that cannot be cut out without changing it is refused. Nodes
/// that pass values which are no tensors to each other are run as one (find_fusions). Neither the
/// model's buffers nor the inputs nor the random generators are changed, and both ways find them as
/// they were: O(model) for each part, and the memory that the model writes to.
class Minimizer {
 public:
  /// Runs the model once (shape_prop). `module` must outlive this.
  /// @param sample_inputs one value a placeholder; structured inputs are flat already.
  /// @throws PassError kBadPassOption "Placeholder count (N) does not match sample_input count
  /// (M)";
  ///   RunError when the model fails.
  Minimizer(GraphModule& module, Values sample_inputs, RunPart run_a, RunPart run_b,
            MinimizerOptions options = {});

  /// The nodes at fault, in graph order, among those from `start` to `end`, which are names of
  /// calls; empty: from the first, to the last. Empty if all agrees.
  /// @throws PassError kBadExtract for an unknown name, kBadPartition for a part that cannot be cut
  ///   out.
  std::vector<Node*> minimize(std::string_view start = {}, std::string_view end = {});

  /// Runs the nodes from `start` to `end` both ways as one part. @throws as minimize
  PartComparison run_nodes(std::string_view start = {}, std::string_view end = {});

  /// Runs these nodes, and those fused with them, both ways. `outputs` are the nodes to compare;
  /// empty: what the part returns. @throws PassError kBadPartition
  PartComparison run_and_compare(const std::vector<Node*>& nodes,
                                 const std::vector<Node*>& outputs = {});

  /// What was tried, one paragraph a part.
  const std::vector<std::string>& reports() const noexcept { return reports_; }
  /// Why results differed, by the names of the nodes that were compared, joined by commas; empty
  /// where they agreed.
  const std::map<std::string, std::string>& results() const noexcept { return results_; }
  /// How many parts were run both ways.
  int iterations() const noexcept { return iterations_; }

 private:
  struct Part;
  std::vector<Node*> collect(std::string_view start, std::string_view end) const;
  std::vector<Node*> with_fusions(const std::vector<Node*>& nodes) const;
  std::vector<Node*> allowed(std::vector<Node*> nodes) const;
  Part build(const std::vector<Node*>& nodes, const std::vector<Node*>& outputs) const;
  bool is_wrong(const std::vector<Node*>& nodes, const std::vector<Node*>& outputs);

  std::vector<Node*> sequential(const std::vector<Node*>& nodes);
  std::vector<Node*> binary(const std::vector<Node*>& nodes);
  std::vector<Node*> accumulate(const std::vector<Node*>& nodes);
  std::vector<Node*> skip(const std::vector<Node*>& nodes);
  std::vector<Node*> block(const std::vector<Node*>& nodes);

  GraphModule& module_;
  Values sample_inputs_;
  RunPart run_a_, run_b_;
  MinimizerOptions options_;
  FusionGroups fusions_;
  std::unordered_map<std::string, Value> b_outputs_;  // by name of the node
  std::vector<std::string> reports_;
  std::map<std::string, std::string> results_;
  int iterations_ = 0;
};

/// A RunPart: the Interpreter.
Value run_part(GraphModule& part, const Values& inputs);

}  // namespace fx
