#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "fx/passes/joint.h"
#include "fx/passes/min_cut_partition.h"

namespace fx::test {

using Tensors = std::vector<at::Tensor>;

/// A program and the module whose parameters it trains.
struct Trained {
  std::shared_ptr<torch::nn::Module> module;
  std::function<Tensors(Tensors&)> run;
};

/// What one forward and backward leaves behind.
struct Step {
  Tensors outputs, inputs, buffers;
  Tensors gradients;  // undefined where there is none
};

/// The tangents of a step: random, of the outputs that require grad.
Tensors tangents_of(const Tensors& outputs, std::int64_t seed);

/// One step of LibTorch's own. Inputs are copied; buffers are put back afterwards.
Step eager_step(const Trained& program, const Tensors& inputs, std::int64_t seed);
/// The same through the joint graph: by the Interpreter, or as a GraphModule.
Step joint_step(const Trained& program, GraphModule& joint, const Tensors& inputs,
                std::int64_t seed, bool interpret);
/// The same through forward and backward.
Step split_step(const Trained& program, const TrainingGraphs& graphs, const Tensors& inputs,
                std::int64_t seed);

/// What differs by more than `tolerance` (relative to the value, or to 1/100), or, for 0, in any
/// bit; empty if nothing does.
std::string difference(const Step& expected, const Step& found, double tolerance = 0);

/// Captures; example inputs and buffers are put back.
std::shared_ptr<GraphModule> joint_of(const Trained& program, const Tensors& inputs);

/// Captures the program, cuts it both ways, and compares all with eager on fresh inputs, twice;
/// checks what holds for every partition. Empty, or what is wrong.
std::string check_training(const Trained& program, const std::function<Tensors()>& inputs,
                           double tolerance = 0);

}  // namespace fx::test
