// Submodules: the classes of torch::nn with their options, containers, own classes.

#include <filesystem>

#include "fx/base/error.h"
#include "fx/graph/module_call.h"
#include "tests/io/saved_again.h"

namespace fx::io {
namespace {

using testing::calling;
using testing::expect_equal;
using testing::expect_import_error;
using testing::memory;
using testing::ramp;
using testing::saved_and_loaded;
using testing::TempDir;
namespace nn = torch::nn;

template <typename Module>
void expect_same_module(const Module& module, const at::Tensor& input, bool training = false) {
  using Impl = typename std::decay_t<decltype(module.ptr())>::element_type;
  SCOPED_TRACE(module_type_name(*module.ptr()));
  torch::NoGradGuard no_grad;
  nn::Module root;
  root.register_module("m", module);
  auto gm = calling(root, "m");
  gm->train(training);
  const auto loaded = saved_and_loaded(*gm);
  expect_equal(*gm, *loaded);
  auto first = [](const Value& value) {
    return value.isTuple() ? elements(value)[0].toTensor() : value.toTensor();
  };
  EXPECT_TRUE(at::equal(first((*gm)(input)), first((*loaded)(input))));
  EXPECT_NE(std::dynamic_pointer_cast<Impl>(loaded->find_submodule("m")), nullptr);
}

// torch.fx's test_pickle_nonetype_annotation: a module that is called without its optional inputs.
TEST(SavedClasses, F_073_optional_inputs_that_are_left_out) {
  expect_same_module(nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 3).mode(torch::kSum)),
                     torch::tensor({{1, 4, 9}, {0, 2, 2}}));
}

TEST(SavedClasses, S0_68_modules_of_torch_nn_with_their_options) {
  const at::Tensor image = torch::randn({2, 4, 9, 9}), rows = torch::randn({3, 2, 4});
  expect_same_module(nn::Linear(nn::LinearOptions(4, 5).bias(false)), rows);
  expect_same_module(
      nn::Conv2d(nn::Conv2dOptions(4, 6, {3, 2}).stride(2).padding({1, 0}).groups(2)), image);
  expect_same_module(nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(torch::kSame).bias(false)),
                     image);
  expect_same_module(
      nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(2).padding_mode(torch::kReflect)), image);
  expect_same_module(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 3, 3).stride(2)), image);
  nn::BatchNorm2d norm(nn::BatchNorm2dOptions(4).eps(1e-3).momentum(std::nullopt));
  norm->running_mean.fill_(0.5);
  expect_same_module(norm, image);
  expect_same_module(nn::BatchNorm2d(nn::BatchNorm2dOptions(4).affine(false)), image, true);
  expect_same_module(nn::BatchNorm2d(nn::BatchNorm2dOptions(4).track_running_stats(false)), image);
  expect_same_module(nn::LayerNorm(nn::LayerNormOptions({9, 9}).elementwise_affine(false)), image);
  expect_same_module(nn::GroupNorm(nn::GroupNormOptions(2, 4)), image);
  expect_same_module(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({std::nullopt, 3})), image);
  expect_same_module(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride({2, 1}).ceil_mode(true)), image);
  expect_same_module(nn::Upsample(nn::UpsampleOptions()
                                      .scale_factor(std::vector<double>{2.0, 1.5})
                                      .mode(torch::kBilinear)
                                      .align_corners(false)),
                     image);
  expect_same_module(nn::PReLU(nn::PReLUOptions().num_parameters(4)), image);
  expect_same_module(nn::Softplus(nn::SoftplusOptions().beta(0.5)), image);
  expect_same_module(nn::Embedding(nn::EmbeddingOptions(10, 3).padding_idx(4)),
                     torch::tensor({1, 4, 9}));
  expect_same_module(nn::Unflatten(nn::UnflattenOptions(1, {2, 2})), image);
  expect_same_module(nn::Identity(), image);
  expect_same_module(nn::LSTM(nn::LSTMOptions(4, 3).num_layers(2).bidirectional(true)), rows);
  expect_same_module(nn::LSTM(nn::LSTMOptions(4, 3).proj_size(2)), rows);
  expect_same_module(nn::RNN(nn::RNNOptions(4, 3).nonlinearity(torch::kReLU)), rows);
  expect_same_module(nn::GRUCell(nn::GRUCellOptions(4, 3)), rows[0]);
  expect_same_module(nn::Sequential({{"first", nn::AnyModule(nn::Linear(4, 8))},
                                     {"act", nn::AnyModule(nn::GELU())},
                                     {"drop", nn::AnyModule(nn::Dropout(0.5))}}),
                     rows);
}

TEST(SavedClasses, containers_of_all_kinds) {
  auto inner = std::make_shared<GraphModule>();
  inner->graph().output(inner->graph().call_method("neg", {inner->graph().placeholder("x")}));
  inner->recompile();
  nn::Sequential steps;
  steps->push_back("relu", nn::ReLU());
  steps->push_back("graph", nn::AnyModule(inner));
  nn::ModuleList list(nn::Linear(2, 2), nn::Tanh());
  nn::ModuleDict dict;
  dict->update(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
      {"a", nn::Tanh().ptr()}, {"b", list.ptr()}});
  nn::Module root;
  root.register_module("steps", steps);
  root.register_module("dict", dict);
  auto gm = calling(root, "steps");
  gm->set_submodule("dict", dict.ptr());
  const auto loaded = saved_and_loaded(*gm);
  expect_equal(*gm, *loaded);
  EXPECT_TRUE(at::equal((*loaded)(ramp({3})).toTensor(), -ramp({3})));
  EXPECT_EQ(std::dynamic_pointer_cast<nn::SequentialImpl>(loaded->find_submodule("steps"))->size(),
            2u);
  const auto theirs = std::dynamic_pointer_cast<nn::ModuleDictImpl>(loaded->find_submodule("dict"));
  ASSERT_NE(theirs, nullptr);
  EXPECT_TRUE(theirs->contains("a"));
  EXPECT_EQ(std::dynamic_pointer_cast<nn::ModuleListImpl>((*theirs)["b"])->size(), 2u);
}

