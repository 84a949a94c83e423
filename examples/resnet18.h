#pragma once

#include "fx/capture/nn.h"

/// ResNet-18 (He et al. 2015) as C++ users write it with torch::nn; fx::nn holders in place of
/// torch::nn's, so that symbolic tracing sees the modules. Input: f32[N, 3, H, W].
namespace resnet {

namespace nn = fx::nn;

inline nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel,
                       std::int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", conv(in, out, 3, stride))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        relu(register_module("relu", nn::ReLU(nn::ReLUOptions(true)))),
        conv2(register_module("conv2", conv(out, out, 3, 1))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {
    if (stride != 1 || in != out)
      downsample = register_module("downsample",
                                   nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
  }

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor identity = downsample.is_empty() ? x : downsample(x);
    torch::Tensor out = relu(bn1(conv1(x)));
    out = bn2(conv2(out));
    out += identity;
    return relu(out);
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::ReLU relu;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample{nullptr};
};
FX_MODULE(BasicBlock);

struct ResNet18Impl : torch::nn::Module {
  explicit ResNet18Impl(std::int64_t classes = 1000)
      : conv1(register_module("conv1", conv(3, 64, 7, 2))),
        bn1(register_module("bn1", nn::BatchNorm2d(64))),
        relu(register_module("relu", nn::ReLU(nn::ReLUOptions(true)))),
        maxpool(register_module("maxpool",
                                nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)))),
        layer1(register_module("layer1", layer(64, 64, 1))),
        layer2(register_module("layer2", layer(64, 128, 2))),
        layer3(register_module("layer3", layer(128, 256, 2))),
        layer4(register_module("layer4", layer(256, 512, 2))),
        avgpool(register_module("avgpool", nn::AdaptiveAvgPool2d(1))),
        fc(register_module("fc", nn::Linear(512, classes))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = maxpool(relu(bn1(conv1(x))));
    x = layer4(layer3(layer2(layer1(x))));
    return fc(torch::flatten(avgpool(x), 1));
  }

  static nn::Sequential layer(std::int64_t in, std::int64_t out, std::int64_t stride) {
    return nn::Sequential(BasicBlock(in, out, stride), BasicBlock(out, out, 1));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::ReLU relu;
  nn::MaxPool2d maxpool;
  nn::Sequential layer1, layer2, layer3, layer4;
  nn::AdaptiveAvgPool2d avgpool;
  nn::Linear fc;
};
FX_MODULE(ResNet18);

}  // namespace resnet
