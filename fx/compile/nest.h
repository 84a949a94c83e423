#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fx/compile/loop_ops.h"
#include "fx/compile/shapes.h"
#include "fx/compile/tensor_expr.h"

/// Loop nests: what one kernel does, in loops over scalars. The last stage before machine code, and
/// the first one where the order of execution is decided.
///
/// A nest runs over *rows*: one for each index of its kept axes. A row is one *loop* after the
/// other over all reduced axes together; each loop computes elements, reduces them, stores them.
/// Between loops stand the *row values*, which are the same for all elements of the row. A softmax
/// is one nest of three loops: maximum; exponentials and their sum; quotients. Without reduced axes
/// there is one loop of one element, which is done for many rows at once.
namespace fx::loops {

using ValueId = std::int32_t;

/// A scalar in the loops, in single static assignment form.
struct NestValue {
  Op op;
  c10::ScalarType type;
  /// Of a load: the guard, a bool, where it is false nothing is read and the value has no meaning
  /// (-1: always read), then the indices in the operand's gathered dimensions.
  std::array<ValueId, 3> args = {-1, -1, -1};
  /// Of a load or an index: the operand; of a scalar: which one; of an extent: index in
  /// Nest::extents; of a reduced value: the reduction; of a scan: which one.
  int index = 0;
  c10::Scalar number = 0;  ///< of a constant

  bool element = false;  ///< varies along the reduced axes; always false without such
  int stage = 0;  ///< the loop that can compute it first, or that it stands before (row value)
};

/// A tensor that is read or written; or an index, a number that moves along the axes as the address
/// of a tensor does, by its steps.
struct NestOperand {
  /// `step` elements of dimension `dim` of the tensor; of an index just `step`.
  struct Step {
    int dim;
    Dim step;
    friend bool operator==(const Step&, const Step&) = default;
  };
  c10::ScalarType type;
  int input = -1;   ///< index among the inputs, or ...
  int output = -1;  ///< ... among the outputs; neither: an index
  /// By axis of the nest: several for a diagonal, none where the tensor broadcasts.
  std::vector<std::vector<Step>> steps_of_axis = {};
  std::vector<Step> offset = {};    ///< where the axes have index 0
  std::vector<Step> gathered = {};  ///< for the index that each load brings

  bool is_index() const noexcept { return input < 0 && output < 0; }
};

struct NestReduction {
  Reduce reduce;
  ValueId input;
  c10::ScalarType type;
  int stage = 0;  ///< of its loop
};

/// A reduction of which each element of the row gets what there is so far. The value before the
/// first element is that of nothing; it is carried from one element to the next.
struct NestScan {
  Reduce reduce;
  bool in_order;  ///< see Expr
  friend bool operator==(const NestScan&, const NestScan&) = default;
};

struct NestStore {
  int operand;
  ValueId value;
  std::vector<ValueId> gathered = {};  ///< the indices in the operand's gathered dimensions
  bool element = false;
  int stage = 0;  ///< element: the loop; else: before that loop, or after the last
};

/// What a loop, or the code between loops, does, in order.
struct NestStep {
  enum class Kind : std::uint8_t {
    kCompute,  ///< value `index`
    kKeep,     ///< writes element value `index` to the scratch row of number `slot`
    kReload,   ///< reads it
    kReduce,   ///< reduction `index`
    kStore,    ///< store `index`
  };
  Kind kind;
  int index;
  int slot = -1;
};

struct Nest {
  std::string name;
  std::vector<Dim> axes;     ///< sizes: kept axes first, then reduced ones
  std::size_t num_kept = 0;  ///< of the axes
  std::vector<NestOperand> operands;
  std::vector<NestValue> values;
  std::vector<NestReduction> reductions;
  std::vector<NestScan> scans;
  std::vector<NestStore> stores;
  std::vector<Dims> extents;  ///< products of sizes that values refer to

  /// Stores are to computed places, which differ along the kept axes; rows go in order along the
  /// reduced ones, and read what they stored. The operands of outputs are read too.
  bool scatters = false;

  // The schedule. With n loops, rows[s] stands before loop s, and rows[n] after the last.
  std::vector<std::vector<NestStep>> loops;
  std::vector<std::vector<NestStep>> rows;
  std::vector<c10::ScalarType> scratch;  ///< type of each scratch row

  /// Whether loops run along reduced axes, since something depends on their order or on all of
  /// them.
  bool has_rows() const noexcept { return !reductions.empty() || !scans.empty() || scatters; }
  /// The nest as text, one line a step; stable, for tests and people.
  std::string str(const Shapes& shapes) const;
};

/// The nest that computes `outputs`. Its axes are the dimensions, other than 1, of the tensors that
/// are reduced, or without reductions of the largest output; where reshapes take them apart, their
/// factors. May assume more about sizes in the program's shapes.
/// @throws Unsupported when the outputs do not fit one nest.
Nest build_nest(TensorProgram& program, std::span<const Tensor> outputs, std::string name = "nest");

/// The nest that stores the values of `output`, a scatter, into what is there already: its args[0].
/// Its axes are the dimensions of the values, kept those along which the places differ.
/// @throws Unsupported when something in it needs loops of its own.
Nest build_scatter_nest(TensorProgram& program, const Tensor& output, std::string name);

}  // namespace fx::loops
