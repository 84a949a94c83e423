#include "fx/compile/training.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

#include "fx/base/error.h"
#include "tests/training/error_of.h"

namespace fx {
namespace {

namespace nn = torch::nn;
using at::Tensor;
using testing::HasSubstr;

struct NetImpl : nn::Module {
  Tensor forward(Tensor x) { return second(norm(torch::gelu(first(x)))); }
  nn::Linear first = register_module("first", nn::Linear(4, 16));
  nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(16));
  nn::Linear second = register_module("second", nn::Linear(16, 3));
};
TORCH_MODULE(Net);

// As GraphModules and by kernels.
const std::optional<CompileOptions> kWays[] = {std::nullopt, CompileOptions(),
                                               CompileOptions{.mode = "reduce-overhead"}};

// Trains two equal nets, one eager.
TEST(Training, optimisers_do_as_with_eager) {
  for (const auto& way : kWays) {
    torch::manual_seed(1);
    Net eager, net;
    eager->to(torch::kDouble);
    net->to(torch::kDouble);
    for (std::size_t i = 0; i < net->parameters().size(); ++i)
      net->parameters()[i].data().copy_(eager->parameters()[i].data());
    const AotFunction trained = aot_function(net, {.compile = way});
    torch::optim::Adam eager_adam(eager->parameters(), 0.01), adam(net->parameters(), 0.01);
    for (int step = 0; step < 10; ++step) {
      const Tensor x = torch::randn({8, 4}, torch::kDouble), y = torch::randint(3, {8});
      const Tensor expected = torch::cross_entropy_loss(eager(x), y);
      const Tensor found = torch::cross_entropy_loss(trained(x).toTensor(), y);
      EXPECT_TRUE(torch::allclose(found, expected, 1e-10, 1e-12)) << step;
      eager_adam.zero_grad();
      adam.zero_grad();
      expected.backward();
      found.backward();
      eager_adam.step();
      adam.step();
    }
    EXPECT_EQ(trained.num_captures(), 1u);
    for (std::size_t i = 0; i < net->parameters().size(); ++i)
      EXPECT_TRUE(torch::allclose(net->parameters()[i], eager->parameters()[i], 1e-9, 1e-11)) << i;
    for (std::size_t i = 0; i < net->buffers().size(); ++i)
      EXPECT_TRUE(torch::allclose(net->buffers()[i], eager->buffers()[i], 1e-9, 1e-11)) << i;
    EXPECT_EQ(net->norm->num_batches_tracked.item<int>(), 10);
  }
}

// The loss inside of the program.
TEST(Training, function_with_a_module) {
  Net net;
  auto loss = [net](const Tensor& x, const Tensor& y) mutable {
    return torch::cross_entropy_loss(net(x), y);
  };
  const AotFunction trained = aot_function(loss, {.joint = {.module = net.get()}});
  const Tensor x = torch::randn({6, 4}), y = torch::randint(3, {6});
  trained(x, y).toTensor().backward();
  std::vector<Tensor> found;
  for (Tensor& parameter : net->parameters()) {
    found.push_back(parameter.grad().clone());
    parameter.mutable_grad() = Tensor();
  }
  loss(x, y).backward();
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(torch::allclose(found[i], net->parameters()[i].grad(), 1e-4, 1e-6)) << i;
}

TEST(Training, dropout_draws_once) {
  for (const auto& way : kWays) {
    const AotFunction trained = aot_function(
        [](const Tensor& x) { return torch::dropout(x, 0.5, true) * 3; }, {.compile = way});
    const Tensor x = torch::ones({100}).requires_grad_();
    for (int round = 0; round < 3; ++round) {
      torch::manual_seed(round);
      const Tensor y = trained(x).toTensor();
      const Tensor after = torch::rand({1});
      const Tensor gradient = torch::autograd::grad({y.sum()}, {x})[0];
      EXPECT_TRUE(torch::equal(gradient, y.detach()));  // x is 1
      torch::manual_seed(round);
      EXPECT_TRUE(torch::equal(torch::dropout(x, 0.5, true) * 3, y));
      EXPECT_TRUE(torch::equal(torch::rand({1}), after));
    }
  }
}

// Eager draws in the order of memory, which the functional graphs keep.
TEST(Training, random_numbers_of_inputs_in_any_order_in_memory) {
  const std::vector<std::pair<const char*, std::function<Tensor(Tensor)>>> programs = {
      {"dropout", [](Tensor x) { return torch::dropout(x.sin(), 0.4, true) * 2; }},
      {"noise", [](Tensor x) { return x.exp() * torch::zeros_like(x).normal_(1, 2); }},
      {"rrelu", [](Tensor x) { return torch::rrelu(x, 0.1, 0.4, true); }},
      {"product in place",
       [](Tensor x) {
         Tensor y = torch::empty_like(x);
         {
           const torch::NoGradGuard no_grad;
           y.copy_(x).cumsum_(0);
         }
         return torch::dropout(y * x, 0.5, true);
       }},
  };
  const std::vector<Tensor> layouts = {
      torch::randn({4, 6}), torch::randn({6, 4}).t(), torch::randn({4, 12}).slice(1, 0, 12, 2),
      torch::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast),
      torch::randn({5, 4, 6}).permute({1, 2, 0})};
  for (const auto& way : kWays)
    for (const auto& [name, program] : programs) {
      const AotFunction trained = aot_function(
          [program = program](const Tensor& x) { return program(x); }, {.compile = way});
      for (std::size_t i = 0; i < layouts.size(); ++i) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(i));
        Tensor a = layouts[i].detach().requires_grad_(), b = layouts[i].detach().requires_grad_();
        torch::manual_seed(7);
        const Tensor expected = program(a), next = torch::rand({1});
        torch::manual_seed(7);
        const Tensor found = trained(b).toTensor();
        EXPECT_TRUE(torch::equal(torch::rand({1}), next));
        EXPECT_TRUE(torch::allclose(found, expected, 1e-5, 1e-6));
        const Tensor weight = torch::rand_like(expected);
        (expected * weight).sum().backward();
        (found * weight).sum().backward();
        EXPECT_TRUE(torch::allclose(b.grad(), a.grad(), 1e-5, 1e-6));
      }
    }
}

