#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fx/compile/loop_ops.h"
#include "fx/compile/shapes.h"

/// Tensor expressions: what the nodes of a fusion group compute, as pure functions from indices to
/// numbers. Between the graph (operators) and the loop nest (scalars in loops).
namespace fx::loops {

using ExprId = std::int32_t;

/// A number that depends on indices: offset + the sum of index[term.axis] * term.step. The axes of
/// the terms ascend.
struct Affine {
  struct Term {
    int axis;
    Dim step;
    friend bool operator==(const Term&, const Term&) = default;
    friend auto operator<=>(const Term&, const Term&) = default;
  };
  Dim offset = kZero;
  std::vector<Term> terms = {};

  static Affine of_axis(int axis) { return {.terms = {{axis, kOne}}}; }
  bool is_zero() const { return offset == kZero && terms.empty(); }
  friend bool operator==(const Affine&, const Affine&) = default;
  friend auto operator<=>(const Affine&, const Affine&) = default;
};

/// `outer` where its axes have the values `inner`.
Affine substitute(Shapes& shapes, const Affine& outer, const std::vector<Affine>& inner);

/// Which ends of a dimension an index may lie beyond.
enum Guard : std::uint8_t { kNoGuard = 0, kGuardLow = 1, kGuardHigh = 2, kGuardBoth = 3 };

/// One tensor-valued expression. Immutable; equal expressions of one program are one.
struct Expr {
  enum class Kind : std::uint8_t {
    kInput,      ///< `index`-th tensor that the program reads
    kConstant,   ///< `number`, without dimensions
    kScalar,     ///< `index`-th number that each call passes, without dimensions
    kExtent,     ///< the product of the sizes `factors`, int64, without dimensions
    kPointwise,  ///< `op` of args, which broadcast to `dims`
    kReduce,     ///< `reduce` of args[0] over the dimensions with reduced[d]
    kScan,       ///< `reduce` of args[0] up to and with each index of the dimension with reduced[d]
    kView,       ///< args[0] at the indices `at`
    kReshape,    ///< args[0], its elements in the same order under other dims: see `parts`
    kPad,        ///< args[0] at the indices `at` where all guarded ones lie in it, else args[1]
    kGather,     ///< args[0] at the indices `at`, to those of its dimensions gathered[i] added the
                 ///< numbers args[1 + i]: int64 in range, broadcast to `dims`
    kIndex,      ///< the index in a dimension: int64, of dims {n}
    kScatter,    ///< args[0], but at the indices `at`, of the indices of args[1], to those of its
               ///< dimensions gathered[i] added the numbers args[2 + i], stands args[1]; or, if it
               ///< `accumulates`, `reduce` of what stands there and args[1], which is of the type
               ///< that is computed in. For one index of args[1] after the other.
  };
  Kind kind;
  c10::ScalarType type;
  Dims dims = {};
  Op op = Op::kConstant;
  Reduce reduce = Reduce::kSum;
  std::vector<ExprId> args = {};
  std::vector<bool> reduced = {};
  bool accumulates = false;     ///< of a scatter
  bool in_order = false;        ///< of a scan: one element after the other, whatever that costs
  std::vector<Affine> at = {};  ///< by dimension of args[0], from the indices of the result
  std::vector<std::uint8_t> guards = {};  ///< by dimension of args[0]
  std::vector<int> gathered = {};
  std::vector<int> parts = {};  ///< m dimensions of args[0] are n dimensions of this: m, n, ...
  Dims factors = {};
  int index = 0;
  c10::Scalar number = 0;
};

/// An expression with what its users ask most.
struct Tensor {
  ExprId id = -1;
  c10::ScalarType type = c10::ScalarType::Undefined;
  Dims dims = {};

  std::int64_t dim() const noexcept { return static_cast<std::int64_t>(dims.size()); }
};

/// Expressions over common inputs, and a builder of them. Rules of use:
/// - dtypes are explicit: arguments of an operation must have one type (see loop_ops.def), there is
/// no
///   promotion; half and bfloat16 are cast to float first and the result back.
/// - sizes are symbols; operations broadcast as in PyTorch.
/// Functions throw Unsupported for what cannot be expressed; nothing is lost then but this program.
class TensorProgram {
 public:
  /// @param sizes of the example.
  Tensor input(c10::ScalarType type, std::span<const std::int64_t> sizes);
  /// A number that each call passes, of type Long, Double or Bool.
  Tensor scalar(c10::ScalarType type);

