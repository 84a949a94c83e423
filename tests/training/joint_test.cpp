#include "fx/passes/joint.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fx/base/error.h"
#include "fx/interpret/interpreter.h"
#include "tests/training/error_of.h"
#include "tests/training/joint_check.h"

namespace fx::test {
namespace {

namespace nn = torch::nn;
using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

struct MlpImpl : nn::Module {
  Tensor forward(Tensor x) { return second(torch::relu(first(x))); }
  nn::Linear first = register_module("first", nn::Linear(4, 8));
  nn::Linear second = register_module("second", nn::Linear(8, 3));
};
TORCH_MODULE(Mlp);

Tensor normal(std::initializer_list<std::int64_t> sizes, bool gradient = false) {
  return torch::randn(at::IntArrayRef(sizes), torch::kDouble).set_requires_grad(gradient);
}

template <typename Fn>
Trained function(Fn fn) {
  return {nullptr, [fn](Tensors& in) -> Tensors { return fn(in); }};
}

TEST(Joint, graph_of_a_perceptron) {
  Mlp net;
  net->to(torch::kDouble);
  auto gm = joint(net, {normal({2, 4})});
  const JointSignature& signature = joint_signature(*gm);
  EXPECT_THAT(signature.inputs, ElementsAre("x"));
  EXPECT_THAT(signature.tangents, ElementsAre("tangents_1"));
  EXPECT_THAT(signature.tangent_of, ElementsAre(0u));
  EXPECT_THAT(signature.gradients,
              ElementsAre("first.weight", "first.bias", "second.weight", "second.bias"));
  EXPECT_EQ(signature.num_input_gradients, 0u);
  std::vector<std::string> calls;
  for (const Node& node : gm->graph().nodes())
    if (node.op() == Opcode::kCallFunction) calls.push_back(node.target().str().substr(6));
  EXPECT_THAT(calls, ElementsAre("t", "addmm", "relu", "t", "addmm", "t", "mm", "t", "mm", "t",
                                 "sum.dim_IntList", "view", "t", "threshold_backward", "t", "mm",
                                 "t", "sum.dim_IntList", "view", "t"))
      << gm->graph();
}

TEST(Joint, steps_equal_eager) {
  Mlp net;
  net->to(torch::kDouble);
  const Trained program{net.ptr(), [net](Tensors& in) mutable -> Tensors { return {net(in[0])}; }};
  EXPECT_EQ(check_training(program, [] { return Tensors{normal({2, 4})}; }), "");
  EXPECT_EQ(check_training(program, [] { return Tensors{normal({2, 4}, true)}; }), "");
}

TEST(Joint, results_of_all_kinds) {
  // Several outputs, integers, the same twice, an input, a view of one, a part without gradient.
  EXPECT_EQ(check_training(function([](Tensors& in) -> Tensors {
                             const Tensor y = in[0].sin() * in[1];
                             return {y,         y.argmax(1),          y,          in[0],
                                     in[0].t(), in[1].detach().exp(), in[1].cos()};
                           }),
                           [] { return Tensors{normal({3, 4}, true), normal({3, 4})}; }),
            "");
}

TEST(Joint, gradients_that_are_none) {
  auto gm = joint_of(function([](Tensors& in) -> Tensors { return {in[1].exp()}; }),
                     {normal({2}, true), normal({2}, true)});
  const Argument gradients = gm->graph().output_node().arg(0).items()[1];
  EXPECT_TRUE(gradients.items()[0].is_none());
  EXPECT_TRUE(gradients.items()[1].is_node());
}

TEST(Joint, in_place_operators_and_views) {
  EXPECT_EQ(check_training(function([](Tensors& in) -> Tensors {
                             Tensor y = in[0] * 2;
                             y[0].mul_(3);
                             y.slice(1, 1, 3).mul_(in[1].slice(1, 1, 3));
                             y.pow_(2).add_(in[1]);
                             return {y.view({2, 6}), y.chunk(2, 1)[1]};
                           }),
                           [] { return Tensors{normal({3, 4}, true), normal({3, 4}, true)}; }),
            "");
}

// An in-place operator whose formula needs what was there before keeps a copy of it.
TEST(Joint, saved_copies_of_in_place_operators) {
  EXPECT_EQ(check_training(function([](Tensors& in) -> Tensors {
                             Tensor y = in[0] * 2;
                             return {y.pow_(3).clamp_(0, 2).sin_()};
                           }),
                           [] { return Tensors{normal({3, 4}, true)}; }),
            "");
}

TEST(Joint, buffers_and_inputs_are_written_once) {
  struct Net : nn::Module {
    Tensor forward(Tensor x, Tensor count) {
      count += 1;
      return drop(norm(linear(x))).tanh();
    }
    nn::Linear linear = register_module("linear", nn::Linear(4, 6));
    nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(6));
    nn::Dropout drop = register_module("drop", nn::Dropout(0.3));
  };
  auto net = std::make_shared<Net>();
  net->to(torch::kDouble);
  const Trained program{net,
                        [net](Tensors& in) -> Tensors { return {net->forward(in[0], in[1])}; }};
  const auto inputs = [] { return Tensors{normal({5, 4}, true), torch::zeros({2})}; };
  EXPECT_EQ(check_training(program, inputs), "");
  net->eval();
  EXPECT_EQ(check_training(program, inputs), "");
}

// The backward of batch norm in training is given the running statistics, which the forward has
// replaced by then, and does not read them.
TEST(Joint, running_statistics_are_not_kept) {
  nn::BatchNorm1d norm(3);
  norm->to(torch::kDouble);
  auto gm = joint(norm, {normal({4, 3})});
  const TrainingGraphs graphs = default_partition(*gm);
  EXPECT_EQ(graphs.saved.size(), 3u) << graphs.backward->graph();  // x, mean, inverse deviation
}

TEST(Joint, a_custom_function_is_its_operators) {
  struct Square : torch::autograd::Function<Square> {
    static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x) {
      context->save_for_backward({x});
      return x * x;
    }
    static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& g) {
      return {g[0] * context->get_saved_variables()[0] * 3};
    }
  };
  EXPECT_EQ(check_training(
                function([](Tensors& in) -> Tensors { return {Square::apply(in[0].exp()).sum()}; }),
                [] { return Tensors{normal({4}, true)}; }),
            "");
}

