// Deep copies of GraphModules: what was tied stays tied, nothing is shared with the original.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "fx/graph/graph_module.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

at::Tensor ramp(at::IntArrayRef shape) {
  return torch::arange(c10::multiply_integers(shape)).to(torch::kFloat).view(shape);
}

bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl();
}

TEST(ModuleCopy, tensors_that_share_memory_share_it_in_the_copy) {
  GraphModule gm(std::make_shared<Graph>());
  const at::Tensor state = ramp({3, 4});
  gm.set_buffer("state", state);
  gm.set_buffer("turned", state.t());
  gm.set_constant("row", state[1]);
  gm.set_buffer("deep.down.tail", state.view({12}).slice(0, 5, 12, 3));
  gm.set_buffer("imaginary", torch::view_as_complex(ramp({2, 2})).conj());
  auto copy = gm.deep_copy();
  for (const char* path : {"state", "turned", "row", "deep.down.tail", "imaginary"}) {
    const at::Tensor mine = gm.find_tensor(path), theirs = copy->find_tensor(path);
    EXPECT_TRUE(torch::equal(mine, theirs)) << path;
    EXPECT_EQ(mine.strides(), theirs.strides()) << path;
    EXPECT_EQ(mine.storage_offset(), theirs.storage_offset()) << path;
    EXPECT_EQ(mine.is_conj(), theirs.is_conj()) << path;
    EXPECT_FALSE(share_memory(mine, theirs)) << path;
  }
  copy->find_tensor("state").fill_(-1);
  for (const char* path : {"turned", "row", "deep.down.tail"})
    EXPECT_TRUE((copy->find_tensor(path) == -1).all().item<bool>()) << path;
  EXPECT_TRUE(torch::equal(state, ramp({3, 4})));
}

TEST(ModuleCopy, one_tensor_under_two_names_stays_one) {
  GraphModule gm(std::make_shared<Graph>());
  const at::Tensor weight = ramp({2, 2}).set_requires_grad(true);
  gm.set_parameter("encoder.weight", weight);
  gm.set_parameter("decoder.weight", weight);
  gm.set_parameter("frozen", ramp({2}));
  auto copy = gm.deep_copy();
  const at::Tensor tied = copy->find_tensor("encoder.weight");
  EXPECT_TRUE(tied.is_same(copy->find_tensor("decoder.weight")));
  EXPECT_FALSE(tied.is_same(weight));
  EXPECT_TRUE(tied.requires_grad() && tied.is_leaf());
  EXPECT_FALSE(copy->find_tensor("frozen").requires_grad());
}

// Weights of an embedding and of a linear layer, one tensor; a norm registered twice; a nested
// GraphModule that reads the weight as well.
TEST(ModuleCopy, M_016_modules_that_clone_themselves_keep_their_ties) {
  GraphModule gm(std::make_shared<Graph>());
  auto embedding = std::make_shared<torch::nn::EmbeddingImpl>(5, 3);
  auto head = std::make_shared<torch::nn::LinearImpl>(3, 5);
  head->weight.set_data(embedding->weight.detach());
  auto norm = std::make_shared<torch::nn::BatchNorm1dImpl>(3);
  auto inner = std::make_shared<GraphModule>(std::make_shared<Graph>());
  inner->set_buffer("view", embedding->weight.detach()[0]);
  gm.set_submodule("embedding", embedding);
  gm.set_submodule("head", head);
  gm.set_submodule("first", norm);
  gm.set_submodule("second", norm);
  gm.set_submodule("inner", inner);
  gm.set_constant("mean", norm->running_mean);
  auto copy = gm.deep_copy();

  EXPECT_EQ(copy->find_submodule("first"), copy->find_submodule("second"));
  EXPECT_NE(copy->find_submodule("first"), norm);
  const auto copied_embedding =
      std::dynamic_pointer_cast<torch::nn::EmbeddingImpl>(copy->find_submodule("embedding"));
  const auto copied_head =
      std::dynamic_pointer_cast<torch::nn::LinearImpl>(copy->find_submodule("head"));
  {
    torch::NoGradGuard no_grad;
    copied_embedding->weight.fill_(7);
    copy->find_tensor("mean").fill_(8);
  }
  EXPECT_TRUE((copied_head->weight == 7).all().item<bool>());
  EXPECT_TRUE((copy->find_tensor("inner.view") == 7).all().item<bool>());
  const auto copied_norm =
      std::dynamic_pointer_cast<torch::nn::BatchNorm1dImpl>(copy->find_submodule("first"));
  EXPECT_TRUE((copied_norm->running_mean == 8).all().item<bool>());
  EXPECT_TRUE((norm->running_mean == 0).all().item<bool>());
  EXPECT_FALSE((embedding->weight == 7).any().item<bool>());
  EXPECT_TRUE(copied_head->weight.requires_grad() && copied_head->bias.requires_grad());
}