TEST(Training, results_of_all_kinds) {
  for (const auto& way : kWays) {
    const auto program = [](const Tensor& x, const Tensor& n) {
      const Tensor y = x.sin();
      n.add_(1);
      return std::vector<Tensor>{y, y.argmax(0), y, x, x.t(), n, x.detach().exp()};
    };
    const AotFunction trained = aot_function(program, {.compile = way});
    const Tensor x = torch::randn({3, 4}).requires_grad_(), n = torch::zeros({2});
    const Value result = trained(x, n);
    std::vector<Tensor> found;
    for (const Value& item : elements(result)) found.push_back(item.toTensor());
    EXPECT_EQ(n[0].item<float>(), 1);
    const Tensor other = torch::zeros({2});
    const std::vector<Tensor> expected = program(x, other);
    ASSERT_EQ(found.size(), expected.size());
    Tensor found_sum = torch::zeros({}), expected_sum = torch::zeros({});
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(torch::allclose(found[i], expected[i])) << i;
      EXPECT_EQ(found[i].requires_grad(), expected[i].requires_grad()) << i;
      if (!found[i].requires_grad()) continue;
      found_sum = found_sum + (found[i] * double(i + 1)).sum();
      expected_sum = expected_sum + (expected[i] * double(i + 1)).sum();
    }
    EXPECT_TRUE(found[5].is_alias_of(n));
    EXPECT_TRUE(found[4].is_alias_of(x));
    EXPECT_TRUE(torch::allclose(torch::autograd::grad({found_sum}, {x})[0],
                                torch::autograd::grad({expected_sum}, {x})[0]));
  }
}

// Tangents come with any strides; the graph holds for those of the capture.
TEST(Training, expanded_and_transposed_tangents) {
  for (const auto& way : kWays) {
    const auto program = [](const Tensor& x, const Tensor& w) {
      return torch::matmul(x, w).reshape({6, 5}).tanh();
    };
    const AotFunction trained = aot_function(program, {.compile = way});
    const Tensor x = torch::randn({2, 3, 4}).requires_grad_(),
                 w = torch::randn({4, 5}).requires_grad_();
    const auto gradients = [&](const Tensor& y, const Tensor& tangent) {
      return torch::autograd::grad({y}, {x, w}, {tangent});
    };
    for (const Tensor& tangent :
         {torch::ones({}).expand({6, 5}), torch::randn({5, 6}).t(), torch::randn({6, 5})}) {
      const auto found = gradients(trained(x, w).toTensor(), tangent);
      const auto expected = gradients(program(x, w), tangent);
      EXPECT_TRUE(torch::allclose(found[0], expected[0], 1e-4, 1e-5));
      EXPECT_TRUE(torch::allclose(found[1], expected[1], 1e-4, 1e-5));
    }
  }
}

TEST(Training, what_eager_allows_and_refuses) {
  Net net;
  const AotFunction trained = aot_function(net, {.compile = std::nullopt});
  const Tensor x = torch::randn({8, 4});
  {  // twice with retain_graph, not without
    const Tensor loss = trained(x).toTensor().sum();
    loss.backward({}, true);
    loss.backward();
    EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("second time"));
  }
  {  // parameters that change between forward and backward
    const Tensor loss = trained(x).toTensor().square().sum();
    {
      const torch::NoGradGuard no_grad;
      net->second->weight.mul_(2);
    }
    EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("modified by an inplace operation"));
  }
  {  // no gradients of gradients
    const Tensor loss = trained(x).toTensor().square().sum();
    EXPECT_THAT(error_of([&] {
                  torch::autograd::grad({loss}, {net->second->weight}, {}, true,
                                        /*create_graph=*/true);
                }),
                HasSubstr("create_graph"));
  }
  {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(trained(x).toTensor().requires_grad());
  }
}

