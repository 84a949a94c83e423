#pragma once

#include <torch/nn/module.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fx/compile/kernel.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_kernel.h"
#include "fx/graph/tensor_meta.h"

namespace fx::loops {

/// A group of operators that runs as one kernel: the module that a fused call of a compiled graph
/// calls. It keeps the operators as a graph and falls back to them whenever a call is not what the
/// kernels were made for, so that it gives eager's results in any case.
///
/// For each combination of dtypes, ranks, sizes of 1 and memory orders of the inputs there is one
/// variant: made at the first such call, which runs the operators and looks how they lay out their
/// results. Any number of threads call it at once; no lock is taken once a variant is there.
class FusedKernel : public KernelModule {
 public:
  /// @param autotune each variant is timed against the operators at its first call, and the faster
  /// of
  ///   both runs from then on.
  FusedKernel(std::string name, std::shared_ptr<GraphModule> operators, bool autotune = false);
  ~FusedKernel() override;

  /// A tensor, or an int or float, for each placeholder of the operators' graph; what that graph
  /// returns.
  Value forward(Values inputs);
  /// False when these inputs run as operators, or have no machine code yet.
  bool call_into(std::span<const Value> inputs, std::span<const at::Tensor> results) override;

  const std::string& kernel_name() const noexcept { return name_; }
  GraphModule& operators() const noexcept { return *operators_; }
  /// Makes the variant for what the "tensor_meta" of the graph's nodes says of the example, and its
  /// machine code, if the nodes have such.
  /// @param equal one that is prepared and does the same (EqualGroups): its variant is taken over.
  void prepare(const FusedKernel* equal = nullptr);

  struct Statistics {
    std::uint64_t kernel_calls = 0;    ///< ran as machine code
    std::uint64_t operator_calls = 0;  ///< ran as operators
    std::size_t variants = 0;
    std::size_t codes = 0;
    std::string problem;  ///< why the last variant that has no kernel has none
  };
  Statistics statistics() const;
  /// The kernels that there are, newest first; they live as long as this.
  std::vector<const Kernel*> kernels() const;
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override;

 private:
  struct Variant;
  using Signature = c10::SmallVector<std::uint8_t, 64>;

  // What a call passes: tensors, and numbers with their types.
  struct Inputs {
    c10::SmallVector<at::Tensor, 8> tensors;
    c10::SmallVector<std::int64_t, 4> scalars;     // see Kernel::run
    c10::SmallVector<c10::ScalarType, 8> numbers;  // by value: of a number its type
  };
  bool collect(std::span<const Value> values, Inputs& inputs) const;
  static Signature signature_of(const Inputs& inputs);
  const Variant* find(const Signature& signature) const;
  const Variant* add_variant(const Signature& signature, const Inputs& inputs,
                             const std::vector<TensorMeta>& results);
  Value run_operators(Values inputs);
  void choose(const Variant& variant, const Values& values, const Inputs& inputs);

  std::string name_;
  std::shared_ptr<GraphModule> operators_;
  bool autotune_;
  bool returns_tuple_ = false;
  std::atomic<const Variant*> variants_{nullptr};  // a list that only grows
  std::mutex mutex_;
  std::atomic<std::uint64_t> kernel_calls_{0};
  std::atomic<std::uint64_t> operator_calls_{0};
};

}  // namespace fx::loops
