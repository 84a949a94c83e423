#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fx/compile/tensor_expr.h"

/// Arithmetic on tensor expressions, so that formulas of operators read like formulas.
namespace fx::loops {

/// An expression of a program. Arguments of one operation have one type; a plain number takes the
/// type of the expression that it meets.
class Num {
 public:
  Num(TensorProgram& program, Tensor tensor) : program_(&program), tensor_(std::move(tensor)) {}

  TensorProgram& program() const noexcept { return *program_; }
  const Tensor& tensor() const noexcept { return tensor_; }
  c10::ScalarType type() const noexcept { return tensor_.type; }
  std::int64_t dim() const noexcept { return tensor_.dim(); }

  /// A number of the same type: the nearest one, integers modulo their range.
  Num number(const c10::Scalar& value) const { return number(*program_, type(), value); }
  static Num number(TensorProgram& program, c10::ScalarType type, const c10::Scalar& value);

  Num cast(c10::ScalarType type) const { return {*program_, program_->cast(tensor_, type)}; }
  /// To `type` and back to this type, which rounds.
  Num rounded(c10::ScalarType type) const { return cast(type).cast(this->type()); }

  Num apply(Op op) const { return {*program_, program_->apply(op, {tensor_})}; }
  Num apply(Op op, const Num& b) const {
    return {*program_, program_->apply(op, {tensor_, b.tensor_})};
  }
  Num apply(Op op, const Num& b, const Num& c) const {
    return {*program_, program_->apply(op, {tensor_, b.tensor_, c.tensor_})};
  }
  Num apply(Op op, const c10::Scalar& b) const { return apply(op, number(b)); }

  Num reduce(Reduce reduce, std::span<const std::int64_t> dims, bool keepdim) const {
    return {*program_, program_->reduce(reduce, tensor_, dims, keepdim)};
  }
  Num expand(const Dims& dims) const { return {*program_, program_->expand(tensor_, dims)}; }
  /// The product of the sizes `dims`, int64.
  Num extent(std::span<const std::int64_t> dims) const {
    return {*program_, program_->extent(tensor_, dims)};
  }

 private:
  TensorProgram* program_;
  Tensor tensor_;
};

#define FX_LOWER_OPERATOR(symbol, op)                                                       \
  inline Num operator symbol(const Num& a, const Num& b) { return a.apply(op, b); }         \
  inline Num operator symbol(const Num& a, const c10::Scalar& b) { return a.apply(op, b); } \
  inline Num operator symbol(const c10::Scalar& a, const Num& b) {                          \
    return b.number(a).apply(op, b);                                                        \
  }
FX_LOWER_OPERATOR(+, Op::kAdd)
FX_LOWER_OPERATOR(-, Op::kSub)
FX_LOWER_OPERATOR(*, Op::kMul)
FX_LOWER_OPERATOR(/, Op::kDiv)
FX_LOWER_OPERATOR(<, Op::kLt)
FX_LOWER_OPERATOR(<=, Op::kLe)
FX_LOWER_OPERATOR(>, Op::kGt)
FX_LOWER_OPERATOR(>=, Op::kGe)
FX_LOWER_OPERATOR(==, Op::kEq)
FX_LOWER_OPERATOR(!=, Op::kNe)
#undef FX_LOWER_OPERATOR

inline Num operator-(const Num& a) { return a.apply(Op::kNeg); }
/// Of bools; both sides are computed.
inline Num operator&(const Num& a, const Num& b) { return a.apply(Op::kBitAnd, b); }
inline Num operator|(const Num& a, const Num& b) { return a.apply(Op::kBitOr, b); }
inline Num operator^(const Num& a, const Num& b) { return a.apply(Op::kBitXor, b); }
inline Num operator~(const Num& a) { return a.apply(Op::kBitNot); }

inline Num abs(const Num& x) { return x.apply(Op::kAbs); }
inline Num exp(const Num& x) { return x.apply(Op::kExp); }
inline Num expm1(const Num& x) { return x.apply(Op::kExpm1); }
inline Num log(const Num& x) { return x.apply(Op::kLog); }
inline Num log1p(const Num& x) { return x.apply(Op::kLog1p); }
inline Num sqrt(const Num& x) { return x.apply(Op::kSqrt); }
inline Num tanh(const Num& x) { return x.apply(Op::kTanh); }
inline Num erf(const Num& x) { return x.apply(Op::kErf); }
inline Num floor(const Num& x) { return x.apply(Op::kFloor); }
inline Num trunc(const Num& x) { return x.apply(Op::kTrunc); }
inline Num is_nan(const Num& x) { return x.apply(Op::kIsNan); }
inline Num fma(const Num& a, const Num& b, const Num& c) { return a.apply(Op::kFma, b, c); }
inline Num maximum(const Num& a, const Num& b) { return a.apply(Op::kMaximum, b); }
inline Num minimum(const Num& a, const Num& b) { return a.apply(Op::kMinimum, b); }

inline Num select(const Num& condition, const Num& a, const Num& b) {
  return condition.apply(Op::kSelect, a, b);
}
inline Num select(const Num& condition, const Num& a, const c10::Scalar& b) {
  return select(condition, a, a.number(b));
}
inline Num select(const Num& condition, const c10::Scalar& a, const Num& b) {
  return select(condition, b.number(a), b);
}

/// x, but at least (at most) `bound`. A NaN stays, and x stays where both are zeros; a bound that
/// is NaN does nothing.
inline Num at_least(const Num& x, const Num& bound) { return select(x < bound, bound, x); }
inline Num at_most(const Num& x, const Num& bound) { return select(x > bound, bound, x); }

}  // namespace fx::loops
