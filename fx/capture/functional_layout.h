#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <utility>
#include <vector>

namespace fx {

/// What lies below a functional tensor of LibTorch, up to date; other tensors as they are.
at::Tensor functional_content(const at::Tensor& tensor);

/// The order in memory of what an operator writes to. In-place operators and out= keep it; their
/// functional forms often do not (aten::addmm is contiguous), so that a later view fails, or random
/// numbers, which are drawn in the order of memory, go to other elements.
class WrittenLayouts {
 public:
  /// Before the call, whose arguments these are.
  WrittenLayouts(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args);
  /// After the call: gives what has other strides and the same sizes its strides back, by recorded
  /// operators.
  void keep() const;

 private:
  struct Layout {
    std::vector<std::int64_t> sizes, strides;
    bool is_dense;
  };
  std::vector<std::pair<at::Tensor, Layout>> written_;
};

/// Runs an operator that draws random numbers into existing memory, where its functional form in
/// LibTorch would draw them in another order, in the order that the operator itself would: from
/// a seed, the graph has eager's numbers. False where the functional form is right.
/// `args` are those on the stack; gives the results onto it.
/// @throws PassError kNotFunctional for out= arguments that are not contiguous, where no operator
///   draws in their order.
bool draw_in_memory_order(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace fx
