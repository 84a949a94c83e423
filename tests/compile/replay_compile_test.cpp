// The mode "reduce-overhead": calls that reuse their memory give what calls of the mode "default"
// give, bit by bit, for ever.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/torch.h>

#include <atomic>
#include <iostream>
#include <thread>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/compile/compile.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/stop.h"
#include "tests/random/call_sequence.h"

namespace fx {
namespace {

using fuzz::Agreement;

struct MlpImpl : torch::nn::Module {
  MlpImpl() {
    first = register_module("first", fx::nn::Linear(16, 32));
    second = register_module("second", fx::nn::Linear(32, 8));
  }
  at::Tensor forward(at::Tensor x) {
    x = torch::gelu(first(x)) * 0.5;
    return torch::softmax(second(x) + 1, -1);
  }
  fx::nn::Linear first{nullptr};
  fx::nn::Linear second{nullptr};
};
TORCH_MODULE(Mlp);

std::uint64_t replays_of(const Compiled& compiled) {
  const std::string text = compiled.explain();
  const auto at = text.find("replay: ");
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + 8));
}

TEST(ReduceOverhead, kernels_and_operators_share_an_arena) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  const auto program = [](at::Tensor x, at::Tensor w) {
    at::Tensor a = torch::tanh(x * 2 + 1);
    at::Tensor b = torch::mm(a, w);
    at::Tensor c = torch::exp(b - 1) * b;
    return torch::mm(c, w).sigmoid() + c;
  };
  const Compiled plain = compile(program);
  const Compiled fast = compile(program, {.mode = "reduce-overhead"});
  std::vector<at::Tensor> kept;
  std::vector<at::Tensor> wanted;
  const at::Tensor w = torch::randn({12, 12}) / 4;
  for (int call = 0; call < 6; ++call) {
    const at::Tensor x = torch::randn({7, 12});
    wanted.push_back(plain(x, w).toTensor());
    kept.push_back(fast(x, w).toTensor());
    // The first call of either may run operators, which round in another way.
    for (std::size_t i = 1; i < kept.size(); ++i)
      ASSERT_TRUE(torch::equal(kept[i], wanted[i])) << i << " after " << call;
  }
  EXPECT_TRUE(torch::allclose(kept[0], wanted[0], 1e-5, 1e-6));
  EXPECT_EQ(replays_of(fast), 5u) << fast.explain();
  EXPECT_NE(fast.stage("plan").find("kernel -> f32[7, 12] at "), std::string::npos)
      << fast.stage("plan");
  EXPECT_NE(fast.stage("plan").find("aten::mm.out -> f32[7, 12] at "), std::string::npos);
}

TEST(ReduceOverhead, modules_on_every_backend) {
  torch::NoGradGuard no_grad;
  Mlp net;
  for (const char* backend : {"plan", "llvm"}) {
    const Compiled fast =
        compile(symbolic_trace(net), {.backend = backend, .mode = "reduce-overhead"});
    for (int call = 0; call < 5; ++call) {
      const at::Tensor x = torch::randn({3, 16});
      EXPECT_TRUE(torch::allclose(fast(x).toTensor(), net->forward(x), 1e-5, 1e-6));
    }
    EXPECT_EQ(replays_of(fast), 4u) << backend << fast.explain();
  }
}

TEST(ReduceOverhead, parameters_with_gradients_run_the_plan) {
  Mlp net;
  const Compiled fast = compile(symbolic_trace(net), {.mode = "reduce-overhead"});
  const at::Tensor x = torch::randn({3, 16});
  for (int call = 0; call < 3; ++call) {
    net->zero_grad();
    fast(x).toTensor().pow(2).sum().backward();
    const at::Tensor found = net->first->weight.grad().clone();
    net->zero_grad();
    net->forward(x).pow(2).sum().backward();
    EXPECT_TRUE(torch::allclose(found, net->first->weight.grad(), 1e-5, 1e-6));
  }
  EXPECT_EQ(replays_of(fast), 0u);
}