TEST(Joint, gradients_taken_inside) {
  EXPECT_EQ(check_training(function([](Tensors& in) -> Tensors {
                             const Tensor y = (in[0].sin() * in[0]).sum();
                             const Tensor g = torch::autograd::grad({y}, {in[0]}, {}, true,
                                                                    /*create_graph=*/true)[0];
                             return {g.square().sum() + y};
                           }),
                           [] { return Tensors{normal({4}, true)}; }),
            "");
}

TEST(Joint, autocast_is_casts) {
  nn::Linear linear(4, 4);
  const Trained program{linear.ptr(), [linear](Tensors& in) mutable -> Tensors {
                          at::autocast::set_autocast_enabled(at::kCPU, true);
                          const Tensor y = linear(in[0]).to(at::kFloat);
                          at::autocast::set_autocast_enabled(at::kCPU, false);
                          at::autocast::clear_cache();
                          return {y};
                        }};
  EXPECT_EQ(check_training(program, [] { return Tensors{torch::randn({2, 4})}; }), "");
}

TEST(Joint, decomposes) {
  DecompositionTable table;
  table["aten::silu"] = [](Values args, KwValues) -> Value {
    const Tensor x = args[0].toTensor();
    return x * x.sigmoid();
  };
  auto gm = joint([](const Tensor& x) { return torch::silu(x); }, {normal({3}, true)},
                  {.decompositions = table});
  EXPECT_TRUE(gm->graph().find_calls("aten::silu").empty()) << gm->graph();
  EXPECT_FALSE(gm->graph().find_calls("aten::silu_backward").empty());
  const Tensor x = normal({3}), g = normal({3});
  const Values both = elements((*gm)(x, g));
  EXPECT_TRUE(torch::allclose(both[0].toTensor(), torch::silu(x)));
}

TEST(Joint, a_value_that_was_read_is_checked) {
  const Tensor x = torch::ones({3}, torch::kDouble), w = normal({3}, true), g = normal({3});
  auto gm = joint([](const Tensor& x,
                     const Tensor& w) { return x.sum().item<double>() > 0 ? w.sin() : w.cos(); },
                  {x, w});
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal(elements((*gm)(x, w, g))[0].toTensor(), w.sin()));
  EXPECT_THAT(error_of([&] { (*gm)(-x, w, g); }), HasSubstr("read a value"));
}

TEST(Joint, refusals_say_what_to_do) {
  const Tensor x = normal({3}), w = normal({3}, true);
  EXPECT_THAT(error_of([&] { joint([](const Tensor& x) { return x * 2; }, {x}); }),
              HasSubstr("nothing in the result requires grad"));
  EXPECT_THAT(error_of([&] { joint([&](const Tensor& x) { return x * w; }, {x}); }),
              HasSubstr("neither input nor parameter"));
  EXPECT_THAT(error_of([&] {
                joint([](const Tensor& x, const Tensor& w) { return w.index({x > 0}); }, {x, w});
              }),
              HasSubstr("depend on values"));
  EXPECT_THAT(error_of([&] {
                joint(
                    [](const Tensor& x, const Tensor& w) {
                      x.copy_(w * 2);
                      return w * 3;
                    },
                    {x.clone(), w});
              }),
              HasSubstr("whose gradient would be lost"));
  EXPECT_THAT(error_of([&] { joint([](Tensor w) { return w.mul_(2); }, {w}); }),
              HasSubstr("leaf Variable"));
  EXPECT_THAT(error_of([&] { joint_signature(*make_fx([](const Tensor& x) { return x; }, {x})); }),
              HasSubstr("no joint graph"));
}

}  // namespace
}  // namespace fx::test
