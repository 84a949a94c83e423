// capture_with_guards: a program that picks the graph whose assumptions hold, or makes one.
#include "fx/capture/captured.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;
using OnBreak = CapturedOptions::OnBreak;
using AtLimit = CapturedOptions::AtLimit;

TEST(Captured, picks_the_graph_that_holds_or_makes_one) {
  int runs = 0;
  auto program = [&runs](Tensor x) {
    ++runs;
    return x.size(0) > 2 ? x * 2 : x + x.size(0);
  };
  Captured captured = capture_with_guards(program);
  EXPECT_EQ(captured.graphs().size(), 0u);
  for (int round = 0; round < 3; ++round)
    for (const Tensor& x : {torch::randn({2}), torch::randn({3}), torch::randn({2}, at::kDouble)})
      EXPECT_TRUE(torch::equal(captured(x).toTensor(), x.size(0) > 2 ? x * 2 : x + 2));
  EXPECT_EQ(captured.graphs().size(), 3u);
  EXPECT_EQ(runs, 3);
}

TEST(Captured, values_that_the_program_read) {
  auto program = [](Tensor x) { return x.sum().item<float>() > 0 ? x * 2 : -x; };
  Captured captured = capture_with_guards(program);
  const Tensor up = torch::ones({2}), down = -up;
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(torch::equal(captured(up).toTensor(), up * 2));
    EXPECT_TRUE(torch::equal(captured(down).toTensor(), up));
  }
  EXPECT_EQ(captured.graphs().size(), 2u);
}

TEST(Captured, what_a_graph_wrote_before_a_check_broke_is_undone) {
  auto net = std::make_shared<torch::nn::BatchNorm1dImpl>(2);
  auto program = [net](Tensor x) {
    x.add_(1);
    const Tensor y = net->forward(x) + torch::rand({2});
    return x.sum().item<float>() > 0 ? y * 2 : -y;
  };
  struct Holder : torch::nn::Module {
    explicit Holder(std::shared_ptr<torch::nn::Module> part) { register_module("part", part); }
    std::function<Tensor(Tensor)> run;
    Tensor forward(Tensor x) { return run(x); }
  };
  auto root = std::make_shared<Holder>(net);
  root->run = program;
  Captured captured = capture_with_guards(root);
  for (const float value : {1.f, -4.f, 1.f, -4.f, 1.f}) {
    const Tensor input = torch::full({3, 2}, value) + torch::arange(6.).view({3, 2}) / 8;
    const Tensor mean = net->running_mean.clone(), batches = net->num_batches_tracked.clone();
    const Tensor variance = net->running_var.clone();
    torch::manual_seed(5);
    const Tensor x = input.clone(), expected = program(x);
    const Tensor expected_mean = net->running_mean.clone();
    net->running_mean.copy_(mean);
    net->running_var.copy_(variance);
    net->num_batches_tracked.copy_(batches);
    torch::manual_seed(5);
    const Tensor y = input.clone();
    EXPECT_TRUE(torch::equal(captured(y).toTensor(), expected)) << value;
    EXPECT_TRUE(torch::equal(y, x)) << "written once";
    EXPECT_TRUE(torch::equal(net->running_mean, expected_mean));
    EXPECT_EQ(net->num_batches_tracked.item<int>(), batches.item<int>() + 1);
  }
  EXPECT_EQ(captured.graphs().size(), 2u);
}

TEST(Captured, modes_gradients_and_state_of_the_module) {
  torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Dropout(0.5));
  Captured captured = capture_with_guards(net);
  const Tensor x = torch::randn({3, 4});
  auto expect_eager = [&](std::size_t graphs) {
    const Tensor in = x.to(net->parameters()[0].scalar_type());
    torch::manual_seed(1);
    const Tensor expected = net->forward(in);
    torch::manual_seed(1);
    const Tensor found = captured(in).toTensor();
    EXPECT_TRUE(torch::equal(found, expected));
    EXPECT_EQ(found.requires_grad(), expected.requires_grad());
    EXPECT_EQ(captured.graphs().size(), graphs);
  };
  expect_eager(1);
  net->eval();
  expect_eager(2);
  {
    const at::NoGradGuard no_grad;
    expect_eager(3);
  }
  net->children()[1]->train();
  expect_eager(4);
  net->train();
  expect_eager(4);
  net->to(at::kDouble);
  expect_eager(5);
  net->children()[0]->as<torch::nn::LinearImpl>()->weight.requires_grad_(false);
  expect_eager(6);
  const Tensor doubles = x.to(at::kDouble), columns = doubles.t().contiguous().t();
  EXPECT_TRUE(torch::equal(captured(columns).toTensor() * 0, captured(doubles).toTensor() * 0));
  EXPECT_EQ(captured.graphs().size(), 7u) << "another order in memory";
}

TEST(Captured, programs_that_ask_whether_gradients_are_wanted) {
  Captured captured =
      capture_with_guards([](Tensor x) { return x.requires_grad() ? x * 2 : x * 3; });
  for (const bool grad_mode : {true, false, true, false})
    for (const bool wanted : {true, false}) {
      const torch::AutoGradMode mode(grad_mode);
      const Tensor x = torch::ones({3}).requires_grad_(wanted);
      EXPECT_EQ(captured(x).toTensor().sum().item<float>(), wanted ? 6 : 9) << grad_mode;
    }
  EXPECT_EQ(captured.graphs().size(), 4u);
}