TEST(SavedClasses, attention_keeps_its_heads_and_projections) {
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(8, 2).kdim(6).vdim(6));
  nn::Module root;
  root.register_module("m", attention);
  auto graph = std::make_shared<Graph>();
  Node &q = graph->placeholder("q"), &k = graph->placeholder("k"), &v = graph->placeholder("v");
  graph->output(graph->call_module("m", {q, k, v}));
  GraphModule gm(root, graph);
  gm.eval();
  const auto loaded = saved_and_loaded(gm);
  expect_equal(gm, *loaded);
  const Values inputs = {torch::randn({4, 1, 8}), torch::randn({3, 1, 6}), torch::randn({3, 1, 6})};
  EXPECT_TRUE(
      at::equal(elements(gm(inputs))[0].toTensor(), elements((*loaded)(inputs))[0].toTensor()));
}

TEST(SavedClasses, modules_with_one_weight_share_its_memory) {
  nn::Embedding embed(5, 3);
  nn::Linear head(nn::LinearOptions(3, 5).bias(false));
  head->weight.set_data(embed->weight);
  nn::Module root;
  root.register_module("embed", embed);
  root.register_module("head", head);
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_module("head", {graph->call_module("embed", {x})}));
  const auto loaded = saved_and_loaded(GraphModule(root, graph));
  EXPECT_EQ(memory(loaded->find_tensor("embed.weight")),
            memory(loaded->find_tensor("head.weight")));
}

TEST(SavedClasses, random_numbers_go_on_as_if_nothing_was_loaded) {
  nn::Module root;
  root.register_module("m", nn::Linear(3, 3));
  const TempDir folder;
  save(*calling(root, "m"), folder.path("m.fxa"));
  torch::manual_seed(5);
  const at::Tensor wanted = torch::rand({3});
  torch::manual_seed(5);
  load(folder.path("m.fxa"));
  EXPECT_TRUE(at::equal(torch::rand({3}), wanted));
}

struct OwnImpl : nn::Module {
  explicit OwnImpl(std::int64_t size = 2) : size(size) {
    weight = register_parameter("weight", torch::ones({size}));
    inner = register_module("inner", nn::Linear(size, size));
  }
  at::Tensor forward(const at::Tensor& x) { return inner(x * weight); }
  std::int64_t size;
  at::Tensor weight;
  nn::Linear inner = nullptr;
};

TEST(SavedClasses, own_classes_are_refused_or_registered) {
  register_module_type<OwnImpl>("tests.Own");
  nn::Module root;
  auto own = std::make_shared<OwnImpl>(3);
  root.register_module("block", std::make_shared<nn::Module>());
  root.named_children()["block"]->register_module("own", own);
  auto gm = calling(root, "block.own");
  const TempDir folder;
  expect_import_error(ErrorCode::kNotSavable,
                      {"the submodule 'block.own' of class tests.Own", "register_saved_module"},
                      [&] { save(*gm, folder.path("m.fxa")); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  register_saved_module(
      typeid(OwnImpl), "tests.Own",
      [](const nn::Module& m) { return std::to_string(dynamic_cast<const OwnImpl&>(m).size); },
      [](const std::string& options) { return std::make_shared<OwnImpl>(std::stoi(options)); });
  const auto loaded = saved_and_loaded(*gm);
  expect_equal(*gm, *loaded);
  EXPECT_TRUE(at::equal((*loaded)(ramp({3})).toTensor(), (*gm)(ramp({3})).toTensor()));
  EXPECT_THROW(register_saved_module<OwnImpl>("torch.nn.Own"), GraphError);
}

// LibTorch's kernel would read behind such weights.
TEST(SavedClasses, weights_of_an_lstm_have_the_sizes_of_its_options) {
  const nn::LSTMOptions plain = nn::LSTMOptions(4, 8).num_layers(2).bidirectional(true);
  const at::NoGradGuard no_grad;
  for (const nn::LSTMOptions& options :
       {plain, nn::LSTMOptions(4, 8).bias(false), nn::LSTMOptions(4, 8).proj_size(3)}) {
    nn::LSTM net(options);
    expect_same_module(net, torch::randn({5, 2, 4}));
    for (const auto& item : net->named_parameters()) {
      const at::Tensor whole = item.value().data();
      item.value().set_data(whole.slice(0, 0, 2).clone());
      nn::Module root;
      root.register_module("m", net);
      expect_import_error(ErrorCode::kBadSavedModule,
                          {"the sizes of", item.key(), "do not fit the options"},
                          [&] { saved_and_loaded(*calling(root, "m")); });
      item.value().set_data(whole);
    }
  }
}

}  // namespace
}  // namespace fx::io
