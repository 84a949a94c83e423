#pragma once

#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>

namespace fx::loops {

/// How an operand moves from one lane to the next.
enum class LaneStride : std::uint8_t {
  kZero,  ///< all lanes read the same element
  kUnit,  ///< adjacent elements
  kAny,   ///< `lane` bytes apart
};

/// How a nest becomes a kernel.
struct KernelShape {
  /// With reductions: lanes run along the reduced axis, else along a kept one.
  bool lanes_reduced = false;
  /// The row has a second reduced axis, around that of the lanes.
  bool outer_reduced = false;
  /// Rows of an input do not follow each other in memory, as those of a half: the processor does
  /// not see the next one coming.
  bool rows_apart = false;
  /// Much work for each of many elements: several vectors are done step by step beside each other.
  /// Either code serves any number of elements; which one a kernel has is decided when it is made.
  bool interleaved = false;
  /// By operand. One that does not move along the lanes' axis is kZero.
  c10::SmallVector<LaneStride, 16> lane_strides = {};

  /// Whether code made for this shape is right where `wanted` is: all but what is only faster.
  bool serves(const KernelShape& wanted) const {
    return lanes_reduced == wanted.lanes_reduced && outer_reduced == wanted.outer_reduced &&
           rows_apart == wanted.rows_apart && lane_strides == wanted.lane_strides;
  }
};

/// Dimensions of one operand that a load may index by values.
constexpr std::size_t kMaxGathered = 2;

/// Byte steps of an operand; of an index, its own steps.
struct OperandStrides {
  std::int64_t lane = 0;
  std::int64_t outer = 0;
  std::int64_t reduce = 0;
};

/// KernelArgs::phase of whole rows.
constexpr std::int64_t kAllPhases = -1;

/// What a kernel is called with. It does rows [0, n_outer). Which axis the lanes run along is fixed
/// when the kernel is made: without reductions the only other one; else the reduced axis, with
/// n_lane elements in it, or a kept axis: then the row has n_reduce elements for each lane. With
/// KernelShape::outer_reduced it has n_reduce times n_lane elements, of which n_reduce steps by
/// `reduce`.
struct KernelArgs {
  char* const* pointers;          ///< by operand: its first element; of an index: its first value
  const OperandStrides* strides;  ///< by operand
  const std::int64_t* gathered;   ///< by operand, kMaxGathered each: byte steps
  const std::int64_t* scalars;    ///< by scalar: an int64, or the bits of a double
  const std::int64_t* extents;    ///< by extent
  char* const* scratch;           ///< by scratch row: n_reduce * n_lane elements, or n_reduce times
                                  ///< KernelCode::columns() vectors
  std::int64_t n_lane;
  std::int64_t n_outer;
  std::int64_t n_reduce;
  std::int64_t all_lanes;  ///< of the whole axis, of which n_lane may be a part

  // Of rows in parts (has_phases): a call does one loop of one row, or a part of it. Numbers lie as
  // [reduction][column], eight bytes for each; the elements of a row follow each other in their own
  // size. Without columns there is one.
  std::int64_t phase = kAllPhases;  ///< which loop; their number: values and stores of the row
  const char* totals = nullptr;     ///< what the loops before it reduced to
  char* partials = nullptr;         ///< gets what this part of the loop reduces to
};

/// Returns 0, or kTrapped when an operation has no result: what was written then has no meaning.
using KernelFunction = std::int32_t (*)(const KernelArgs*);

constexpr std::int32_t kTrapped = 1;

}  // namespace fx::loops
