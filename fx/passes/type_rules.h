#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/graph/tensor_type.h"

/// What type_check (type_check.h) knows of operators and modules: a table that own rules join.
namespace fx {

/// What is known of a value: a tensor's type, or that it is a number, to which no shape belongs.
struct ValueType {
  bool is_number = false;
  TensorType tensor;  ///< Dyn for a number
};

/// One call, as a rule sees it.
class TypeCall {
 public:
  using Lookup = std::function<ValueType&(const Node&)>;
  /// @param module the module that a call_module node calls, else null.
  TypeCall(const Node& node, const torch::nn::Module* module, Lookup lookup)
      : node_(node), module_(module), lookup_(std::move(lookup)) {}

  const Node& node() const noexcept { return node_; }
  const torch::nn::Module* module() const noexcept { return module_; }
  /// The argument at that place, or under that keyword; null if it is not given.
  const Argument* argument(std::size_t index, std::string_view name) const;
  /// An int argument, else `otherwise`. @throws PassError kTypeMismatch for any other kind.
  std::int64_t int_argument(std::size_t index, std::string_view name, std::int64_t otherwise) const;

  /// What is known of the node's own value so far: its annotation.
  const TensorType& annotation() const { return lookup_(node_).tensor; }
  /// What is known of an argument: of a node, or of a number.
  /// @throws PassError kTypeMismatch for a missing argument and for one that is neither.
  const ValueType& type_of(std::size_t index, std::string_view name) const;
  /// The tensor type of the first argument.
  const TensorType& input() const;
  /// The same after an input of which nothing is known was taken as one of that many dimensions; of
  /// a known type the number has to be right. @throws PassError kTypeMismatch.
  const TensorType& input_of_rank(std::size_t rank) const;

  /// @throws PassError kTypeMismatch: "node conv1, torch.nn.Conv2d: <problem>".
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  const Node& node_;
  const torch::nn::Module* module_;
  Lookup lookup_;
};

/// Two dimensions that are the same number in every run.
struct DimEquality {
  TypeDim left;
  TypeDim right;
};

struct TypeRule {
  /// The type of the result by those of the inputs; the checker merges it with the annotation of
  /// the node. torch.fx: register_inference_rule.
  std::function<ValueType(const TypeCall&)> infer;
  /// Which dimensions of inputs and result are equal, given that their types are in place; null:
  /// none. torch.fx: register_refinement_rule.
  std::function<std::vector<DimEquality>(const TypeCall&)> equalities;
  /// Dimensions of the result as expressions of those of the inputs; null: none. torch.fx:
  /// register_algebraic_expressions_inference_rule.
  std::function<TensorType(const TypeCall&)> relations;
};

/// Adds or replaces the rule of a function ("torch.add", "aten::add.Tensor"), a method (".add") or
/// a class of modules ("torch.nn.Conv2d", as module_type_name calls it). Thread safe.
void register_type_rule(std::string_view target, TypeRule rule);

/// The rule of what a node calls, or nothing. Thread safe.
std::optional<TypeRule> find_type_rule(const Node& node, const torch::nn::Module* module);

}  // namespace fx
