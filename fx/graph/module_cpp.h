#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <optional>
#include <string>

namespace fx::cpp {

/// Source of the tensor at a path below the module that the code is for.
using TensorSource = std::function<std::string(const std::string& path)>;

/// What a module of torch::nn computes from the tensor `input`, as one expression on LibTorch
/// alone, with the module's options and training flag as they are now. Nothing for a class or an
/// option without such an expression.
std::optional<std::string> module_expression(const torch::nn::Module& module,
                                             const std::string& path, const std::string& input,
                                             const TensorSource& tensor);

}  // namespace fx::cpp
