#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/compile/lower_math.h"
#include "fx/compile/lower_op.h"

/// What all lowerings share: arguments by name, eager's type promotion, where it rounds.
namespace fx::loops {

/// A tensor or a number in an argument.
struct Operand {
  std::optional<Tensor> tensor = {};  ///< else a constant:
  c10::Scalar number = 0;
  c10::ScalarType type = c10::ScalarType::Undefined;
  bool wrapped = false;  ///< a number: does not raise the dtype within its category

  std::int64_t dim() const noexcept { return tensor ? tensor->dim() : 0; }
};

/// Where a number that stands for a second operand is rounded to the dtype of the operation.
enum class Precision : std::uint8_t {
  kRounded,  ///< as any tensor
  kOpmath,   ///< not: it is used in the precision in which the operation computes
};

/// The type in which eager computes elementwise: float for half and bfloat16, else the type.
c10::ScalarType opmath(c10::ScalarType type);
/// What float functions give for integers: the default dtype.
c10::ScalarType float_type(c10::ScalarType type);
inline bool is_integral(c10::ScalarType type) { return c10::isIntegralType(type, false); }
inline bool is_bool(c10::ScalarType type) { return type == c10::ScalarType::Bool; }
inline bool is_floating(c10::ScalarType type) { return c10::isFloatingType(type); }

/// "aten::add.Tensor".
std::string name_of(const Overload& overload);

/// One call of an operator that is being lowered. Functions throw Unsupported when an argument is
/// not of the kind that they stand for.
class Call {
 public:
  Call(TensorProgram& program, const Overload& overload, std::span<const LowerArg> args);

  TensorProgram& program() const noexcept { return *program_; }
  const std::string& name() const noexcept { return name_; }

  /// Null when the schema has no such argument, or when it was left out (None).
  const LowerArg* find(std::string_view argument) const;
  bool has(std::string_view argument) const { return find(argument) != nullptr; }

  /// Whether the schema wants a number (Scalar) there.
  bool is_scalar(std::string_view argument) const;

  // Constants. The second form is for arguments that may be left out or that not all overloads
  // have.
  bool flag(std::string_view argument) const;
  bool flag(std::string_view argument, bool otherwise) const;
  std::int64_t integer(std::string_view argument) const;
  std::int64_t integer(std::string_view argument, std::int64_t otherwise) const;
  double real(std::string_view argument) const;
  double real(std::string_view argument, double otherwise) const;
  c10::Scalar scalar(std::string_view argument) const;
  std::string text(std::string_view argument) const;
  std::vector<std::int64_t> ints(std::string_view argument) const;
  std::optional<c10::ScalarType> dtype(std::string_view argument = "dtype") const;

  /// A tensor, or a number that stands for one.
  Operand operand(std::string_view argument) const;
  /// A tensor argument. A number is none.
  Num tensor(std::string_view argument) const;

  /// The dtype that eager computes in (at::result_type). @throws Unsupported for nothing but
  /// numbers unless those are meant, since kernels on two numbers do not promote as others do.
  c10::ScalarType result_type(std::initializer_list<Operand> operands,
                              bool numbers_only = false) const;

  /// The operand in opmath(type), its values as if cast to `type` before.
  Num read(const Operand& operand, c10::ScalarType type,
           Precision precision = Precision::kRounded) const;
  /// A tensor argument in opmath(its type or, of a float function, the default dtype).
  Num read_float(std::string_view argument) const;
  Num number(c10::ScalarType type, const c10::Scalar& value) const {
    return Num::number(*program_, type, value);
  }
  /// A number argument as eager converts it where it insists that the value fits into `type`; the
  /// result is of type opmath(type). @throws Unsupported when it does not fit, so that eager tells.
  Num checked_number(std::string_view argument, c10::ScalarType type) const;

  [[noreturn]] void unsupported(const std::string& reason) const;

 private:
  const LowerArg& get(std::string_view argument) const;
  const Value& constant(std::string_view argument) const;

  TensorProgram* program_;
  const Overload* overload_;
  std::span<const LowerArg> args_;
  std::string name_;
};

using Tensors = std::vector<Tensor>;

/// One result: `value` rounded to `type`.
inline Tensors result(const Num& value, c10::ScalarType type) {
  return {value.cast(type).tensor()};
}

/// `dim` counted from the front. Tensors without dimensions have one for this purpose.
/// @throws Unsupported when it is out of range.
std::int64_t wrap_dim(std::int64_t dim, std::int64_t rank);
/// All wrapped and sorted. @throws Unsupported for one that is out of range or there twice.
std::vector<std::int64_t> wrap_dims(std::vector<std::int64_t> dims, std::int64_t rank);
std::vector<std::int64_t> all_dims(std::int64_t rank);

}  // namespace fx::loops
