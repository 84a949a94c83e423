#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fx/compile/compile.h"
#include "fx/passes/joint.h"
#include "fx/passes/min_cut_partition.h"

/// Training through graphs: captured forward and backward as one differentiable call.
namespace fx {

/// The graphs of a partition as one function that LibTorch's autograd differentiates by the
/// backward graph: its result requires grad, `backward()` reaches inputs and parameters, and
/// LibTorch's optimisers do the rest. Copies share all. Any number of threads call one object.
///
/// What holds for eager holds here: values that are kept for the backward and written to in between
/// are an error, `retain_graph` allows a second backward, buffers are written once a call. Under
/// NoGradGuard nothing is kept. Gradients of gradients are refused.
class TrainingFunction {
 public:
  /// @param compile how both graphs are compiled; nothing: they run as GraphModules.
  /// @throws CompileError as fx::compile, and kCompileOption for `freeze`.
  explicit TrainingFunction(TrainingGraphs graphs,
                            const std::optional<CompileOptions>& compile = CompileOptions());

  /// Takes what the program took. Inputs of other strides than the captured ones are copied, but
  /// refused where the graph writes to them or returns their memory.
  /// @throws RunError kMissingInput, kExtraInput, kWrongType, kShapeMismatch for inputs that are
  ///   not as captured; kAssertionFailed for inputs and parameters that require grad now and did
  ///   not at the capture.
  Value forward(Values inputs) const;
  template <typename... Inputs>
    requires(!(std::is_same_v<std::decay_t<Inputs>, Values> || ...))
  Value operator()(Inputs&&... inputs) const {
    return forward(Values{Value(std::forward<Inputs>(inputs))...});
  }

  const TrainingGraphs& graphs() const noexcept;

 private:
  struct State;
  class Step;
  std::shared_ptr<const State> state_;
};

struct AotOptions {
  JointOptions joint = {};
  /// Which values are kept for the backward.
  std::function<TrainingGraphs(const GraphModule& joint)> partition = [](const GraphModule& joint) {
    return min_cut_rematerialization_partition(joint);
  };
  /// How the graphs are compiled; nothing: they run as GraphModules.
  std::optional<CompileOptions> compile = CompileOptions();
};

/// A program that trains through graphs (torch's functorch aot_function, aot_module). Copies share
/// all; any number of threads call one object, one captures at a time.
class AotFunction {
 public:
  /// Calls the program's graphs; captures it first when inputs come with dtypes, sizes, strides or
  /// requires_grad that it was not captured for yet, or its modules or autocast are in another
  /// mode.
  /// @throws TraceError as joint(); as TrainingFunction.
  Value forward(Values inputs) const;
  template <typename... Inputs>
    requires(!(std::is_same_v<std::decay_t<Inputs>, Values> || ...))
  Value operator()(Inputs&&... inputs) const {
    return forward(Values{Value(std::forward<Inputs>(inputs))...});
  }

  /// The function for such inputs; captures as forward() does, and runs nothing.
  TrainingFunction function_for(const std::vector<at::Tensor>& inputs) const;
  std::size_t num_captures() const;

 private:
  struct State;
  using Capture = std::function<std::shared_ptr<GraphModule>(std::vector<at::Tensor> inputs,
                                                             const JointOptions& options)>;
  AotFunction(Capture capture, const torch::nn::Module& root, AotOptions options);
  template <typename Program>
  friend AotFunction aot_function(Program program, AotOptions options);
  std::shared_ptr<State> state_;
};

/// Makes a program train through graphs: a torch::nn module (pointer or holder), or a function,
/// with the module that it trains in `options.joint.module`. Captures at the first call, without a
/// trace in the module's state.
template <typename Program>
AotFunction aot_function(Program program, AotOptions options) {
  auto shared = std::make_shared<Program>(std::move(program));
  const torch::nn::Module* root = options.joint.module;
  if (!root)
    root = detail::with_program(
        *shared, [](const torch::nn::Module& module, const auto&) { return &module; });
  return AotFunction(
      [shared](std::vector<at::Tensor> inputs, const JointOptions& joint_options) {
        return joint(*shared, std::move(inputs), joint_options);
      },
      *root, std::move(options));
}

template <typename Program>
AotFunction aot_function(Program program) {
  return aot_function(std::move(program), AotOptions());
}

}  // namespace fx
