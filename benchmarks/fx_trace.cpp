// Symbolic tracing: microseconds per node, and captures of what C++ code runs; nets as in
// benchmarks/peer_torch_fx.py.

#include "benchmarks/bench.h"
#include "benchmarks/nets.h"
#include "fx/capture/make_fx.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/passes/functionalize.h"
#include "fx/passes/joint.h"
#include "fx/passes/min_cut_partition.h"

namespace fx::bench {
namespace {

template <typename Net>
void tracer(benchmark::State& state) {
  Net net;
  net->eval();
  Tracer counter;
  const std::size_t nodes = trace(counter, net)->size();
  measure(state, nodes, [&] {
    Tracer tracer;
    return trace(tracer, net);
  });
}

template <typename Net>
void whole(benchmark::State& state) {
  Net net;
  net->eval();
  const std::size_t nodes = symbolic_trace(net)->graph().size();
  measure(state, nodes, [&] { return symbolic_trace(net); });
}

template <typename Net>
void recompile(benchmark::State& state) {
  Net net;
  net->eval();
  const auto module = symbolic_trace(net);
  measure(state, module->graph().size(), [&] {
    module->recompile();
    return 0;
  });
}

template <typename Net>
void deepcopy(benchmark::State& state) {
  Net net;
  net->eval();
  const auto module = symbolic_trace(net);
  measure(state, module->graph().size(), [&] { return module->graph().clone(); });
}

// --- captures ------------------------------------------------------------------------------------

struct ConvNet {
  ResNet50 net;
  torch::Tensor input = torch::randn({1, 3, 64, 64});
  torch::Tensor run(const torch::Tensor& x) { return net->forward(x); }
};

// LibTorch's own layers, which nothing of this library stands between.
struct AttentionNet {
  torch::nn::TransformerEncoder net{torch::nn::TransformerEncoderOptions(
      torch::nn::TransformerEncoderLayer(
          torch::nn::TransformerEncoderLayerOptions(64, 4).dim_feedforward(128)),
      12)};
  torch::Tensor input = torch::randn({16, 1, 64});
  torch::Tensor run(const torch::Tensor& x) { return net->forward(x, {}, {}); }
};

template <typename Program>
std::shared_ptr<GraphModule> captured(Program& program) {
  struct Call {
    Program& program;
    torch::Tensor operator()(torch::Tensor x) const { return program.run(x); }
  };
  return make_fx(Call{program}, {program.input});
}

template <typename Program>
void capture(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  Program program;
  program.net->eval();
  measure(state, 1, [&] { return captured(program); });
}

std::size_t operators_of(const GraphModule& module) {
  std::size_t count = 0;
  for (const Node& node : module.graph().nodes())
    count += node.op() == Opcode::kCallFunction && !node.calls("operator.getitem");
  return count;
}

// Two ways of running by turns, so that both see the same machine.
template <typename First, typename Second>
std::pair<double, double> by_turns(benchmark::State& state, First&& first, Second&& second) {
  Times a(1), b(1);
  for (auto _ : state) {
    a.add(seconds(first));
    const double elapsed = seconds(second);
    b.add(elapsed);
    state.SetIterationTime(elapsed);
  }
  return {a.min(), b.min()};
}

// What recording adds to an operator.
template <typename Program>
void capture_overhead(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  Program program;
  program.net->eval();
  const auto operators = static_cast<double>(operators_of(*captured(program)));
  const auto [eager, capture] = by_turns(
      state, [&] { benchmark::DoNotOptimize(program.run(program.input)); },
      [&] { benchmark::DoNotOptimize(captured(program)); });
  state.counters["units"] = operators;
  state.counters["min_us"] = (capture - eager) / operators;
  state.counters["eager_us"] = eager;
}

// A call of the captured graph, and eager's time as a counter.
template <typename Program>
void replay(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  Program program;
  program.net->eval();
  const auto module = captured(program);
  const auto [eager, graph] = by_turns(
      state, [&] { benchmark::DoNotOptimize(program.run(program.input)); },
      [&] { benchmark::DoNotOptimize((*module)(program.input)); });
  state.counters["units"] = 1;
  state.counters["min_us"] = graph;
  state.counters["eager_us"] = eager;
  state.counters["to_eager"] = graph / eager;
}

template <typename Program>
void functional(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  Program program;
  program.net->eval();
  measure(
      state, 1, [&] { return captured(program); },
      [&](const std::shared_ptr<GraphModule>& module) {
        functionalize(*module, {program.input});
        return 0;
      });
}

// Forward and backward as one graph, cut in two: what aot_function does before it compiles.
template <typename Program>
void training_graphs(benchmark::State& state) {
  Program program;
  JointOptions options;
  options.module = program.net.get();
  measure(state, 1, [&] {
    const auto whole =
        joint([&](torch::Tensor x) { return program.run(x); }, {program.input}, options);
    return min_cut_rematerialization_partition(*whole);
  });
}

void add(const std::string& row, void (*function)(benchmark::State&)) {
  benchmark::RegisterBenchmark(row.c_str(), function)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

template <typename Program>
void add_captures(const std::string& name) {
  add("make_fx/" + name, capture<Program>);
  add("capture_overhead/" + name, capture_overhead<Program>);
  add("replay/" + name, replay<Program>);
  add("functionalize/" + name, functional<Program>);
  add("training_graphs/" + name, training_graphs<Program>);
}

template <typename Net>
void add_rows(const std::string& name) {
  add("tracer/" + name, tracer<Net>);
  add("symbolic_trace/" + name, whole<Net>);
  add("recompile/" + name, recompile<Net>);
  add("deepcopy/" + name, deepcopy<Net>);
}

[[maybe_unused]] const bool kRegistered = [] {
  add_rows<resnet::ResNet18>("resnet18");
  add_rows<ResNet50>("resnet50");
  add_rows<Encoder>("encoder12");
  add_captures<ConvNet>("resnet50");
  add_captures<AttentionNet>("attention12");
  return true;
}();

}  // namespace
}  // namespace fx::bench
