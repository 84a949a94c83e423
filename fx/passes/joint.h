#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fx/capture/make_fx.h"
#include "fx/graph/graph_module.h"
#include "fx/passes/decompose.h"

namespace fx {

/// What the inputs and outputs of a joint graph are; in its `meta()["joint"]`. The graph takes
/// (inputs..., tangents...) and gives (result, (gradients...)).
struct JointSignature {
  std::vector<std::string> inputs;    ///< placeholders of the program's inputs
  std::vector<std::string> tangents;  ///< placeholders of what comes from behind
  /// For each tangent the tensor of the result that it belongs to: its number among all tensors of
  /// the result, nested ones in order.
  std::vector<std::size_t> tangent_of;
  /// For each gradient what it is of: the placeholder of an input or the path of a parameter.
  std::vector<std::string> gradients;
  std::size_t num_input_gradients = 0;  ///< those of inputs come first
};

/// The signature of a graph that joint() made. @throws PassError kBadPartition for any other.
const JointSignature& joint_signature(const GraphModule& module);

struct JointOptions {
  std::vector<std::string> input_names = {};  ///< as MakeFxOptions
  std::string class_name = {};
  /// For a program that is a function: the module whose parameters it trains. Their gradients are
  /// outputs, and attributes keep their names. Null: the program itself, if it is a module.
  const torch::nn::Module* module = nullptr;
  /// Operators to take apart (see decompose.h); those of autograd's formulas too.
  DecompositionTable decompositions = {};
};

/// joint() for a program that is given as record_program takes it.
std::shared_ptr<GraphModule> record_joint(
    const torch::nn::Module& root, std::vector<at::Tensor> inputs, const JointOptions& options,
    const std::function<TraceArg(std::vector<at::Tensor>&)>& run);

/// One graph of a program and its gradients (the joint graph of torch's AOTAutograd): runs the
/// program once on the example inputs and LibTorch's own autograd behind it, and records below
/// autograd what both run. `program` as for make_fx.
///
/// The graph is functional but for copies at the end into inputs and buffers that the program
/// writes to (functionalize); common subexpressions are merged, nodes have "tensor_meta". It has
/// a tangent for each floating tensor of the result that depends on what requires grad, and gives
/// the gradient of each input that requires grad (as the example does) and of each parameter that
/// does; None where the result does not depend on it. It is to be run without gradients. Sizes,
/// strides and the training mode are those of the example.
///
/// Buffers and written inputs change by one call of the program, as in make_fx.
/// @throws TraceError kBadResult when nothing in the result requires grad; kBadArgument for tensors
///   that require grad and are neither inputs nor parameters, for inputs and buffers that come to
///   require grad, and for a backward that writes to them; kConcreteValue where sizes depend on
///   values (nonzero, masks as indices). As make_fx and functionalize.
template <typename Program>
std::shared_ptr<GraphModule> joint(Program&& program, std::vector<at::Tensor> inputs,
                                   const JointOptions& options = {}) {
  return detail::with_program(program, [&](const torch::nn::Module& root, const auto& run) {
    return record_joint(options.module ? *options.module : root, std::move(inputs), options, run);
  });
}

}  // namespace fx
