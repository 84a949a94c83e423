#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "examples/resnet18.h"
#include "fx/capture/nn.h"

/// The nets of the capture benchmarks: those that the figures of Python's torch.fx were taken on,
/// written as C++ users write them, node for node the same.
namespace fx::bench {

namespace nn = fx::nn;

/// Bottleneck block of ResNet-50 (He et al. 2015).
struct BottleneckImpl : torch::nn::Module {
  BottleneckImpl(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1(register_module("conv1", resnet::conv(in, width, 1, 1))),
        bn1(register_module("bn1", nn::BatchNorm2d(width))),
        conv2(register_module("conv2", resnet::conv(width, width, 3, stride))),
        bn2(register_module("bn2", nn::BatchNorm2d(width))),
        conv3(register_module("conv3", resnet::conv(width, 4 * width, 1, 1))),
        bn3(register_module("bn3", nn::BatchNorm2d(4 * width))),
        relu(register_module("relu", nn::ReLU(nn::ReLUOptions(true)))) {
    if (stride != 1 || in != 4 * width)
      downsample = register_module(
          "downsample",
          nn::Sequential(resnet::conv(in, 4 * width, 1, stride), nn::BatchNorm2d(4 * width)));
  }

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor out = relu(bn1(conv1(x)));
    out = relu(bn2(conv2(out)));
    out = bn3(conv3(out));
    out += downsample.is_empty() ? x : downsample(x);
    return relu(out);
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  nn::ReLU relu;
  nn::Sequential downsample{nullptr};
};
FX_MODULE(Bottleneck);

/// ResNet-50. Input: f32[N, 3, H, W]; 177 nodes.
struct ResNet50Impl : torch::nn::Module {
  explicit ResNet50Impl(std::int64_t classes = 1000)
      : conv1(register_module("conv1", resnet::conv(3, 64, 7, 2))),
        bn1(register_module("bn1", nn::BatchNorm2d(64))),
        relu(register_module("relu", nn::ReLU(nn::ReLUOptions(true)))),
        maxpool(register_module("maxpool",
                                nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)))),
        layer1(register_module("layer1", layer(64, 64, 3, 1))),
        layer2(register_module("layer2", layer(256, 128, 4, 2))),
        layer3(register_module("layer3", layer(512, 256, 6, 2))),
        layer4(register_module("layer4", layer(1024, 512, 3, 2))),
        avgpool(register_module("avgpool", nn::AdaptiveAvgPool2d(1))),
        fc(register_module("fc", nn::Linear(2048, classes))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = maxpool(relu(bn1(conv1(x))));
    x = layer4(layer3(layer2(layer1(x))));
    return fc(torch::flatten(avgpool(x), 1));
  }

  static nn::Sequential layer(std::int64_t in, std::int64_t width, int blocks,
                              std::int64_t stride) {
    nn::Sequential made;
    made->push_back(Bottleneck(in, width, stride));
    for (int i = 1; i < blocks; ++i) made->push_back(Bottleneck(4 * width, width, 1));
    return made;
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::ReLU relu;
  nn::MaxPool2d maxpool;
  nn::Sequential layer1, layer2, layer3, layer4;
  nn::AdaptiveAvgPool2d avgpool;
  nn::Linear fc;
};
FX_MODULE(ResNet50);

/// A transformer block of plain operators, as a shape-free trace takes it: sizes are values of the
/// graph.
struct BlockImpl : torch::nn::Module {
  static constexpr std::int64_t kWidth = 768;
  static constexpr std::int64_t kHeads = 12;
  static constexpr std::int64_t kHidden = 3072;

  BlockImpl()
      : q(register_module("q", nn::Linear(kWidth, kWidth))),
        k(register_module("k", nn::Linear(kWidth, kWidth))),
        v(register_module("v", nn::Linear(kWidth, kWidth))),
        o(register_module("o", nn::Linear(kWidth, kWidth))),
        f1(register_module("f1", nn::Linear(kWidth, kHidden))),
        f2(register_module("f2", nn::Linear(kHidden, kWidth))),
        n1(register_module("n1", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        n2(register_module("n2", nn::LayerNorm(nn::LayerNormOptions({kWidth})))) {}

  static Proxy split(const Proxy& t) {
    return t.view(t.size(0), t.size(1), kHeads, kWidth / kHeads).transpose(1, 2);
  }

  Proxy forward(Proxy x) {
    const Proxy query = split(q(x)), key = split(k(x)), value = split(v(x));
    Proxy a = matmul(query, key.transpose(-2, -1)) / std::sqrt(double{kWidth / kHeads});
    a = matmul(softmax(a, -1), value).transpose(1, 2).reshape(x.size(0), x.size(1), kWidth);
    x = n1(x + o(a));
    return n2(x + f2(gelu(f1(x))));
  }

  nn::Linear q, k, v, o, f1, f2;
  nn::LayerNorm n1, n2;
};
FX_MODULE(Block);

/// Twelve plain blocks. Input: f32[N, T, 768]; 386 nodes.
struct EncoderImpl : torch::nn::Module {
  EncoderImpl() {
    for (int i = 0; i < 12; ++i) blocks.push_back(register_module(std::to_string(i), Block()));
  }

  Proxy forward(Proxy x) {
    for (Block& block : blocks) x = block(x);
    return x;
  }

  std::vector<Block> blocks;
};
FX_MODULE(Encoder);

}  // namespace fx::bench