  Tensor constant(c10::ScalarType type, const c10::Scalar& number);
  /// The product of some dimensions of `tensor`, int64.
  Tensor extent(const Tensor& tensor, std::span<const std::int64_t> dims);

  /// A pointwise operation; of a cast use cast().
  Tensor apply(Op op, std::initializer_list<Tensor> args) {
    return apply(op, std::span<const Tensor>(args.begin(), args.size()));
  }
  Tensor apply(Op op, std::span<const Tensor> args);
  /// `tensor` itself if it has that type.
  Tensor cast(const Tensor& tensor, c10::ScalarType type);

  /// Over the dimensions `dims` (0 <= d < dim, each once; none: nothing happens). A sum or product
  /// of integers needs a cast to int64 before, any and all need bool.
  Tensor reduce(Reduce reduce, const Tensor& tensor, std::span<const std::int64_t> dims,
                bool keepdim);

  /// What `reduce` (not any, all) gives up to each index of dimension `dim`, whose size is not 1.
  /// Of equal extrema the last. `in_order`: rounds, and overflows, as a loop over the elements
  /// does.
  Tensor scan(Reduce reduce, const Tensor& tensor, std::int64_t dim, bool in_order);

  /// The tensor read at other indices, which must lie in it: in its dimension d at `at[d]`, of the
  /// indices of the result, whose sizes are `dims`.
  Tensor view(const Tensor& tensor, Dims dims, std::vector<Affine> at);
  /// Its dimension d is dimension map[d] of the result, or at index 0 where map[d] is -1 (a size-1
  /// dimension that goes away).
  Tensor view(const Tensor& tensor, Dims dims, const std::vector<int>& map);
  /// The same elements in the same order; the product of the sizes must be the same. Some size is
  /// not 0. @throws Unsupported unless the products of neighbouring dimensions fit.
  Tensor reshape(const Tensor& tensor, const Dims& dims);
  /// As view, but where an index of a guarded dimension is out of range the value is `otherwise`.
  Tensor pad(const Tensor& tensor, Dims dims, std::vector<Affine> at,
             std::vector<std::uint8_t> guards, const Tensor& otherwise);
  /// As view, with `indices[i]`, int64, added to the index in dimension dims_gathered[i], where
  /// `at` is usually 0. What comes out must be in range: see Op::kBounded.
  Tensor gather(const Tensor& tensor, Dims dims, std::vector<Affine> at,
                std::vector<int> dims_gathered, std::span<const Tensor> indices);
  /// `into` with `values` at other indices: see Expr::Kind::kScatter. The numbers in `indices` are
  /// int64, broadcast to the sizes of `values`, and must be in range: see Op::kBounded.
  Tensor scatter(const Tensor& into, const Tensor& values, std::vector<Affine> at,
                 std::vector<int> dims_gathered, std::span<const Tensor> indices,
                 std::optional<Reduce> reduce);
  /// 0, 1, ... of type int64.
  Tensor index(Dim size);
  Tensor permute(const Tensor& tensor, std::span<const std::int64_t> dims);
  /// 0 <= dim <= tensor.dim().
  Tensor unsqueeze(const Tensor& tensor, std::int64_t dim);
  /// A dimension of size 1.
  Tensor squeeze(const Tensor& tensor, std::int64_t dim);
  /// Broadcasts to `dims`, which has at least as many dimensions.
  Tensor expand(const Tensor& tensor, const Dims& dims);

  Shapes& shapes() noexcept { return shapes_; }
  const Shapes& shapes() const noexcept { return shapes_; }
  const Expr& operator[](ExprId id) const { return exprs_[static_cast<std::size_t>(id)]; }
  const Expr& operator[](const Tensor& tensor) const { return (*this)[tensor.id]; }
  std::size_t size() const noexcept { return exprs_.size(); }
  int num_inputs() const noexcept { return num_inputs_; }
  int num_scalars() const noexcept { return num_scalars_; }

  /// One line an expression: "%3: f32[s1, s2] = add %1, %2".
  std::string str() const;

 private:
  Tensor add(Expr expr);

  Shapes shapes_;
  std::vector<Expr> exprs_;
  std::unordered_multimap<std::size_t, ExprId> table_;  // by hash
  int num_inputs_ = 0;
  int num_scalars_ = 0;
};

/// Whether two numbers are the same bits: 0.0 is not -0.0, 1 is not 1.0.
bool same_number(const c10::Scalar& a, const c10::Scalar& b);

}  // namespace fx::loops
