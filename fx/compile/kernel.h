#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "fx/compile/jit.h"
#include "fx/compile/nest.h"
#include "fx/compile/tensor_expr.h"

namespace fx::loops {

/// The order of a tensor's dimensions in memory, outermost first. Sizes of 1 stand where they
/// stand.
using DimOrder = std::vector<std::uint8_t>;
/// From sizes and strides; dimensions with equal strides keep their order, and so do those of size
/// 1 or stride 0, which say nothing.
DimOrder dim_order(c10::IntArrayRef sizes, c10::IntArrayRef strides);

/// A nest with what it takes to run it on tensors of any size that the assumptions of its Shapes
/// allow: machine code, made when a combination of strides first needs it, and the loops around it.
/// Immutable but for that code: any number of threads call it at once.
class Kernel {
 public:
  /// @param orders of the outputs, as eager lays them out.
  /// @throws Unsupported when the outputs do not fit one nest.
  Kernel(std::string name, TensorProgram program, std::vector<Tensor> outputs,
         std::vector<DimOrder> orders);

  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// Computes the outputs. False when these inputs do not fit: other dtypes, sizes that break an
  /// assumption, strides for which there is no code, or an operation that has no result (a division
  /// by zero); nothing has happened then. Inputs must be dense CPU tensors without conjugation.
  /// @param scalars by scalar of the program: an int64, or the bits of a double.
  bool run(std::span<const at::Tensor> inputs, c10::SmallVectorImpl<at::Tensor>& outputs,
           std::span<const std::int64_t> scalars = {}) const;

  /// Makes the machine code for inputs of these sizes and strides; they may be on the meta device.
  /// Whether there is some then.
  bool prepare(std::span<const at::Tensor> inputs) const;

  const Nest& nest() const noexcept { return nest_; }
  /// Of a scatter: what runs behind it and stores into its result; else null.
  const Kernel* second() const noexcept { return second_.get(); }
  const TensorProgram& program() const noexcept { return program_; }
  /// How many pieces of machine code there are.
  std::size_t num_codes() const;
  /// LLVM or assembly of the pieces made so far.
  std::string code_text(CodeStage stage) const;
  /// The same for another processor, see kernel_text.
  std::string code_text(CodeStage stage, const std::string& triple) const;

 private:
  struct Code;
  class Call;
  struct Scatters {};

  Kernel(std::string name, TensorProgram program, std::vector<Tensor> outputs,
         std::vector<DimOrder> orders, Scatters);
  static Nest first_nest(TensorProgram& program, const std::vector<Tensor>& outputs,
                         const std::string& name);
  void look_up();

  const KernelCode* code_for(const KernelShape& shape) const;
  bool bind_sizes(std::span<const at::Tensor> inputs, std::span<std::int64_t> size_of) const;

  std::string name_;
  TensorProgram program_;
  std::vector<Tensor> outputs_;
  std::vector<DimOrder> orders_;
  Nest nest_;
  std::unique_ptr<const Kernel> second_;

  // What a call checks and looks up, prepared.
  std::vector<c10::ScalarType> input_types_;
  std::vector<Dims> input_dims_;  // roots
  std::vector<std::pair<Dim, std::int64_t>> constants_;
  struct Derived {
    Dim root;  // of the symbol itself
    Shapes::Math math;
    Dim left;
    Dim right;
    bool is_size;
  };
  std::vector<Derived> derived_;
  std::vector<Dim> axis_roots_;
  std::vector<std::vector<Dim>> output_roots_;
  std::vector<Dims> extent_roots_;
  std::vector<std::vector<std::size_t>> index_sources_;  // by operand: see index_sources()
  std::vector<std::uint8_t> axis_order_;  // kept axes, outermost first, then reduced ones
  std::size_t work_ = 1;                  // rough cost of an element

  mutable std::mutex mutex_;
  mutable std::atomic<const Code*> codes_{nullptr};  // a list that only grows
};

}  // namespace fx::loops
