#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <string_view>
#include <vector>

#include "fx/ops/function.h"
#include "fx/ops/kernel_checks.h"

namespace fx {

/// How one value is converted to what a schema argument wants; precomputed from its type.
enum class Conversion : std::uint8_t {
  kTensor,
  kOptionalTensor,
  kInt,
  kFloat,
  kBool,
  kScalar,
  kString,
  kDevice,
  kIntList,
  kFloatList,
  kBoolList,
  kTensorList,
  kOptionalTensorList,
  kScalarList,
  kStringList,
  kAny,
};

/// One argument of an overload.
struct ArgRule {
  std::string name;
  Conversion conversion;
  bool optional;    ///< accepts none
  bool broadcasts;  ///< a single int or float stands for a list ("int[2] stride")
  bool keyword_only;
  bool has_default;
  bool written;  ///< alias annotation with a write
  c10::IValue default_value;
};

/// One overload of a dispatcher operator with its argument rules.
struct Overload {
  c10::OperatorHandle handle;
  std::vector<ArgRule> rules;
  std::size_t num_positional;  ///< rules before the first keyword-only one
  bool mutates;                ///< some argument is written
  bool writes_out;             ///< has `out` arguments
  bool random;                 ///< tagged nondeterministic_seeded
  const KernelCheck* check;    ///< of arguments that its kernel takes on trust; mostly null
};

/// What the dispatcher knows of a function: its candidate overloads, resolved once and immortal.
struct OpInfo {
  std::vector<Overload> overloads;
  /// Numbers stand for tensors before any other overload is tried: torch.add(x, 1) means
  /// add.Tensor, not add.Scalar, as Python's argument parser has it for basic arithmetic.
  bool numbers_as_tensors = false;

  /// The overloads that `function` can mean: one for "aten::add.Tensor"; for "aten::sum" the
  /// default overload, or all overloads if there is none; for "torch.add" all overloads of the
  /// operator, in the order of their registration. Empty for built-ins, wrapped functions and
  /// operators that are not registered (asked again next time). O(1) after the first call, thread
  /// safe.
  static const OpInfo& of(const Function& function);

  /// All overloads of the operator that stands for tensor method `name`.
  static const OpInfo& of_method(std::string_view name);
};

/// "aten::linalg_norm" for "torch.linalg.norm"; empty for other kinds than torch functions.
std::string operator_name_of_torch_function(const Function& function);

}  // namespace fx