// Parameters, buffers and captured constants, also those of nested GraphModules.
TEST(ModuleCopy, S4_40_to_moves_constants_too) {
  auto inner = std::make_shared<GraphModule>(std::make_shared<Graph>());
  inner->set_constant("half", ramp({2}));
  const at::Tensor table = ramp({2}), index = torch::tensor({1, 0});
  auto graph = std::make_shared<Graph>();
  auto gm = std::make_shared<GraphModule>(graph);
  gm->set_parameter("w", ramp({2}));
  gm->set_buffer("b", ramp({2}));
  gm->set_constant("table", table);
  gm->set_constant("again", table);
  gm->set_constant("index", index);
  gm->set_constant("nothing", at::Tensor());
  gm->set_submodule("inner", inner);
  Node& sum =
      graph->call_function("operator.add", {graph->get_attr("w"), graph->get_attr("table")});
  graph->output(graph->call_function("aten::index_select", {sum, 0, graph->get_attr("index")}));
  gm->recompile();
  gm->to(torch::kDouble);
  for (const char* path : {"w", "b", "table"})
    EXPECT_EQ(gm->find_tensor(path).scalar_type(), torch::kDouble) << path;
  EXPECT_EQ(inner->find_tensor("half").scalar_type(), torch::kDouble);
  EXPECT_EQ(gm->find_tensor("index").scalar_type(), torch::kLong);
  EXPECT_TRUE(gm->find_tensor("table").is_same(gm->find_tensor("again")));
  EXPECT_EQ(table.scalar_type(), torch::kFloat) << "the caller's tensor stays what it is";
  EXPECT_TRUE(torch::equal(gm->forward({}).toTensor(), torch::tensor({2.0, 0.0}, torch::kDouble)));
  EXPECT_EQ(gm->constants().size(), 4u);
  inner->to(torch::Device(torch::kMeta));
  EXPECT_TRUE(inner->find_tensor("half").is_meta());
  inner->to(torch::Device(torch::kMeta), torch::kHalf);
  EXPECT_EQ(inner->find_tensor("half").scalar_type(), torch::kHalf);
}

// LibTorch's Sequential keeps its modules beside its children.
TEST(ModuleCopy, a_sequence_without_a_child_is_copied_and_the_one_that_was_shared_stays) {
  torch::nn::Sequential sequence(torch::nn::Linear(3, 4), torch::nn::ReLU(),
                                 torch::nn::Linear(4, 2));
  sequence[2]->as<torch::nn::Linear>()->eval();
  GraphModule gm(std::make_shared<Graph>());
  gm.set_submodule("layers", sequence.ptr());
  EXPECT_FALSE(gm.delete_submodule("layers.3"));
  ASSERT_TRUE(gm.delete_submodule("layers.1"));
  EXPECT_EQ(sequence->size(), 3u);
  EXPECT_EQ(sequence->named_children().size(), 3u);
  const auto copy = gm.deep_copy();
  for (GraphModule* module : {&gm, copy.get()}) {
    EXPECT_EQ(module->find_submodule("layers.1"), nullptr);
    const auto* layers =
        dynamic_cast<const torch::nn::SequentialImpl*>(module->find_submodule("layers").get());
    ASSERT_TRUE(layers);
    EXPECT_EQ(layers->named_children().keys(), (std::vector<std::string>{"0", "2"}));
    EXPECT_EQ(layers->size(), 2u);
    EXPECT_TRUE(module->find_submodule("layers.0")->is_training());
    EXPECT_FALSE(module->find_submodule("layers.2")->is_training());
  }
  EXPECT_TRUE(
      gm.find_tensor("layers.2.weight").is_same(sequence[2]->as<torch::nn::Linear>()->weight));
}

}  // namespace
}  // namespace fx
