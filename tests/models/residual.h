#pragma once

#include <torch/torch.h>

namespace fx::zoo {

/// He et al. 2015: two convolutions and the way around them.
struct ResidualImpl : torch::nn::Module {
  ResidualImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", conv(in, out, 3, stride))),
        bn1(register_module("bn1", torch::nn::BatchNorm2d(out))),
        conv2(register_module("conv2", conv(out, out, 3, 1))),
        bn2(register_module("bn2", torch::nn::BatchNorm2d(out))) {
    if (stride != 1 || in != out)
      down = register_module(
          "down", torch::nn::Sequential(conv(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
  }
  static torch::nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                std::int64_t stride) {
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
  }
  at::Tensor forward(at::Tensor x) {
    at::Tensor y = bn1(conv1(x)).relu_();
    y = bn2(conv2(y));
    y += down.is_empty() ? x : down->forward(x);
    return y.relu_();
  }
  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Sequential down{nullptr};
};
TORCH_MODULE(Residual);

}  // namespace fx::zoo
