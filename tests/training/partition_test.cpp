#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/joint_check.h"

namespace fx::test {
namespace {

namespace nn = torch::nn;
using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kDoubleSize = 8;

Tensor normal(std::initializer_list<std::int64_t> sizes, bool gradient = true) {
  return torch::randn(at::IntArrayRef(sizes), torch::kDouble).set_requires_grad(gradient);
}

// Of a chain of pointwise operators the input is enough.
TEST(MinCut, chain_keeps_its_input) {
  auto gm = joint([](const Tensor& x) { return x.sin().cos().exp().sin(); }, {normal({100})});
  const TrainingGraphs whole = default_partition(*gm);
  const TrainingGraphs cut = min_cut_rematerialization_partition(*gm);
  EXPECT_THAT(whole.saved, ElementsAre("x", "sin", "exp"));
  EXPECT_THAT(cut.saved, ElementsAre("x"));
  EXPECT_EQ(cut.saved_bytes, 100 * kDoubleSize);
  EXPECT_EQ(cut.saved_input_bytes, cut.saved_bytes);
  EXPECT_EQ(cut.num_recomputed, 3u) << cut.backward->graph();
  EXPECT_EQ(cut.str(), "1 value of 800 B kept, 800 B of them inputs; 3 operators run again");
}

// What dropout drew is kept, never drawn again.
TEST(MinCut, masks_are_kept) {
  auto gm = joint([](const Tensor& x) { return torch::dropout(x.sin(), 0.5, true).exp(); },
                  {normal({10, 10})});
  for (const bool aggressive : {false, true}) {
    const TrainingGraphs cut = min_cut_rematerialization_partition(*gm, {.aggressive = aggressive});
    for (const Node& node : cut.backward->graph().nodes())
      if (node.op() == Opcode::kCallFunction) EXPECT_FALSE(node.is_impure()) << node.format_node();
  }
}

// Matrix products do not run again, activations between them do.
TEST(MinCut, heavy_operators_run_once) {
  auto gm = joint([](const Tensor& x, const Tensor& v,
                     const Tensor& w) { return torch::gelu(x.mm(v)).mm(w).sigmoid(); },
                  {normal({6, 8}), normal({8, 8}), normal({8, 5})});
  const TrainingGraphs cut = min_cut_rematerialization_partition(*gm);
  EXPECT_EQ(cut.backward->graph().find_calls("aten::mm").size(), 4u) << cut.backward->graph();
  const TrainingGraphs whole = default_partition(*gm);
  EXPECT_LE(cut.saved_bytes, whole.saved_bytes);
}

// A view is made again from what it shows, which is kept once.
TEST(MinCut, views_are_not_kept) {
  auto gm = joint(
      [](const Tensor& x, const Tensor& w) {
        const std::vector<Tensor> parts = x.mm(w).chunk(3, 1);
        return parts[0] * parts[1] * parts[2];
      },
      {normal({4, 6}), normal({6, 9})});
  for (const TrainingGraphs& graphs :
       {default_partition(*gm), min_cut_rematerialization_partition(*gm)}) {
    EXPECT_THAT(graphs.saved, testing::Not(testing::Contains(HasSubstr("getitem"))));
    EXPECT_THAT(graphs.saved, testing::Contains("mm"));
  }
}

// A value that the forward replaces is kept as it was.
TEST(MinCut, what_the_forward_writes_to_is_copied_before) {
  struct Net : nn::Module {
    Tensor forward(const Tensor& x) {
      const Tensor y = x * mean.clone() * weight;
      {
        const torch::NoGradGuard no_grad;
        mean.add_(1);
      }
      return y;
    }
    Tensor mean = register_buffer("mean", torch::ones({4}, torch::kDouble));
    Tensor weight = register_parameter("weight", torch::ones({4}, torch::kDouble));
  };
  auto net = std::make_shared<Net>();
  const Trained program{net, [net](Tensors& in) -> Tensors { return {net->forward(in[0])}; }};
  EXPECT_EQ(check_training(program, [] { return Tensors{normal({4})}; }), "");
}

TEST(MinCut, a_graph_that_is_not_joint_is_refused) {
  auto gm = make_fx([](const Tensor& x) { return x.sin(); }, {normal({3}, false)});
  EXPECT_THROW(default_partition(*gm), PassError);
  EXPECT_THROW(min_cut_rematerialization_partition(*gm), PassError);
}

TEST(MinCut, deep_chains) {
  auto gm = joint(
      [](Tensor x) {
        for (int i = 0; i < 700; ++i) x = x.sin();
        return x;
      },
      {normal({3})});
  const TrainingGraphs cut = min_cut_rematerialization_partition(*gm);
  const TrainingGraphs least = min_cut_rematerialization_partition(*gm, {.aggressive = true});
  EXPECT_LT(cut.saved.size(), 20u);
  EXPECT_GT(cut.saved.size(), 1u);  // something every hundred operators
  EXPECT_THAT(least.saved, ElementsAre("x"));
}

// Number and bytes of what is kept, beside those of torch 2.15 in Python: aot_function with
// default_partition and min_cut_rematerialization_partition, placeholders of the backward that are
// no tangents. There a value that has two nodes (an alias by detach) is kept twice.
TEST(MinCut, keeps_no_more_than_Python) {
  struct Kept {
    std::size_t number;
    std::int64_t bytes;
    bool operator==(const Kept&) const = default;
  };
  const auto expect = [](const char* name, const Trained& program, const Tensors& inputs,
                         Kept whole, Kept python_whole, Kept cut, Kept python_cut) {
    const auto gm = joint_of(program, inputs);
    const TrainingGraphs by_default = default_partition(*gm);
    const TrainingGraphs by_cut = min_cut_rematerialization_partition(*gm);
    EXPECT_EQ(by_default.saved.size(), whole.number) << name;
    EXPECT_EQ(by_default.saved_bytes, whole.bytes) << name;
    EXPECT_EQ(by_cut.saved.size(), cut.number) << name << by_cut.forward->graph();
    EXPECT_EQ(by_cut.saved_bytes, cut.bytes) << name;
    EXPECT_LE(whole.bytes, python_whole.bytes) << name;
    EXPECT_LE(cut.bytes, python_cut.bytes) << name;
  };
  const auto run = [](auto fn) {
    return Trained{nullptr, [fn](Tensors& in) -> Tensors { return {fn(in)}; }};
  };
  expect("perceptron", run([](Tensors& in) {
           return torch::addmm(in[4], torch::relu(torch::addmm(in[2], in[0], in[1])), in[3]);
         }),
         {normal({8, 4}), normal({4, 16}), normal({16}), normal({16, 3}), normal({3})}, {4, 2176},
         {5, 3200}, {4, 2176}, {4, 2176});
  expect("pointwise", run([](Tensors& in) { return (in[0].sin().cos() * in[1].exp()).sigmoid(); }),
         {normal({10, 10}), normal({10, 10})}, {5, 4000}, {6, 4800}, {2, 1600}, {3, 2400});
  expect("attention", run([](Tensors& in) {
           return torch::matmul((torch::matmul(in[0], in[1].transpose(-2, -1)) * 0.25).softmax(-1),
                                in[2]);
         }),
         {normal({2, 5, 16}), normal({2, 5, 16}), normal({2, 5, 16})}, {4, 4240}, {5, 4640},
         {4, 4240}, {4, 4240});
  expect("block", run([](Tensors& in) {
           const Tensor h = torch::layer_norm(in[0], {16}, in[2], in[3]);
           return in[0] + torch::gelu(h.mm(in[1])).mm(in[4]);
         }),
         {normal({8, 16}), normal({16, 64}), normal({16}), normal({16}), normal({64, 16})},
         {10, 27008}, {10, 27008}, {10, 27008}, {10, 27008});
}

}  // namespace
}  // namespace fx::test
