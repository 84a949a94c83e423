#include "fx/passes/remove_noops.h"

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "fx/analysis/alias.h"
#include "fx/graph/module_types.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/named_arguments.h"
#include "fx/passes/nested.h"
#include "fx/passes/operation.h"

namespace fx {
namespace {

// Puts the input in the place of every node for which `replacement` gives one.
PassResult replace_by_input(GraphModule& module, auto&& replacement_of) {
  PassResult result;
  for_each_graph_module(module, [&](GraphModule& nested) {
    // Until nothing is left: a node may only be in the way of another one, as the view of it that
    // is returned.
    for (std::int64_t before = -1; before != result.rewrites;) {
      before = result.rewrites;
      auto replacement = replacement_of(nested);
      for (Node& node : nested.graph().nodes()) {
        Node* input = replacement(node);
        if (!input) continue;
        node.replace_all_uses_with(*input);
        nested.graph().erase_node(node);
        ++result.rewrites;
      }
    }
  });
  result.changed = result.rewrites > 0;
  return result;
}

bool is_dropout_module(const torch::nn::Module& module) {
  static constexpr std::array<std::string_view, 5> kNames = {"AlphaDropout", "Dropout", "Dropout2d",
                                                             "Dropout3d", "FeatureAlphaDropout"};
  const ModuleType* type = find_module_type(module);
  return type && type->is_leaf && contains(kNames, type->short_name);
}

bool is_idle_dropout(const Node& node, bool even_in_training) {
  static constexpr std::array<std::string_view, 4> kNames = {
      "alpha_dropout", "dropout", "feature_alpha_dropout", "feature_dropout"};
  if (!contains(kNames, operation_of(node))) return false;
  if (even_in_training) return true;
  const auto args = NamedArguments::of(node);
  if (!args) return false;
  const Argument* train = args->find("train");
  return (train && train->kind() == Argument::Kind::kBool && !train->to_bool()) ||
         is_number(args->find("p"), 0);
}

}  // namespace

PassResult remove_dropout(GraphModule& module, const RemoveDropoutOptions& options) {
  return replace_by_input(module, [&](GraphModule& owner) {
    return [&](const Node& node) -> Node* {
      if (node.op() == Opcode::kCallModule) {
        const auto called = owner.find_submodule(node.target().str());
        if (!called || !is_dropout_module(*called)) return nullptr;
        return !called->is_training() || options.even_in_training ? input_of(node) : nullptr;
      }
      return is_idle_dropout(node, options.even_in_training) ? input_of(node) : nullptr;
    };
  });
}

namespace {

class NoopFinder {
 public:
  NoopFinder(GraphModule& module, const RemoveNoopsOptions& options)
      : module_(&module), static_shapes_(options.static_shapes), aliases_(module.graph()) {}

  // The input that the node returns as it is, or null.
  Node* operator()(const Node& node) const {
    Node* input = input_of(node);
    if (!input || node.is_impure()) return nullptr;
    if (node.op() == Opcode::kCallModule) {
      const auto called = module_->find_submodule(node.target().str());
      if (!called) return nullptr;
      const torch::nn::Module& module = *called;
      return typeid(module) == typeid(torch::nn::IdentityImpl) ? input : nullptr;
    }
    // In-place changes of shape or strides are seen through one tensor and not through its view.
    if (aliases_.is_written(node)) return nullptr;
    if (is_same_view(node, *input)) return input;
    return is_neutral_arithmetic(node, *input) ? input : nullptr;
  }

 private:
  bool is_same_view(const Node& node, const Node& input) const {
    const std::string_view name = operation_of(node);
    if (name == "alias" || name == "lift_fresh") return true;
    const auto args = NamedArguments::of(node);
    if (name == "slice" && args)
      return is_int(args->find("step"), 1) && is_from_start(args->find("start")) &&
             is_to_end(args->find("end"));
    if (name == "permute" && args) return is_identity_order(args->find("dims"));
    const TensorMeta* before = tensor_meta(input);
    const TensorMeta* after = tensor_meta(node);
    if (!before || !after || before->shape != after->shape || before->dtype != after->dtype ||
        before->device != after->device || before->stride != after->stride)
      return false;
    static constexpr std::array<std::string_view, 3> kConversions = {"contiguous", "to", "type_as"};
    if (contains(kConversions, name)) return !asks_for_copy(node, args);
    static constexpr std::array<std::string_view, 4> kViews = {"_unsafe_view", "expand", "reshape",
                                                               "view"};
    return static_shapes_ && contains(kViews, name);
  }

  // Whether to() makes a copy in any case, or may do so.
  static bool asks_for_copy(const Node& node, const std::optional<NamedArguments>& args) {
    if (!args) return node.num_args() > 2 || node.has_kwarg("copy");
    const Argument* copy = args->find("copy");
    return copy && (copy->kind() != Argument::Kind::kBool || copy->to_bool());
  }

  static bool is_from_start(const Argument* start) {
    return start && (start->is_none() || is_int(start, 0));
  }
  static bool is_to_end(const Argument* end) {
    return end && (end->is_none() || is_int(end, std::numeric_limits<std::int64_t>::max()));
  }
  static bool is_identity_order(const Argument* dims) {
    if (!dims || !dims->is_aggregate() || dims->kind() == Argument::Kind::kDict) return false;
    std::int64_t next = 0;
    for (const Argument& dim : dims->items())
      if (!is_int(&dim, next++)) return false;
    return true;
  }

  // Only where the input's type is known, and only as the left operand of the scalar.
  bool is_neutral_arithmetic(const Node& node, const Node& input) const {
    const std::string_view name = operation_of(node);
    const bool multiplies = name == "mul" || name == "multiply";
    const bool divides =
        name == "truediv" || name == "div" || name == "divide" || name == "true_divide";
    const bool subtracts = name == "sub" || name == "subtract";
    const bool adds = name == "add";
    if (!multiplies && !divides && !subtracts && !adds) return false;
    if (node.num_args() != 2 || !node.kwargs().empty()) return false;
    const TensorMeta* before = tensor_meta(input);
    const TensorMeta* after = tensor_meta(node);
    if (!before || !after || before->dtype != after->dtype || before->shape != after->shape ||
        before->stride != after->stride)
      return false;
    const Argument& other = node.args()[1];
    if (!is_number(&other, multiplies || divides ? 1 : 0)) return false;
    const bool integral = at::isIntegralType(before->dtype, /*includeBool=*/false);
    if (adds && !integral) return false;
    // -0.0 is a number of its own: x - -0.0 turns -0.0 into 0.0.
    if (subtracts && other.kind() == Argument::Kind::kFloat && std::signbit(other.to_double()))
      return false;
    // The result is a new tensor: nobody may notice that it is the input itself.
    return !aliases_.is_written(input) && !aliases_.reaches_output(node);
  }

  GraphModule* module_;
  bool static_shapes_;
  AliasAnalysis aliases_;
};

}  // namespace

PassResult remove_noops(GraphModule& module, const RemoveNoopsOptions& options) {
  return replace_by_input(module, [&](GraphModule& owner) { return NoopFinder(owner, options); });
}

}  // namespace fx
