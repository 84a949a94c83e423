// What running a graph costs beyond the operators themselves: a chain of 1,000 calls on four
// floats, and small networks.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "benchmarks/bench.h"
#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/compile/compile.h"
#include "fx/graph/graph_module.h"
#include "fx/interpret/interpreter.h"
#include "fx/run/replay.h"

namespace fx::bench {
namespace {

constexpr std::size_t kLength = 1000;

enum class Op { kNeg, kAdd };

std::shared_ptr<GraphModule> chain(Op op) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node* a = &x;
  for (std::size_t i = 0; i < kLength; ++i)
    a = op == Op::kNeg ? &graph->call_function("aten::neg", {*a})
                       : &graph->call_function("aten::add.Tensor", {*a, x});
  graph->output(*a);
  return std::make_shared<GraphModule>(graph);
}

at::Tensor eager(Op op, const at::Tensor& x) {
  at::Tensor a = x;
  if (op == Op::kNeg)
    for (std::size_t i = 0; i < kLength; ++i) a = at::neg(a);
  else
    for (std::size_t i = 0; i < kLength; ++i) a = at::add(a, x);
  return a;
}

// The least that anything can do which calls operators by name: a stack that is reused.
at::Tensor boxed(Op op, const c10::OperatorHandle& handle, const at::Tensor& x) {
  torch::jit::Stack stack;
  c10::IValue a = x;
  for (std::size_t i = 0; i < kLength; ++i) {
    stack.push_back(std::move(a));
    if (op == Op::kAdd) {
      stack.emplace_back(x);
      stack.emplace_back(1);
    }
    handle.callBoxed(stack);
    a = std::move(stack.back());
    stack.pop_back();
  }
  return std::move(a).toTensor();
}

// The ways take turns, so that noise hits all of them.
void run_chain(benchmark::State& state, Op op, bool inference_mode) {
  std::optional<c10::InferenceMode> inference;
  std::optional<at::NoGradGuard> no_grad;
  if (inference_mode)
    inference.emplace();
  else
    no_grad.emplace();
  const at::Tensor x = at::randn({4});
  const auto module = chain(op);
  Interpreter interpreter(*module);
  const Replay replay(module);
  replay.run({x});
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
      op == Op::kNeg ? "aten::neg" : "aten::add", op == Op::kNeg ? "" : "Tensor");
  Times eager_times(kLength), boxed_times(kLength), interpreter_times(kLength),
      module_times(kLength), replay_times(kLength);
  for (auto _ : state) {
    eager_times.add(seconds([&] { benchmark::DoNotOptimize(eager(op, x)); }));
    boxed_times.add(seconds([&] { benchmark::DoNotOptimize(boxed(op, handle, x)); }));
    interpreter_times.add(seconds([&] { benchmark::DoNotOptimize(interpreter.run({x})); }));
    module_times.add(seconds([&] { benchmark::DoNotOptimize((*module)(x)); }));
    replay_times.add(seconds([&] { benchmark::DoNotOptimize(replay.run({x})); }));
  }
  const std::array<std::pair<const char*, const Times*>, 5> ways = {
      {{"eager", &eager_times},
       {"boxed", &boxed_times},
       {"interpreter", &interpreter_times},
       {"module", &module_times},
       {"replay", &replay_times}}};
  for (const auto& [way, times] : ways) {
    state.counters[std::string(way) + "_min_us"] = times->min();
    state.counters[std::string(way) + "_median_us"] = times->median();
  }
}

BENCHMARK_CAPTURE(run_chain, neg_no_grad, Op::kNeg, false)
    ->Name("run_chain/neg/no_grad")
    ->MinTime(1);
BENCHMARK_CAPTURE(run_chain, neg_inference_mode, Op::kNeg, true)
    ->Name("run_chain/neg/inference_mode")
    ->MinTime(1);
