// Captures of all kinds in many threads, beside ordinary eager work, training and compiling: none
// disturbs another. Run under the thread sanitizer too (CONTRIBUTING.md).
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fx/capture/captured.h"
#include "fx/capture/nn.h"
#include "fx/compile/compile.h"
#include "fx/compile/training.h"
#include "fx/passes/functionalize.h"
#include "fx/passes/min_cut_partition.h"

namespace fx {
namespace {

using at::Tensor;

struct Small : torch::nn::Module {
  Tensor forward(Tensor x) { return norm(second(torch::relu(first(x)))); }
  nn::Linear first = register_module("first", nn::Linear(4, 6));
  nn::Linear second = register_module("second", nn::Linear(6, 4));
  nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(4));
};

// One kind of work on objects of its own and on `shared`, which is not written to; whether it gave
// what eager gives.
using Work = std::function<bool(const std::shared_ptr<Small>& shared, int round)>;

Tensor input(int round) { return torch::arange(8.).view({2, 4}) / (round + 2); }

const std::vector<std::pair<const char*, Work>>& all_work() {
  static const std::vector<std::pair<const char*, Work>> kWork = {
      {"make_fx",
       [](const std::shared_ptr<Small>& shared, int round) {
         const Tensor x = input(round);
         return torch::equal((*make_fx(shared, {x}))(x).toTensor(), shared->forward(x));
       }},
      {"make_fx of a program that throws",
       [](const std::shared_ptr<Small>& shared, int round) {
         try {
           make_fx([&](Tensor x) { return shared->forward(x).view({7}); }, {input(round)});
         } catch (const std::exception&) {
           const Tensor x = input(round);
           return torch::equal(x + x, x * 2);
         }
         return false;
       }},
      {"make_fx with dynamic sizes",
       [](const std::shared_ptr<Small>&, int round) {
         const auto program = [](Tensor x) { return x.view({-1}) * x.size(0); };
         auto gm = make_fx(program, {input(round)}, {.dynamic = {{"x", {{0, "n"}}}}});
         const Tensor x = torch::cat({input(round), input(round)});
         return torch::equal((*gm)(x).toTensor(), program(x));
       }},
      {"capture_with_guards",
       [](const std::shared_ptr<Small>& shared, int round) {
         Captured captured = capture_with_guards(
             [shared](Tensor x) { return x.sum().item<float>() > 0 ? shared->forward(x) : x * 2; });
         const Tensor x = input(round);
         return torch::equal(captured(x).toTensor(), shared->forward(x)) &&
                torch::equal(captured(-x).toTensor(), x * -2);
       }},
      {"functionalize",
       [](const std::shared_ptr<Small>&, int round) {
         const auto program = [](Tensor x) {
           x.select(0, 0).add_(1);
           return x.t().mul_(2).sum(0);
         };
         const Tensor x = input(round);
         auto gm = make_fx(program, {x.clone()});
         functionalize(*gm, {x.clone()});
         const Tensor a = x.clone(), b = x.clone();
         return torch::equal((*gm)(a).toTensor(), program(b)) && torch::equal(a, b);
       }},
      {"joint and partition",
       [](const std::shared_ptr<Small>&, int round) {
         const torch::AutoGradMode gradients(true);
         const Tensor x = input(round).requires_grad_();
         auto gm = joint([](Tensor x) { return (x.sin() * x).sum(); }, {x});
         const TrainingFunction step(min_cut_rematerialization_partition(*gm));
         const Tensor found = torch::autograd::grad({step.forward({x}).toTensor()}, {x})[0];
         return torch::allclose(found, (x.cos() * x + x.sin()).detach());
       }},
      {"aot_function",
       [](const std::shared_ptr<Small>&, int round) {
         const torch::AutoGradMode gradients(true);
         torch::nn::Linear net(4, 3);
         const AotFunction trained = aot_function(net, {.compile = std::nullopt});
         const Tensor x = input(round);
         const Tensor found =
             torch::autograd::grad({trained(x).toTensor().sum()}, {net->weight})[0];
         return torch::allclose(found, x.sum(0).expand({3, 4}));
       }},
      {"compile",
       [](const std::shared_ptr<Small>& shared, int round) {
         const Tensor x = input(round);
         auto gm = make_fx(shared, {x});
         return torch::allclose(compile(gm)(x).toTensor(), shared->forward(x), 1e-4, 1e-5);
       }},
      {"eager training",
       [](const std::shared_ptr<Small>&, int round) {
         const torch::AutoGradMode gradients(true);
         torch::nn::Linear net(4, 1);
         torch::optim::SGD optimiser(net->parameters(), 0.01);
         const Tensor x = input(round);
         const Tensor before = net(x).square().mean();
         optimiser.zero_grad();
         before.backward();
         optimiser.step();
         return net(x).square().mean().item<float>() <= before.item<float>();
       }},
      {"eager inference",
       [](const std::shared_ptr<Small>& shared, int round) {
         const Tensor x = input(round);
         return torch::equal(shared->forward(x), shared->forward(x.clone()));
       }},
  };
  return kWork;
}

TEST(Concurrency, captures_of_all_kinds_beside_each_other_and_eager_work) {
  constexpr std::size_t kThreads = 4;
  constexpr int kRounds = 6;
  auto shared = std::make_shared<Small>();
  shared->eval();
  const auto& work = all_work();
  std::vector<std::atomic<int>> right(work.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const torch::NoGradGuard no_grad;
      for (int round = 0; round < kRounds; ++round)
        for (std::size_t i = 0; i < work.size(); ++i) {
          const std::size_t kind = (i + 3 * t) % work.size();
          try {
            right[kind] += work[kind].second(shared, round);
          } catch (const std::exception& error) {
            ADD_FAILURE() << work[kind].first << ": " << error.what();
          }
        }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < work.size(); ++i)
    EXPECT_EQ(right[i], static_cast<int>(kThreads) * kRounds) << work[i].first;
}

// One program object, called by all.
TEST(Concurrency, one_captured_program_in_many_threads) {
  Captured captured = capture_with_guards(
      [](Tensor x) { return x.sum().item<float>() > 0 ? x.masked_select(x > 1) : x * 2; });
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const torch::NoGradGuard no_grad;
      for (int round = 0; round < 10; ++round) {
        const Tensor x = torch::arange(6.) - (t + round) % 5;
        const Tensor expected = x.sum().item<float>() > 0 ? x.masked_select(x > 1) : x * 2;
        right += torch::equal(captured(x).toTensor(), expected);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
}

}  // namespace
}  // namespace fx
