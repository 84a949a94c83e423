// Patterns and passes over graphs of 10,000 nodes: microseconds per match or node.
//
// The graphs of replace_pattern are those of benchmarks/peer_torch_fx.py; both recompile at the
// end, as torch.fx does.

#include <memory>
#include <utility>

#include "benchmarks/bench.h"
#include "fx/graph/graph_module.h"
#include "fx/passes/pass_manager.h"
#include "fx/passes/replace_pattern.h"

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