BENCHMARK_CAPTURE(run_chain, add_no_grad, Op::kAdd, false)
    ->Name("run_chain/add/no_grad")
    ->MinTime(1);
BENCHMARK_CAPTURE(run_chain, add_inference_mode, Op::kAdd, true)
    ->Name("run_chain/add/inference_mode")
    ->MinTime(1);

// 1,000 Identity modules, one after the other: the cost of calling a submodule.
struct IdentitiesImpl : torch::nn::Module {
  IdentitiesImpl() : body(register_module("body", fx::nn::Sequential())) {
    for (std::size_t i = 0; i < kLength; ++i) body->push_back(torch::nn::Identity());
  }
  at::Tensor forward(at::Tensor x) { return body(x); }

  fx::nn::Sequential body;
};
TORCH_MODULE(Identities);

void run_modules(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  Identities net;
  const at::Tensor x = at::randn({4});
  const auto module = symbolic_trace(net);
  Interpreter interpreter(*module);
  Times eager_times(kLength), interpreter_times(kLength), module_times(kLength);
  for (auto _ : state) {
    eager_times.add(seconds([&] { benchmark::DoNotOptimize(net->forward(x)); }));
    interpreter_times.add(seconds([&] { benchmark::DoNotOptimize(interpreter.run({x})); }));
    module_times.add(seconds([&] { benchmark::DoNotOptimize((*module)(x)); }));
  }
  state.counters["eager_min_us"] = eager_times.min();
  state.counters["interpreter_min_us"] = interpreter_times.min();
  state.counters["module_min_us"] = module_times.min();
}
BENCHMARK(run_modules)->MinTime(0.5);

// Two layers with gelu in between, softmax behind: microseconds a call, few rows a call.
struct MlpImpl : torch::nn::Module {
  MlpImpl()
      : first(register_module("first", fx::nn::Linear(32, 64))),
        second(register_module("second", fx::nn::Linear(64, 10))) {}
  at::Tensor forward(at::Tensor x) {
    return torch::softmax(second(torch::gelu(first(x)) * 0.5), -1);
  }

  fx::nn::Linear first, second;
};
TORCH_MODULE(Mlp);

void run_mlp(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  Mlp net;
  const at::Tensor x = at::randn({state.range(0), 32});
  const auto module = symbolic_trace(net);
  const Compiled plan = compile(module, {.backend = "plan"});
  const Compiled plan_replay = compile(module, {.backend = "plan", .mode = "reduce-overhead"});
  const Compiled llvm = compile(module);
  const Compiled llvm_replay = compile(module, {.mode = "reduce-overhead"});
  constexpr std::size_t kCalls = 100;
  const auto repeated = [&](auto&& call) {
    return seconds([&] {
      for (std::size_t i = 0; i < kCalls; ++i) benchmark::DoNotOptimize(call(x));
    });
  };
  Times eager_times(kCalls), plan_times(kCalls), plan_replay_times(kCalls), llvm_times(kCalls),
      llvm_replay_times(kCalls);
  for (auto _ : state) {
    eager_times.add(repeated([&](const at::Tensor& in) { return net->forward(in); }));
    plan_times.add(repeated([&](const at::Tensor& in) { return plan(in); }));
    plan_replay_times.add(repeated([&](const at::Tensor& in) { return plan_replay(in); }));
    llvm_times.add(repeated([&](const at::Tensor& in) { return llvm(in); }));
    llvm_replay_times.add(repeated([&](const at::Tensor& in) { return llvm_replay(in); }));
  }
  state.counters["eager_min_us"] = eager_times.min();
  state.counters["plan_min_us"] = plan_times.min();
  state.counters["plan_replay_min_us"] = plan_replay_times.min();
  state.counters["llvm_min_us"] = llvm_times.min();
  state.counters["llvm_replay_min_us"] = llvm_replay_times.min();
}
BENCHMARK(run_mlp)->Arg(1)->Arg(8)->MinTime(0.5);

}  // namespace
}  // namespace fx::bench
