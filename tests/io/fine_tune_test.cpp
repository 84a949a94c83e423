// A program of torch.export is trained here: gradients are eager's, the loss falls, what was not to
// be trained stays, and the file that comes out is the trained program. That Python reads it is
// save_pt2_python_test.cpp's matter.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/io/import_export.h"
#include "fx/io/npy.h"
#include "fx/io/save_pt2.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

namespace F = torch::nn::functional;
using testing::read_file;
using testing::source_path;
using testing::TempDir;

/// Images of the other polarity, which the classifier reads badly.
at::Tensor images() {
  return (1 - read_npy(source_path("models/digits_test_x.npy"))).narrow(0, 0, 120);
}
at::Tensor labels() { return read_npy(source_path("models/digits_test_y.npy")).narrow(0, 0, 120); }

at::Tensor loss_of(GraphModule& net) {
  return F::cross_entropy(net(images()).toTensor(), labels());
}

/// Losses of `steps` steps on what requires gradients.
std::vector<double> train(GraphModule& net, torch::optim::Optimizer& optimizer, int steps) {
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    const at::Tensor loss = loss_of(net);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

/// The classifier as a program of LibTorch.
at::Tensor eager(const GraphModule& net, at::Tensor x) {
  const auto block = [&net](const at::Tensor& input, const std::string& number) {
    const auto of = [&](const char* layer, const char* name) {
      const std::string path = layer + number + "." + name;
      return path == "conv1.bias" || path == "conv2.bias" ? at::Tensor() : net.find_tensor(path);
    };
    const at::Tensor y = at::conv2d(input, of("conv", "weight"), of("conv", "bias"), 1, 1);
    return at::relu(at::batch_norm(y, of("bn", "weight"), of("bn", "bias"),
                                   of("bn", "running_mean"), of("bn", "running_var"), false, 0.1,
                                   1e-5, false));
  };
  x = at::max_pool2d(block(block(x, "1"), "2"), 2);
  x = block(x, "3").mean({2, 3});
  return at::linear(x, net.find_tensor("fc.weight"), net.find_tensor("fc.bias"));
}

TEST(FineTune, GradientsAreEagers) {
  auto net = load(source_path("models/digits.pt2"));
  loss_of(*net).backward();
  std::vector<at::Tensor> found;
  for (at::Tensor& parameter : net->parameters()) {
    ASSERT_TRUE(parameter.grad().defined());
    found.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  F::cross_entropy(eager(*net, images()), labels()).backward();
  std::size_t i = 0;
  for (const auto& item : net->named_parameters())
    EXPECT_TRUE(at::allclose(found[i++], item.value().grad(), 1e-4, 1e-6)) << item.key();
  EXPECT_EQ(i, 12u);
}

TEST(FineTune, TheHeadLearnsAndNothingElseChanges) {
  auto net = load(source_path("models/digits.pt2"));
  const auto before = net->deep_copy();
  std::vector<at::Tensor> head;
  for (auto& item : net->named_parameters()) {
    const bool trained = item.key().starts_with("fc.");
    item.value().set_requires_grad(trained);
    if (trained) head.push_back(item.value());
  }
  ASSERT_EQ(head.size(), 2u);
  torch::optim::SGD optimizer(head, torch::optim::SGDOptions(0.2).momentum(0.9));
  const std::vector<double> losses = train(*net, optimizer, 30);
  EXPECT_GT(losses.front(), 1.0);
  EXPECT_LT(losses.back(), 0.5 * losses.front());
  for (const auto& item : net->named_parameters()) {
    const bool equal = at::equal(item.value(), before->find_tensor(item.key()));
    EXPECT_EQ(equal, !item.key().starts_with("fc.")) << item.key();
    EXPECT_EQ(item.value().grad().defined(), item.key().starts_with("fc.")) << item.key();
  }
  for (const auto& item : net->named_buffers())
    EXPECT_TRUE(at::equal(item.value(), before->find_tensor(item.key()))) << item.key();
}

TEST(FineTune, TheWholeNetLearnsAndSurvivesTheFile) {
  const TempDir folder;
  const std::string original = read_file(source_path("models/digits.pt2"));
  const std::string path = folder.write("digits.pt2", original);
  auto net = load(path);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.003));
  const std::vector<double> losses = train(*net, optimizer, 40);
  EXPECT_LT(losses.back(), 0.1 * losses.front());

  const std::string tuned = folder.path("tuned.pt2");
  save_pt2(*net, tuned);
  EXPECT_EQ(read_file(path), original) << "training writes to memory, not to the file";
  const at::NoGradGuard no_grad;
  const auto again = load(tuned);
  EXPECT_TRUE(at::equal((*again)(images()).toTensor(), (*net)(images()).toTensor()));
  for (const auto& item : again->named_parameters()) EXPECT_TRUE(item.value().requires_grad());

  // Over the file that it was loaded from, whose weights are still mapped.
  save_pt2(*net, path);
  EXPECT_TRUE(at::equal((*load(path))(images()).toTensor(), (*net)(images()).toTensor()));
}

}  // namespace
}  // namespace fx::io