TEST(Training, captures_again_for_what_is_new) {
  Net net;
  const AotFunction trained = aot_function(net, {.compile = std::nullopt});
  const auto check = [&](const Tensor& x, std::size_t captures) {
    const Tensor y = trained(x).toTensor();
    EXPECT_EQ(trained.num_captures(), captures);
    if (!net->is_training()) EXPECT_TRUE(torch::allclose(y, net(x), 1e-4, 1e-5));
    y.sum().backward();
  };
  check(torch::randn({8, 4}), 1);
  check(torch::randn({8, 4}), 1);
  check(torch::randn({6, 4}), 2);
  check(torch::randn({4, 8}).t(), 3);
  check(torch::randn({8, 4}).requires_grad_(), 4);
  net->eval();
  check(torch::randn({8, 4}), 5);
  net->first->weight.requires_grad_(false);
  check(torch::randn({8, 4}), 6);
  check(torch::randn({8, 4}), 6);
}

// Joint graphs hold for one size; an AotFunction makes one for each that it meets.
TEST(Training, sizes_that_change_are_captured_one_by_one) {
  const auto program = [](const Tensor& x) {
    return x.view({-1}).cumsum(0) / static_cast<double>(x.size(0));
  };
  const AotFunction trained = aot_function(program);
  for (const std::int64_t size : {3, 1, 5, 3}) {
    const Tensor x = torch::randn({size, 2}, torch::kDouble).requires_grad_();
    const Tensor expected = program(x), found = trained(x).toTensor();
    EXPECT_TRUE(torch::allclose(found, expected));
    EXPECT_TRUE(torch::allclose(torch::autograd::grad({found.sum()}, {x})[0],
                                torch::autograd::grad({expected.sum()}, {x})[0]));
  }
  EXPECT_EQ(trained.num_captures(), 3u);
  const Tensor three = torch::randn({3, 2}, torch::kDouble).requires_grad_();
  const TrainingFunction fixed = trained.function_for({three});
  EXPECT_THAT(error_of([&] { fixed.forward({torch::randn({4, 2}, torch::kDouble)}); }),
              HasSubstr("dimension 0 must be 3"));
}

TEST(Training, a_function_of_graphs_checks_its_inputs) {
  Net net;
  net->first->weight.requires_grad_(false);
  const TrainingFunction trained(default_partition(*joint(net, {torch::randn({8, 4})})));
  EXPECT_THAT(error_of([&] { trained(torch::randn({7, 4})); }), HasSubstr("FX311"));
  EXPECT_THAT(error_of([&] { trained(torch::randn({8, 4}).requires_grad_()); }),
              HasSubstr("would get no gradient"));
  net->first->weight.requires_grad_(true);
  EXPECT_THAT(error_of([&] { trained(torch::randn({8, 4})); }), HasSubstr("first.weight"));
  EXPECT_THAT(error_of([&] {
                TrainingFunction(default_partition(*joint(net, {torch::randn({8, 4})})),
                                 CompileOptions{.freeze = true});
              }),
              HasSubstr("freeze"));
}

// The graph has the casts of the autocast that it was captured under, and needs none to run.
TEST(Training, autocast_around_calls) {
  for (const auto& way : kWays) {
    nn::Linear linear(4, 4);
    const AotFunction trained = aot_function(linear, {.compile = way});
    const Tensor x = torch::randn({8, 4}).requires_grad_();
    const auto step = [&](bool casts, const std::function<Tensor()>& run) {
      at::autocast::set_autocast_enabled(at::kCPU, casts);
      const Tensor y = run();
      at::autocast::set_autocast_enabled(at::kCPU, false);
      at::autocast::clear_cache();
      return std::pair(y, torch::autograd::grad({y.to(at::kFloat).square().sum()},
                                                {x, linear->weight, linear->bias}));
    };
    for (const bool casts : {true, false, true}) {
      const auto [expected, expected_gradients] = step(casts, [&] { return linear(x); });
      const auto [found, gradients] = step(casts, [&] { return trained(x).toTensor(); });
      EXPECT_EQ(found.dtype(), casts ? at::kBFloat16 : at::kFloat);
      EXPECT_TRUE(torch::allclose(found, expected, 1e-2, 1e-2));
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        EXPECT_EQ(gradients[i].dtype(), at::kFloat);
        EXPECT_TRUE(torch::allclose(gradients[i], expected_gradients[i], 1e-2, 1e-2)) << i;
      }
    }
    EXPECT_EQ(trained.num_captures(), 2u);
  }
}

TEST(Training, many_threads_call_one_function) {
  Net net;
  net->eval();
  const AotFunction trained = aot_function(net);
  const Tensor x = torch::randn({8, 4});
  const Tensor expected = torch::autograd::grad({net(x).square().sum()}, net->parameters())[0];
  std::vector<std::thread> threads;
  std::vector<Tensor> found(4);
  for (std::size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round)
        found[i] =
            torch::autograd::grad({trained(x).toTensor().square().sum()}, net->parameters())[0];
    });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& gradient : found) EXPECT_TRUE(torch::allclose(gradient, expected, 1e-4, 1e-5));
}

}  // namespace
}  // namespace fx
