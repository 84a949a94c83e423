#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/ops/op_info.h"
#include "tests/compile/reference.h"

/// Compares the lowering of one operator call, evaluated by the reference, with eager.
namespace fx::loops {

using Stack = std::vector<c10::IValue>;

/// Whether an operator ("add") is computed bit for bit; the others to within a tolerance.
bool is_exact(std::string_view op);

/// "aten::add.Tensor".
const Overload& overload_of(std::string_view name);

enum class Numbers : std::uint8_t {
  kConstants,  ///< numbers are part of the program
  kPassed,     ///< numbers are passed by each call, where a tensor or number can stand
};

enum class Verdict : std::uint8_t {
  kEqual,
  kBothRefuse,  ///< eager reports an error, and the lowering leaves it to eager or trips
  kUnsupported,
  kWrong,
};

struct Check {
  Verdict verdict = Verdict::kWrong;
  std::string text;  ///< the reason of Unsupported, or what is wrong
};

/// Computes the outputs of a program; `evaluate` of reference.h is one.
using Engine = std::function<ReferenceResult(
    const TensorProgram& program, std::span<const Tensor> outputs,
    std::span<const at::Tensor> inputs, std::span<const c10::Scalar> scalars)>;

struct CheckOptions {
  Numbers numbers = Numbers::kConstants;
  bool exact = false;  ///< bit for bit; else within the tolerances of torch.testing.assert_close
  /// Results of eager that depend on where an element lies are all right: each element is also
  /// computed alone and among 67 of its kind.
  bool elementwise = false;
  /// Also runs the program, where it holds for all sizes, with larger tensors.
  bool resize = true;
  Engine engine = nullptr;  ///< default: the reference
};

/// @param args all arguments of the schema in order.
Check check_call(const Overload& overload, const Stack& args, const CheckOptions& options);

/// The first arguments, and the defaults of the others.
Stack with_defaults(const Overload& overload, Stack args);

/// "add" of "aten::add.Tensor".
std::string base_name(std::string_view name);

/// Empty, or how the lowering of an elementwise operator differs from eager.
std::string inequality(const std::string& name, const Stack& first_args);

/// The call as text, with the values of small tensors.
std::string call_text(const Overload& overload, const Stack& args);

/// Empty, or how the tensors differ: dtype, sizes, then the first element that does.
std::string difference(const at::Tensor& actual, const at::Tensor& expected, bool exact);

}  // namespace fx::loops