TEST(Captured, contiguous_inputs_and_others) {
  auto program = [](Tensor x) { return x.contiguous().add_(1); };
  Captured captured = capture_with_guards(program);
  const Tensor a = torch::zeros({2, 3}), b = torch::zeros({3, 2});
  captured(a);
  EXPECT_EQ(a.sum().item<float>(), 6) << "written through";
  captured(b.t());
  EXPECT_EQ(b.sum().item<float>(), 0) << "a copy was written";
}

TEST(Captured, gradients_as_eager) {
  torch::nn::Linear net(3, 2);
  auto program = [net](Tensor x) mutable {
    return net(x).sum().item<float>() > 1e9 ? x : net(x).tanh();
  };
  Captured captured = capture_with_guards(program, {.capture = {.guard_values = false}});
  const Tensor x = torch::randn({4, 3}).requires_grad_();
  const Tensor expected = torch::autograd::grad({program(x).sum()}, {x})[0];
  EXPECT_TRUE(
      torch::equal(torch::autograd::grad({captured(x).toTensor().sum()}, {x})[0], expected));
}

TEST(Captured, throws_by_option_and_at_its_limit) {
  auto program = [](Tensor x) { return x * x.size(0); };
  Captured once = capture_with_guards(program, {.on_break = OnBreak::kThrow});
  once(torch::ones({2}));
  EXPECT_FX_ERROR(once(torch::ones({3})), RunError, kAssertionFailed,
                  "no graph of this program holds for the call: input 'x': dimension 0 must be 2");
  EXPECT_FX_ERROR(once(torch::ones({2}, at::kLong)), RunError, kAssertionFailed, "dtype differs");
  {
    const at::NoGradGuard no_grad;
    EXPECT_FX_ERROR(once(torch::ones({2})), RunError, kAssertionFailed,
                    "gradients were on, and are off");
  }
  Captured of_value = capture_with_guards(
      [](Tensor x) { return x.sum().item<float>() > 0 ? x : -x; }, {.on_break = OnBreak::kThrow});
  of_value(torch::ones({2}));
  EXPECT_FX_ERROR(of_value(torch::zeros({2})), RunError, kAssertionFailed,
                  "aten::item gave 2.0 when it was captured, and now 0.0");
  EXPECT_FX_ERROR(of_value(torch::zeros({2})), RunError, kAssertionFailed,
                  "; read at " __FILE__ ":");
  Captured limited = capture_with_guards(program, {.limit = 2});
  for (int n = 1; n < 3; ++n) limited(torch::ones({n}));
  EXPECT_FX_ERROR(limited(torch::ones({3})), RunError, kAssertionFailed,
                  "there are 2 graphs, as many as CapturedOptions::limit");
  EXPECT_EQ(limited(torch::ones({2})).toTensor().sum().item<float>(), 4);
  Captured falls_back =
      capture_with_guards(program, {.limit = 2, .at_limit = AtLimit::kRunProgram});
  for (int n = 1; n < 9; ++n)
    EXPECT_EQ(falls_back(torch::ones({n})).toTensor().sum().item<float>(), n * n);
  EXPECT_EQ(falls_back.graphs().size(), 2u);
}

TEST(Captured, dynamic_sizes_by_mark_and_by_themselves) {
  auto program = [](Tensor x, Tensor y) { return (x.view({x.size(0) * 2}) + 1).sum() + y; };
  Captured marked = capture_with_guards(
      program, {.capture = {.dynamic = {{"x", {{0, "n"}}}, {"y", {{0, "n"}}}}}});
  Captured automatic = capture_with_guards(program, {.automatic_dynamic = true});
  for (const std::int64_t n : {3, 4, 7, 12, 30}) {
    const Tensor x = torch::randn({n, 2}), y = torch::randn({n});
    const Tensor expected = program(x, y);
    EXPECT_TRUE(torch::equal(marked(x, y).toTensor(), expected));
    EXPECT_TRUE(torch::equal(automatic(x, y).toTensor(), expected));
  }
  EXPECT_EQ(marked.graphs().size(), 1u);
  EXPECT_EQ(automatic.graphs().size(), 2u) << "the first, and one for all sizes";
}

TEST(Captured, exceptions_of_the_program_leave_no_graph) {
  Captured captured = capture_with_guards([](Tensor x) {
    if (x.size(0) == 1) throw std::runtime_error("not 1");
    return x + 1;
  });
  EXPECT_THROW(captured(torch::ones({1})), std::runtime_error);
  EXPECT_EQ(captured.graphs().size(), 0u);
  EXPECT_EQ(captured(torch::ones({2})).toTensor().sum().item<float>(), 4);
}

TEST(Captured, many_threads_share_the_graphs) {
  torch::nn::Linear net(4, 4);
  net->eval();
  Captured captured = capture_with_guards(net);
  std::atomic<int> same{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const at::NoGradGuard no_grad;
      for (int i = 0; i < 20; ++i) {
        const Tensor x = torch::full({1 + (t + i) % 3, 4}, static_cast<float>(t));
        same += torch::equal(captured(x).toTensor(), net->forward(x));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 80);
  EXPECT_EQ(captured.graphs().size(), 3u) << "each was captured once";
}

}  // namespace
}  // namespace fx
