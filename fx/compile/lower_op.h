#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fx/compile/tensor_expr.h"
#include "fx/ops/op_info.h"
#include "fx/ops/value.h"

/// What ATen operators compute, as tensor expressions.
namespace fx::loops {

/// An argument of an operator call, in the order of the schema, defaults filled in.
struct LowerArg {
  /// A tensor whose values the program computes or reads, or a number that it computes; its type
  /// and dims are those of the tensor. Else nothing.
  std::optional<Tensor> tensor = {};
  /// The tensor is a number that the user wrote or computed (a "wrapped number"): it does not raise
  /// the dtype of tensors within its category.
  bool is_number = false;
  /// Anything else: a constant. None for a tensor argument that is left out.
  Value constant = {};
  /// A list that holds tensors.
  std::vector<LowerArg> items = {};
};

/// Whether lower_operator knows the operator in some form.
bool has_lowering(const Overload& overload);

/// The results of one call, each with eager's dtype and sizes.
/// @throws Unsupported saying why this call has none.
std::vector<Tensor> lower_operator(TensorProgram& program, const Overload& overload,
                                   std::span<const LowerArg> args);

}  // namespace fx::loops
