// What is really alive between forward and backward: eager, and by each partition.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "fx/compile/training.h"
#include "tests/models/residual.h"

namespace fx {
namespace {

namespace nn = torch::nn;
using at::Tensor;

// Counts what LibTorch allocates and frees on this thread.
class LiveBytes {
 public:
  LiveBytes()
      : info_(std::make_shared<Info>()), guard_(c10::DebugInfoKind::PROFILER_STATE, info_) {}
  std::int64_t now() const { return info_->bytes; }

 private:
  struct Info : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t,
                           c10::Device) override {
      bytes += size;
    }
    bool memoryProfilingEnabled() const override { return true; }
    std::int64_t bytes = 0;
  };
  std::shared_ptr<Info> info_;
  c10::DebugInfoGuard guard_;
};

using zoo::Residual;

// He et al. 2015: 18 layers, 11.7 million parameters.
struct ResNet18 : nn::Module {
  Tensor forward(Tensor x) {
    x = torch::max_pool2d(norm(stem(x)).relu_(), 3, 2, 1);
    return head(blocks->forward(x).mean({2, 3}));
  }
  nn::Conv2d stem = register_module("stem", zoo::ResidualImpl::conv(3, 64, 7, 2));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(64));
  nn::Sequential blocks = register_module(
      "blocks", nn::Sequential(Residual(64, 64, 1), Residual(64, 64, 1), Residual(64, 128, 2),
                               Residual(128, 128, 1), Residual(128, 256, 2), Residual(256, 256, 1),
                               Residual(256, 512, 2), Residual(512, 512, 1)));
  nn::Linear head = register_module("head", nn::Linear(512, 1000));
};

struct Encoder : nn::Module {
  Tensor forward(const Tensor& x) { return layers(x); }
  nn::TransformerEncoder layers = register_module(
      "layers", nn::TransformerEncoder(nn::TransformerEncoderOptions(
                    nn::TransformerEncoderLayer(
                        nn::TransformerEncoderLayerOptions(128, 4).dim_feedforward(512).activation(
                            torch::kGELU)),
                    4)));
};

// Bytes that one forward leaves alive, its result and the inputs aside.
template <typename Run>
std::int64_t kept_by(const Run& run) {
  run();  // what is made once
  const LiveBytes live;
  const Tensor result = run();
  return live.now() - static_cast<std::int64_t>(result.nbytes());
}

// Prints a row of docs/design/training.md, and checks that what partitions promise is what is kept.
template <typename Net>
void compare(const char* name, std::shared_ptr<Net> net, const Tensor& x) {
  const std::int64_t eager = kept_by([&] { return net->forward(x); });
  const auto gm = joint(net, {x});
  std::cout << "| " << name << " | " << eager;
  std::int64_t last = eager;
  for (const TrainingGraphs& graphs :
       {default_partition(*gm), min_cut_rematerialization_partition(*gm),
        min_cut_rematerialization_partition(*gm, {.aggressive = true})}) {
    const TrainingFunction trained(graphs, std::nullopt);
    const std::int64_t kept = kept_by([&] { return trained(x).toTensor(); });
    const std::int64_t promised = graphs.saved_bytes - graphs.saved_input_bytes;
    std::cout << " | " << kept << " (" << graphs.num_recomputed << " run again)";
    // Allocations are rounded up to 64 bytes.
    EXPECT_GE(kept, promised) << name;
    EXPECT_LE(kept, promised + 64 * static_cast<std::int64_t>(graphs.saved.size() + 4)) << name;
    EXPECT_LE(kept, last) << name;
    last = kept;
  }
  std::cout << " |\n";
}

TEST(TrainingMemory, residual_network) {
  torch::manual_seed(0);
  compare("ResNet-18, 4 images of 64 x 64", std::make_shared<ResNet18>(),
          torch::randn({4, 3, 64, 64}));
}

TEST(TrainingMemory, transformer_encoder) {
  torch::manual_seed(0);
  auto net = std::make_shared<Encoder>();
  compare("Transformer encoder, 4 layers, 4 x 64 tokens of 128", net, torch::randn({64, 4, 128}));
}

}  // namespace
}  // namespace fx