TEST(ReduceOverhead, eight_threads_with_different_sizes_from_the_first_call_on) {
  constexpr int kThreads = 8;
  torch::manual_seed(0);
  Mlp net;
  const auto graph = symbolic_trace(net);
  for (int round = 0; round < 3; ++round) {
    const Compiled fast = compile(graph, {.mode = "reduce-overhead"});
    std::atomic<int> ready{0};
    std::vector<std::string> errors(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        torch::NoGradGuard no_grad;
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        std::vector<at::Tensor> kept;
        std::vector<at::Tensor> wanted;
        try {
          for (int call = 0; call < 300; ++call) {
            const at::Tensor x = torch::full({1 + (t + call) % 4, 16}, 0.01 * (t * 100 + call));
            kept.push_back(fast(x).toTensor());
            wanted.push_back(net->forward(x));
          }
          for (std::size_t i = 0; i < kept.size(); ++i)
            if (!torch::allclose(kept[i], wanted[i], 1e-5, 1e-6))
              throw std::runtime_error("another result in call " + std::to_string(i));
        } catch (const std::exception& error) {
          errors[static_cast<std::size_t>(t)] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    EXPECT_GT(replays_of(fast), 200u);  // but for those that run while another one records
  }
}

TEST(ReduceOverhead, a_stop_before_the_first_call_and_between_calls) {
  torch::NoGradGuard no_grad;
  Mlp net;
  const at::Tensor x = torch::randn({3, 16});
  for (const char* backend : {"eager", "interpret", "plan", "llvm"})
    for (const char* mode : {"default", "reduce-overhead"}) {
      const Compiled fast = compile(symbolic_trace(net), {.backend = backend, .mode = mode});
      std::stop_source source;
      source.request_stop();
      for (int call = 0; call < 3; ++call) {
        {
          const StopScope scope(source.get_token());
          try {
            fast(x);
            ADD_FAILURE() << backend << " was not stopped";
          } catch (const RunError& error) {
            EXPECT_EQ(error.code(), ErrorCode::kCancelled) << backend << error.what();
          }
        }
        EXPECT_TRUE(torch::allclose(fast(x).toTensor(), net->forward(x), 1e-5, 1e-6)) << backend;
      }
      EXPECT_EQ(fast.num_compilations(), 1u);
    }
}

TEST(ReduceOverhead, kernels_are_left_out_where_operators_would_do_something_else) {
  torch::NoGradGuard no_grad;
  const auto program = [](at::Tensor x) { return torch::mse_loss(x * 2 + 1, x.exp()) * 3; };
  for (const char* mode : {"default", "reduce-overhead"}) {
    const Compiled fast =
        compile(symbolic_trace([&](Proxy x) { return program(static_cast<at::Tensor>(x)); }),
                {.mode = mode});
    const at::Tensor x = torch::randn({3, 8}).to(torch::kBFloat16);
    for (int call = 0; call < 3; ++call) fast(x);
    EXPECT_EQ(fast.num_kernel_codes(), 1u);
    at::autocast::set_autocast_enabled(at::kCPU, true);  // losses are computed in float32 then
    const at::Tensor wanted = program(x);
    const at::Tensor found = fast(x).toTensor();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    EXPECT_EQ(wanted.scalar_type(), torch::kFloat);
    EXPECT_EQ(found.scalar_type(), torch::kFloat) << mode;
    EXPECT_EQ(fast(x).toTensor().scalar_type(), torch::kBFloat16) << mode;

    const std::uint64_t level = torch::autograd::ForwardADLevel::get_next_idx();
    {
      const at::Tensor in = torch::randn({3, 8});
      fast(in);
      const auto at_level = static_cast<std::int64_t>(level);
      const at::Tensor dual = at::_make_dual(in, torch::rand({3, 8}), at_level);
      const at::Tensor tangent = std::get<1>(at::_unpack_dual(program(dual), at_level));
      const at::Tensor mine = std::get<1>(at::_unpack_dual(fast(dual).toTensor(), at_level));
      ASSERT_TRUE(mine.defined()) << mode;
      EXPECT_TRUE(torch::allclose(mine, tangent)) << mode;
    }
    torch::autograd::ForwardADLevel::release_idx(level);
  }
}

TEST(ReduceOverhead, explain_tells_time_and_bytes_of_each_step) {
  torch::NoGradGuard no_grad;
  Mlp net;
  const Compiled fast = compile(symbolic_trace(net), {.mode = "reduce-overhead"});
  const std::string text = fast.explain(Values{torch::randn({3, 16})});
  EXPECT_NE(text.find("in kernel_0"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel_1 ", text.find("GB/s  of memory")), std::string::npos) << text;
  EXPECT_NE(text.find("memory copies at "), std::string::npos) << text;
  const Compiled slow = compile(symbolic_trace(net), {.backend = "interpret"});
  EXPECT_EQ(slow.explain(Values{torch::randn({3, 16})}),
            "no plan runs, so there are no times of steps\n");
}

// The modes on the same sequence of calls.
std::string check_modes(const fuzz::Program& program, std::uint64_t& replays) {
  const torch::NoGradGuard no_grad;
  const fuzz::Program mine = fuzz::copy_of(program);
  const fuzz::Program other = fuzz::copy_of(program);
  const Compiled fast = compile(*mine.module, {.mode = "reduce-overhead"});
  const Compiled plain = compile(*other.module);
  // In its first call either may run operators where later ones run kernels.
  std::string text = fuzz::compare_calls(
      program, {other, [&](const Values& inputs) { return plain.forward(inputs); }},
      {mine, [&](const Values& inputs) { return fast.forward(inputs); }},
      {.first_compared = 1, .leftovers = false});
  if (text.empty()) replays += replays_of(fast);
  return text;
}

// The same without kernels, against the Interpreter: also what is left in inputs and attributes.
std::string check_plan(const fuzz::Program& program, std::uint64_t& replays) {
  const torch::NoGradGuard no_grad;
  const fuzz::Program mine = fuzz::copy_of(program);
  const fuzz::Program other = fuzz::copy_of(program);
  const Compiled fast = compile(*mine.module, {.backend = "plan", .mode = "reduce-overhead"});
  std::string text = fuzz::compare_calls(
      program,
      {other, [&](const Values& inputs) { return Interpreter(*other.module).run(inputs); }},
      {mine, [&](const Values& inputs) { return fast.forward(inputs); }});
  if (text.empty()) replays += replays_of(fast);
  return text;
}

using RandomCheck = std::string (*)(const fuzz::Program&, std::uint64_t&);

void expect_all_hold(RandomCheck check, const fuzz::ProgramOptions& options, std::uint64_t share,
                     double replays_a_program) {
  std::uint64_t replays = 0;
  const std::uint64_t count = fuzz::expect_each(
      options, share, [&](const fuzz::Program& program) { return check(program, replays); });
  std::cout << count << " programs, " << replays << " replays\n";
  if (count >= 100) {
    EXPECT_GT(static_cast<double>(replays), replays_a_program * static_cast<double>(count));
  }
}

TEST(ReduceOverhead, random_programs_give_what_they_give_by_default) {
  fuzz::ProgramOptions options;
  options.operations = 30;
  options.writing_programs_percent = 10;
  expect_all_hold(check_modes, options, 300, 0.3);
}

TEST(ReduceOverhead, random_programs_as_plans_give_what_the_interpreter_gives) {
  fuzz::ProgramOptions options;
  options.module_percent = 20;
  expect_all_hold(check_plan, options, 300, 1.5);
}

}  // namespace
}  // namespace fx
