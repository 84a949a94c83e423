// Files that are large, or that change while they are used.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "fx/base/error.h"
#include "fx/interpret/interpreter.h"
#include "fx/io/import_export.h"
#include "fx/io/save_module.h"
#include "fx/passes/joint.h"
#include "tests/io/archive_builder.h"
#include "tests/io/peak_memory.h"
#include "tests/io/zoo.h"

namespace fx::io {
namespace {

using testing::ProgramFile;
using testing::read_file;
using testing::source_path;
using testing::TempDir;
using testing::TestArchive;
using testing::TestRecord;

/// The program "buffers", whose first weight has `bytes` bytes, all but the first sixteen of them a
/// hole in the file, and starts at an offset that is `rest` modulo 64.
std::string write_sparse(const TempDir& folder, std::uint64_t bytes, std::size_t rest = 0) {
  ProgramFile program("buffers");
  TestArchive archive;
  archive.records = program.records();
  TestRecord weight = archive.records.front();
  archive.records.erase(archive.records.begin());
  const std::uint64_t stored = weight.data.size(), hole = bytes - stored;
  weight.zip64 = true;
  weight.crc = weight.local_crc = 0;
  weight.size = weight.stored = bytes;
  archive.records.push_back(weight);
  archive.zip64_end = true;
  TestRecord& last = archive.records.back();
  const std::size_t start = archive.build().rfind("PK\x03\x04") + 30 + weight.name.size() + 20;
  // A block of padding as torch writes it.
  const std::size_t padding = (64 + rest + 64 - (start + 4) % 64) % 64;
  last.local_extra =
      std::string("FB") + static_cast<char>(padding) + '\0' + std::string(padding, 'Z');
  const std::string draft = archive.build();
  // Both sizes of the local header, in its zip64 block behind the name.
  const std::size_t header = draft.rfind("PK\x03\x04"),
                    block = header + 30 + weight.name.size() + last.local_extra.size() + 4;
  const std::size_t split = block + 16 + stored;
  archive.directory_offset = split + hole;
  archive.zip64_end_offset = draft.size() - 22 - 20 - 56 + hole;
  std::string text = archive.build();
  for (std::size_t i = 0; i < 16; ++i) text[block + i] = static_cast<char>(bytes >> (8 * (i % 8)));
  const std::string path = folder.write("sparse.pt2", text.substr(0, split));
  std::filesystem::resize_file(path, split + hole);
  std::ofstream(path, std::ios::binary | std::ios::app) << text.substr(split);
  return path;
}

TEST(HostileFiles, X04_HugeSparseWeightsOpenAtOnce) {
  for (const std::uint64_t bytes : {std::uint64_t{5} << 30, std::uint64_t{1} << 40}) {
    const TempDir folder;
    const std::string path = write_sparse(folder, bytes);
    EXPECT_GT(std::filesystem::file_size(path), bytes);
    const testing::PeakMemory memory;
    const std::clock_t start = std::clock();
    const auto module = load(path);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 0.5);
    const at::Tensor mean = module->find_tensor("mean");
    EXPECT_TRUE(
        at::equal(mean, load(source_path("tests/io/zoo/buffers.pt2"))->find_tensor("mean")));
    EXPECT_EQ(mean.storage().nbytes(), bytes);
    if (testing::PeakMemory::kIsExact) {
      EXPECT_LT(memory.growth(), std::uint64_t{64} << 20);
    }
  }
}

TEST(HostileFiles, X04_WhatCannotBeCopiedIsAnError) {
  const TempDir folder;
  testing::expect_import_error(ErrorCode::kTooLarge,
                               {"sparse.pt2", "not aligned", "there is no memory"},
                               [&] { load(write_sparse(folder, std::uint64_t{1} << 42, 3)); });
}

TEST(HostileFiles, X04_WhatHasToBeCopiedIsInMemoryOnce) {
  const TempDir folder;
  const std::string path = write_sparse(folder, std::uint64_t{200} << 20, 3);
  const testing::PeakMemory memory;
  const auto module = load(path);
  EXPECT_EQ(module->find_tensor("mean").numel(), 4);
  if (testing::PeakMemory::kIsExact) {
    EXPECT_LT(memory.growth(), std::uint64_t{264} << 20);
  }
}

TEST(HostileFiles, X02_AFileThatIsReplacedStaysWhatItWas) {
  const TempDir folder;
  const std::string path =
      folder.write("m.pt2", read_file(source_path("tests/io/zoo/buffers.pt2")));
  const auto module = load(path);
  const at::Tensor before = module->find_tensor("mean").clone();
  const std::string other = folder.write("other.pt2", std::string(100'000, 'x'));
  ASSERT_EQ(std::rename(other.c_str(), path.c_str()), 0);
  EXPECT_TRUE(at::equal(module->find_tensor("mean"), before));
  EXPECT_THROW(load(path), ImportError);
}

TEST(HostileFiles, KernelsThatTrustSizesAreNotReached) {
  const at::NoGradGuard no_grad;
  const auto weights = std::make_shared<torch::nn::Module>();
  const auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  std::vector<Argument> args{x};
  for (const char* name : {"weight", "bias", "mean", "variance"}) {
    weights->register_buffer(name, at::ones({2}));
    args.emplace_back(graph->get_attr(name));
  }
  args.emplace_back(0.1);
  args.emplace_back(1e-5);
  Node& norm = graph->call_function("aten::_native_batch_norm_legit_no_training", args);
  graph->output(graph->call_function("operator.getitem", {norm, 0}));
  const TempDir folder;
  save(GraphModule(*weights, graph), folder.path("m.fxa"));
  const auto module = load(folder.path("m.fxa"));
  const at::Tensor fits = at::rand({3, 2, 4, 4});
  const at::Tensor wanted = (fits - 1) / std::sqrt(1 + 1e-5) + 1;
  EXPECT_TRUE(at::allclose((*module)(fits).toTensor(), wanted));
  EXPECT_TRUE(at::allclose(Interpreter(*module).run({fits}).toTensor(), wanted));
  // 64 MB of channels behind two weights.
  const at::Tensor hostile = at::rand({1, 1 << 24, 1, 1});
  const auto refused = [](const std::function<void()>& run) {
    try {
      run();
    } catch (const RunError& error) {
      return std::string(error.what());
    }
    return std::string("it ran");
  };
  const std::string message = "argument 'weight' has sizes [2], wanted [16777216]";
  EXPECT_NE(refused([&] { (*module)(hostile); }).find(message), std::string::npos);
  EXPECT_NE(refused([&] { Interpreter(*module).run({hostile}); }).find(message), std::string::npos);
}

struct TrainedImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x, at::Tensor target) {
    x = torch::max_pool2d(norm(conv(x)), 2).flatten(1);
    return torch::nll_loss(torch::log_softmax(head(rows(x)), 1), target);
  }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 4, 3));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(4));
  torch::nn::LayerNorm rows =
      register_module("rows", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(16, 5));
};
TORCH_MODULE(Trained);

