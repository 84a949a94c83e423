#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/roofline.h"
#include "fx/compile/compile.h"

// Times compiled code against eager, case by case, in milliseconds: one line of JSON each. The
// cases of benchmarks/peer_kernels.py are the same; benchmarks/kernels.py runs both by turns.
namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

double milliseconds(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The best of as many runs as fit into the time.
double best(const std::function<void()>& body, double budget_ms) {
  double fastest = milliseconds(body);
  for (double spent = fastest; spent < budget_ms;) {
    const double run = milliseconds(body);
    spent += run;
    fastest = std::min(fastest, run);
  }
  return fastest;
}

struct Case {
  std::string name;
  Tensors inputs;
  std::function<at::Tensor(const Tensors&)> program;
};

at::Tensor rotate_half(const at::Tensor& x) {
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  return torch::cat({-halves[1], halves[0]}, -1);
}

std::vector<Case> cases() {
  const auto r = [](std::vector<std::int64_t> sizes) { return torch::randn(sizes); };
  std::vector<Case> all;
  const auto add = [&](std::string name, Tensors inputs,
                       std::function<at::Tensor(const Tensors&)> program) {
    all.push_back({std::move(name), std::move(inputs), std::move(program)});
  };
  const at::Tensor big = r({4096, 1024});
  const at::Tensor row = r({1024});
  const at::Tensor row2 = r({1024});
  add("pointwise", {big, r({4096, 1024})}, [](const Tensors& t) {
    at::Tensor x = torch::exp(t[0] * 0.5);
    x = torch::tanh(x + t[1]);
    x = torch::gelu(x) * t[0];
    x = torch::sigmoid(x + 1.0);
    return x * t[1] + t[0];
  });
  add("softmax_layer_norm", {r({8192, 1024}), row, row2}, [](const Tensors& t) {
    return torch::layer_norm(torch::softmax(t[0], -1), {1024}, t[1], t[2]);
  });
  add("rms_norm", {big, row}, [](const Tensors& t) {
    return t[0] * torch::rsqrt(t[0].pow(2).mean(-1, true) + 1e-6) * t[1];
  });
  add("swiglu", {big, r({4096, 1024})}, [](const Tensors& t) { return torch::silu(t[0]) * t[1]; });
  add("bias_gelu", {big, row}, [](const Tensors& t) { return torch::gelu(t[0] + t[1]); });
  add("residual_layer_norm", {big, r({4096, 1024}), row, row2},
      [](const Tensors& t) { return torch::layer_norm(t[0] + t[1], {1024}, t[2], t[3]); });
  add("masked_softmax", {big, torch::rand({4096, 1024}) > 0.3}, [](const Tensors& t) {
    return torch::softmax(t[0].masked_fill(t[1].logical_not(), -1e9), -1);
  });
  add("log_softmax", {big}, [](const Tensors& t) { return torch::log_softmax(t[0], -1); });
  add("l2_normalise", {big},
      [](const Tensors& t) { return t[0] / t[0].pow(2).sum(-1, true).sqrt().clamp_min(1e-12); });
  add("standardise", {big}, [](const Tensors& t) {
    const at::Tensor mean = t[0].mean(-1, true);
    const at::Tensor centred = t[0] - mean;
    return centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt();
  });
  add("rope", {r({8, 16, 512, 64}), r({512, 64}), r({512, 64})},
      [](const Tensors& t) { return t[0] * t[1] + rotate_half(t[0]) * t[2]; });
  add("embedding_norm", {r({30000, 512}), torch::randint(30000, {16, 256}), r({256, 512})},
      [](const Tensors& t) {
        return torch::layer_norm(torch::embedding(t[0], t[1]) + t[2], {512});
      });
  add("embedding_sum", {r({30000, 256}), torch::randint(30000, {512, 40})},
      [](const Tensors& t) { return torch::relu(torch::embedding(t[0], t[1]).sum(1)); });
  add("glu_norm", {r({4096, 2048})},
      [](const Tensors& t) { return torch::layer_norm(torch::glu(t[0], -1), {1024}); });
  add("group_norm_silu", {r({16, 64, 32, 32}), r({64}), r({64})},
      [](const Tensors& t) { return torch::silu(torch::group_norm(t[0], 32, t[1], t[2])); });
  add("causal_softmax", {r({32, 512, 512})}, [](const Tensors& t) {
    const at::Tensor mask = torch::ones_like(t[0]).tril();
    return torch::softmax(t[0] * 0.125 + (1 - mask) * -1e9, -1);
  });
  add("huber", {big, r({4096, 1024})}, [](const Tensors& t) {
    const at::Tensor d = (t[0] - t[1]).abs();
    return torch::where(d < 1.0, 0.5 * d * d, d - 0.5).mean(-1);
  });
  add("focal", {big, torch::rand({4096, 1024})}, [](const Tensors& t) {
    const at::Tensor p = torch::sigmoid(t[0]);
    const at::Tensor pt = p * t[1] + (1 - p) * (1 - t[1]);
    return -((1 - pt).pow(2) * torch::log(pt + 1e-6)).mean(-1);
  });
  add("batch_norm_silu", {r({32, 64, 56, 56}), r({64}), r({64}), r({64}), torch::rand({64}) + 0.5},
      [](const Tensors& t) {
        return torch::silu(
            torch::batch_norm(t[0], t[1], t[2], t[3], t[4], false, 0.1, 1e-5, false));
      });
  add("column_softmax", {r({1024, 4096})},
      [](const Tensors& t) { return torch::softmax(t[0] * 2, 0); });
  add("bf16_gelu_add", {big.to(torch::kBFloat16), r({4096, 1024}).to(torch::kBFloat16)},
      [](const Tensors& t) { return torch::gelu(t[0]) + t[1] * t[0]; });
  add("mish_hardswish", {big}, [](const Tensors& t) {
    return torch::mish(t[0]) + torch::hardtanh(t[0] + 3, 0, 6) * t[0] / 6;
  });
  add("box_iou", {torch::rand({200000, 4}), torch::rand({200000, 4})}, [](const Tensors& t) {
    const auto a = t[0].unbind(1);
    const auto b = t[1].unbind(1);
    const at::Tensor w = (torch::minimum(a[2], b[2]) - torch::maximum(a[0], b[0])).clamp_min(0);
    const at::Tensor h = (torch::minimum(a[3], b[3]) - torch::maximum(a[1], b[1])).clamp_min(0);
    const at::Tensor both = w * h;
    const at::Tensor area_a = (a[2] - a[0]) * (a[3] - a[1]);
    const at::Tensor area_b = (b[2] - b[0]) * (b[3] - b[1]);
    return both / (area_a + area_b - both + 1e-6);
  });
  add("lstm_cell_32",
      {r({1, 64}), r({1, 64}), r({32, 1, 64}), r({256, 64}), r({256, 64}), r({256})},
      [](const Tensors& t) {
        at::Tensor h = t[0];
        at::Tensor c = t[1];
        for (std::int64_t i = 0; i < 32; ++i) {
          const at::Tensor gates = torch::linear(t[2][i], t[3], t[5]) + torch::linear(h, t[4]);
          const auto g = gates.chunk(4, 1);
          c = torch::sigmoid(g[1]) * c + torch::sigmoid(g[0]) * torch::tanh(g[2]);
          h = torch::sigmoid(g[3]) * torch::tanh(c);
        }
        return h;
      });
  add("chain_1000", {r({4})}, [](const Tensors& t) {
    at::Tensor x = t[0];
    for (int i = 0; i < 1000; ++i) x = x + 1.0;
    return x;
  });
  return all;
}

fx::Compiled compiled(const Case& test) {
  const auto& program = test.program;
  switch (test.inputs.size()) {
    case 1:
      return fx::compile([program](at::Tensor a) { return program({a}); });
    case 2:
      return fx::compile([program](at::Tensor a, at::Tensor b) { return program({a, b}); });
    case 3:
      return fx::compile(
          [program](at::Tensor a, at::Tensor b, at::Tensor c) { return program({a, b, c}); });
    case 4:
      return fx::compile([program](at::Tensor a, at::Tensor b, at::Tensor c, at::Tensor d) {
        return program({a, b, c, d});
      });
    case 5:
      return fx::compile([program](at::Tensor a, at::Tensor b, at::Tensor c, at::Tensor d,
                                   at::Tensor e) { return program({a, b, c, d, e}); });
    default:
      return fx::compile([program](at::Tensor a, at::Tensor b, at::Tensor c, at::Tensor d,
                                   at::Tensor e,
                                   at::Tensor f) { return program({a, b, c, d, e, f}); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double budget = argc > 1 ? std::atof(argv[1]) : 300;
  const std::string only = argc > 2 ? argv[2] : "";
  at::set_num_threads(2);
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  // LLVM starts once in a process.
  fx::compile([](at::Tensor x) { return torch::exp(x) + 1; })(torch::ones({4}));
  // What the machine moves from memory to memory, bytes read and written in a millisecond.
  const at::Tensor from = torch::rand({1 << 24});
  const at::Tensor to = torch::empty_like(from);
  const double copied = 2.0 * static_cast<double>(from.nbytes());
  const double speed = copied / best([&] { to.copy_(from); }, budget);
  const fx::bench::VectorRates rates = fx::bench::measure_vector_rates();
  for (const Case& test : cases()) {
    if (!only.empty() && only != test.name) continue;
    const fx::Values inputs(test.inputs.begin(), test.inputs.end());
    const fx::Compiled fast = compiled(test);
    at::Tensor found;
    const double eager_once = milliseconds([&] { test.program(test.inputs); });
    const double first = milliseconds([&] { found = fast(inputs).toTensor(); });
    const at::Tensor wanted = test.program(test.inputs);
    const double error =
        (found.to(torch::kDouble) - wanted.to(torch::kDouble)).abs().max().item<double>();
    const double eager = best([&] { test.program(test.inputs); }, budget);
    const double ours = best([&] { fast(inputs); }, budget);
    double bytes = static_cast<double>(wanted.nbytes());
    std::int64_t elements = wanted.numel();
    for (const at::Tensor& input : test.inputs) {
      bytes += static_cast<double>(input.nbytes());
      elements = std::max(elements, input.numel());
    }
    // Of what is one kernel that goes over all elements.
    const bool one = fast.num_kernel_codes() == 1 && elements >= 1 << 18;
    const double compute = one ? rates.milliseconds(fx::bench::vector_work(fast.stage("llvm")),
                                                    static_cast<double>(elements))
                               : 0;
    double compile = 0;
    for (const fx::CompileStep& step : fast.steps())
      if (step.name != "example run") compile += step.milliseconds;
    std::printf(
        "{\"case\": \"%s\", \"copy_ms\": %.5f, \"compute_ms\": %.5f, \"compile_ms\": %.2f, "
        "\"eager_ms\": %.5f, "
        "\"fx_ms\": %.5f, \"first_ms\": %.2f, "
        "\"eager_once_ms\": %.2f, \"codes\": %d, \"error\": %.3g}\n",
        test.name.c_str(), bytes / speed, compute, compile, eager, ours, first, eager_once,
        static_cast<int>(fast.num_kernel_codes()), error);
    std::fflush(stdout);
  }
}
