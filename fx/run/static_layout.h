#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fx/plan/memory_plan.h"
#include "fx/plan/out_variant.h"
#include "fx/plan/plan.h"
#include "fx/run/tensor_spec.h"

namespace fx {

/// How one step runs in a replay.
struct StaticStep {
  enum class Kind : std::uint8_t {
    kOrdinary,  ///< as in any run
    kOut,       ///< an operator writes into tensors of the frame
    kKernel,    ///< a KernelModule does
    kConstant,  ///< a view of tensors of the frame: the same in every run, made with the frame
  };
  static constexpr std::uint32_t kUnchecked = ~std::uint32_t{0};

  Kind kind = Kind::kOrdinary;
  bool is_tuple = false;               ///< of kOut, kKernel: the value is a tuple of the tensors
  const OperatorCall* call = nullptr;  ///< of kOut
  OutVariant out;                      ///< of kOut
  std::uint32_t first = 0;             ///< of kOut, kKernel: the first tensor
  std::uint32_t count = 0;
  std::uint32_t transposed = 0;  ///< of kOut: the first transposed argument
  /// Of kOrdinary: index in StaticLayout::expected of what the value must be for the replay to go
  /// on; kUnchecked when no static step reads it.
  std::uint32_t expected = kUnchecked;
};

/// A tensor of a frame.
struct StaticTensor {
  TensorSpec spec;
  std::size_t offset = 0;   ///< in the arena
  std::uint32_t first = 0;  ///< the step that writes it
  std::uint32_t last = 0;   ///< the last step that may read it
};

/// How a plan runs with inputs of certain dtypes, sizes and strides, as a run with such inputs
/// showed: which results go into one arena, and where. Immutable.
struct StaticLayout {
  std::vector<std::optional<TensorSpec>> inputs;  ///< by placeholder; none for other values
  std::vector<StaticStep> steps;
  std::vector<StaticTensor> tensors;
  std::vector<TensorSpec> expected;
  MemoryPlan memory;
  std::uint32_t num_transposed = 0;  ///< arguments that out-variants take transposed
  std::size_t num_static = 0;        ///< steps that are not kOrdinary

  bool fits(const Values& flat_inputs) const;
  /// The plan with what is static in it: "s1 = out aten::neg(self=s0!) -> f32[4] at 64".
  std::string str(const Plan& plan) const;
};

}  // namespace fx