TEST(HostileFiles, JointGraphsNeedNoPermission) {
  torch::manual_seed(3);
  Trained net;
  const at::Tensor x = at::rand({2, 3, 6, 6}), target = at::tensor({4, 1}, at::kLong);
  const auto graph = joint(net, {x, target});
  const TempDir folder;
  save(*graph, folder.path("joint.fxa"));
  const auto again = load(folder.path("joint.fxa"));
  std::set<std::string> called;
  for (const Node& node : again->graph().nodes())
    if (node.op() == Opcode::kCallFunction) called.insert(node.target().str());
  for (const char* name :
       {"native_batch_norm_backward", "native_layer_norm_backward",
        "max_pool2d_with_indices_backward", "_log_softmax_backward_data", "nll_loss_backward"})
    EXPECT_TRUE(called.contains("aten::" + std::string(name))) << name;
  const at::NoGradGuard no_grad;
  const Values inputs{x, target, at::ones({})};
  Values wanted, found;
  testing::flatten_value((*graph)(inputs), wanted);
  testing::flatten_value((*again)(inputs), found);
  ASSERT_EQ(found.size(), wanted.size());
  ASSERT_GT(found.size(), 8u);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (wanted[i].isTensor())
      EXPECT_TRUE(at::equal(found[i].toTensor(), wanted[i].toTensor())) << i;
}

}  // namespace
}  // namespace fx::io
