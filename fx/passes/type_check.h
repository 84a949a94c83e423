#pragma once

#include <cstdint>

#include "fx/passes/pass.h"
#include "fx/passes/type_rules.h"

namespace fx {

struct TypeCheckOptions {
  /// A call without a rule gives Dyn, a value of which nothing is known, instead of an error.
  bool unknown_as_dyn = false;
};

/// Checks the gradual types of a graph (torch.fx.experimental.graph_gradual_typechecker): each node
/// gets the most precise TensorType that its annotation, its inputs and the rule of what it calls
/// allow, as its type(). What an annotation leaves open fits everything; two that can not both be
/// true of any tensor are an error.
///
///     graph.placeholders()[0]->set_type(TensorType::of({1, 3, std::nullopt, 32}).to_string());
///     type_check(module);
///
/// There are rules for add, sub, mul and div, reshape, transpose, flatten, functions of single
/// elements such as relu, and the modules Conv2d, BatchNorm2d, Linear,
/// MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Flatten and those of single elements;
/// register_type_rule adds more. Annotations that are no TensorType ("Tensor") stay and tell
/// nothing; "int", "float" and "bool" are numbers.
///
/// Where torch.fx refuses programs that run, this does not: negative axes, a reshape of unknown
/// dimensions with -1 in it, a linear layer on one dimension, a Conv2d on three. Where it accepts
/// ones that cannot run, this does not: a reshape of known sizes to another number of elements.
///
/// Nothing changes when it throws. rewrites: nodes with another type. O(nodes * rank).
/// @throws PassError kTypeMismatch naming the node, the types and what was wanted; also for a call
///   without a rule, unless unknown_as_dyn, and for a broken "TensorType[...]" text.
PassResult type_check(GraphModule& module, const TypeCheckOptions& options = {});

struct SymbolicTypes {
  std::int64_t num_symbols = 0;  ///< s0, s1, ...: unknown numbers that are left
  bool changed = false;
};

/// type_check, and then a symbol for each dimension that is not known: the same one for those that
/// are equal in every run, by the rules; sizes behind convolutions and pooling as expressions of
/// the sizes before them: "TensorType[s0, 64, (s1 - 1)//2 + 1, 7]". torch.fx: Refine with
/// infer_symbolic_types. Repeats until nothing new follows; each round is O(nodes * rank).
/// @throws PassError kTypeMismatch as type_check, and for equalities of different numbers.
SymbolicTypes infer_symbolic_types(GraphModule& module, const TypeCheckOptions& options = {});

}  // namespace fx
