// Symbolic tracing: microseconds per node, nets as in benchmarks/peer_torch_fx.py.

#include "benchmarks/bench.h"
#include "benchmarks/nets.h"
#include "fx/capture/symbolic_trace.h"

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

template <typename Net>
void add_rows(const std::string& name) {
  auto add = [&](const std::string& row, void (*function)(benchmark::State&)) {
    benchmark::RegisterBenchmark((row + "/" + name).c_str(), function)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  add("tracer", tracer<Net>);
  add("symbolic_trace", whole<Net>);
  add("recompile", recompile<Net>);
  add("deepcopy", deepcopy<Net>);
}

[[maybe_unused]] const bool kRegistered = [] {
  add_rows<resnet::ResNet18>("resnet18");
  add_rows<ResNet50>("resnet50");
  add_rows<Encoder>("encoder12");
  return true;
}();

}  // namespace
}  // namespace fx::bench
