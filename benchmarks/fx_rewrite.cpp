// Patterns and passes over graphs of 10,000 nodes: microseconds per match or node.
//
// The graphs of replace_pattern are those of benchmarks/peer_torch_fx.py; both recompile at the
// end, as torch.fx does.

#include <memory>
#include <utility>

#include "benchmarks/bench.h"
#include "fx/graph/graph_module.h"
#include "fx/passes/partitioner.h"
#include "fx/passes/pass_manager.h"
#include "fx/passes/replace_pattern.h"
#include "fx/passes/split_module.h"

namespace fx::bench {
namespace {

constexpr int kGroups = 1000;
constexpr std::size_t kNodes = 10'000;

// 1,000 times relu, add and eight negs.
std::shared_ptr<GraphModule> groups() {
  auto graph = std::make_shared<Graph>();
  Node* a = &graph->placeholder("x");
  for (int i = 0; i < kGroups; ++i) {
    Node& b = graph->call_function("torch.relu", {*a});
    a = &graph->call_function("torch.add", {b, *a});
    for (int j = 0; j < 8; ++j) a = &graph->call_function("torch.neg", {*a});
  }
  graph->output(*a);
  return std::make_shared<GraphModule>(graph);
}

void replace_1000_matches(benchmark::State& state) {
  measure(state, kGroups, groups, [](std::shared_ptr<GraphModule>& module) {
    return replace_pattern(
               *module, [](auto x) { return add(relu(x), x); }, [](auto x) { return sigmoid(x); })
        .size();
  });
}

void replace_no_match(benchmark::State& state) {
  measure(state, kNodes, groups, [](std::shared_ptr<GraphModule>& module) {
    return replace_pattern(
               *module, [](auto x) { return erf(relu(x)); }, [](auto x) { return sigmoid(x); })
        .size();
  });
}

// Half of the nodes are computed twice.
std::shared_ptr<GraphModule> repeated() {
  auto graph = std::make_shared<Graph>();
  Node* a = &graph->placeholder("x");
  for (std::size_t i = 0; i < kNodes / 4; ++i) {
    Node& b = graph->call_function("aten::relu", {*a});
    Node& c = graph->call_function("aten::relu", {*a});
    Node& d = graph->call_function("aten::add.Tensor", {b, c});
    a = &graph->call_function("aten::neg", {d});
  }
  graph->output(*a);
  return std::make_shared<GraphModule>(graph);
}

// One pass through the manager: verified, compared, recompiled.
void pass(benchmark::State& state, const char* pipeline) {
  measure(state, kNodes, repeated, [pipeline](std::shared_ptr<GraphModule>& module) {
    return run_passes(*module, pipeline).changed;
  });
}

// A chain of relu and neg in turn, in so many parts.
std::shared_ptr<GraphModule> chain(std::size_t nodes) {
  auto graph = std::make_shared<Graph>();
  Node* a = &graph->placeholder("x");
  for (std::size_t i = 0; i < nodes; ++i)
    a = &graph->call_function(i % 2 ? "torch.neg" : "torch.relu", {*a});
  graph->output(*a);
  return std::make_shared<GraphModule>(graph);
}

void split(benchmark::State& state) {
  const auto parts = static_cast<std::size_t>(state.range(0));
  const auto module = chain(kNodes);
  measure(
      state, kNodes, [] { return std::size_t{0}; },
      [&](std::size_t& next) {
        return split_module(*module,
                            [&](const Node&) { return static_cast<int>(next++ * parts / kNodes); });
      });
}

// Every twentieth node is not supported: the partitions that are left wait for each other.
void propose(benchmark::State& state) {
  const auto nodes = static_cast<std::size_t>(state.range(0));
  const auto module = chain(nodes);
  measure(
      state, nodes, [] { return std::size_t{0}; },
      [&](std::size_t& next) {
        CapabilityBasedPartitioner partitioner(
            *module, [&](const GraphModule&, const Node&) { return next++ % 20 != 10; });
        return partitioner.propose_partitions().size();
      });
}

BENCHMARK(split)
    ->Name("split_module")
    ->Arg(2)
    ->Arg(100)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(propose)
    ->Name("partitioner")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(40000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(replace_1000_matches)
    ->Name("replace_pattern/1000_matches")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(replace_no_match)
    ->Name("replace_pattern/no_match")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pass, cse, "cse")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pass, dce, "dce")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pass, constant_fold, "constant_fold")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fx::bench
