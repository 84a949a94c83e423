// Building, asking, editing, copying and printing graphs: microseconds per node.
//
// The graphs are those of benchmarks/peer_torch_fx.py: n call_function nodes that alternate between
// relu and add of what came before.

#include <malloc.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "fx/graph/graph.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/text.h"
#include "fx/interpret/transformer.h"

namespace fx::bench {
namespace {

using GraphPtr = std::shared_ptr<Graph>;

const Target& relu() {
  static const Target target = Target::function("torch.relu");
  return target;
}
const Target& add() {
  static const Target target = Target::function("torch.add");
  return target;
}
const Target& sigmoid() {
  static const Target target = Target::function("torch.sigmoid");
  return target;
}
const Target& neg() {
  static const Target target = Target::function("torch.neg");
  return target;
}

GraphPtr build(std::size_t n) {
  auto graph = std::make_shared<Graph>();
  Node* a = &graph->placeholder("x");
  for (std::size_t i = 0; i < n / 2; ++i) {
    Node& b = graph->call_function(relu(), {*a});
    a = &graph->call_function(add(), {b, *a});
  }
  graph->output(*a);
  return graph;
}

// n nodes that nobody reads.
GraphPtr build_dead(std::size_t n) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node* a = &x;
  for (std::size_t i = 0; i < n; ++i) a = &graph->call_function(neg(), {*a});
  graph->output(x);
  return graph;
}

// A node with n users.
GraphPtr build_hub(std::size_t n) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->placeholder("y");
  Node* last = &x;
  for (std::size_t i = 0; i < n; ++i) last = &graph->call_function(neg(), {x});
  graph->output(*last);
  return graph;
}

// Every relu and the sigmoid that stands right behind it.
struct Pairs {
  GraphPtr graph;
  std::vector<std::pair<Node*, Node*>> pairs;
};

Pairs relus_and_sigmoids(std::size_t n) {
  Pairs made{build(n), {}};
  for (Node* node : made.graph->find_nodes(Opcode::kCallFunction, relu())) {
    auto at = made.graph->inserting_after(*node);
    Args args(node->args().begin(), node->args().end());
    made.pairs.emplace_back(node, &made.graph->call_function(sigmoid(), std::move(args)));
  }
  return made;
}

void replace_uses(Pairs& made) {
  for (auto& [old, replacement] : made.pairs) old->replace_all_uses_with(*replacement);
}

std::size_t size_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

void build_graph(benchmark::State& state) {
  const std::size_t n = size_of(state);
  measure(state, n, [n] { return build(n); });
}

// Bytes of the heap that a graph takes, per node.
void memory(benchmark::State& state) {
  const std::size_t n = size_of(state);
  auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  double bytes = 0;
  for (auto _ : state) {
    const double before = in_use();
    const GraphPtr graph = build(n);
    bytes = (in_use() - before) / static_cast<double>(n);
  }
  state.counters["bytes_per_node"] = bytes;
}

void lint(benchmark::State& state) {
  const std::size_t n = size_of(state);
  const GraphPtr graph = build(n);
  measure(state, n, [&] {
    graph->lint();
    return 0;
  });
}

void iterate(benchmark::State& state) {
  const std::size_t n = size_of(state);
  const GraphPtr graph = build(n);
  measure(state, n, [&] {
    std::size_t count = 0;
    for (const Node& node : graph->nodes()) count += node.op() == Opcode::kCallFunction;
    return count;
  });
}

void deepcopy(benchmark::State& state) {
  const std::size_t n = size_of(state);
  const GraphPtr graph = build(n);
  measure(state, n, [&] { return graph->clone(); });
}

void erase_node(benchmark::State& state) {
  const std::size_t n = size_of(state);
  auto prepare = [n] {
    Pairs made = relus_and_sigmoids(n);
    replace_uses(made);
    return made;
  };
  measure(state, n / 2, prepare, [](Pairs& made) {
    for (auto& [old, replacement] : made.pairs) made.graph->erase_node(*old);
    return made.graph->size();
  });
}

void dead_code_none(benchmark::State& state) {
  const std::size_t n = size_of(state);
  const GraphPtr graph = build(n);
  measure(state, n, [&] { return graph->eliminate_dead_code(); });
}

void dead_code_all(benchmark::State& state) {
  const std::size_t n = size_of(state);
  measure(
      state, n, [n] { return build_dead(n); },
      [](GraphPtr& graph) { return graph->eliminate_dead_code(); });
}

void replace_all_uses(benchmark::State& state) {
  const std::size_t n = size_of(state);
  measure(
      state, n / 2, [n] { return relus_and_sigmoids(n); },
      [](Pairs& made) {
        replace_uses(made);
        return 0;
      });
}

void replace_all_uses_hub(benchmark::State& state) {
  const std::size_t n = size_of(state);
  measure(
      state, n, [n] { return build_hub(n); },
      [](GraphPtr& graph) {
        const std::vector<Node*> inputs = graph->placeholders();
        return inputs[0]->replace_all_uses_with(*inputs[1]);
      });
}

// The most usual pass: insert, replace the uses, erase.
void rewrite(benchmark::State& state) {
  const std::size_t n = size_of(state);
  measure(
      state, n / 2, [n] { return build(n); },
      [](GraphPtr& graph) {
        for (Node& node : graph->nodes()) {
          if (node.target() != relu()) continue;
          auto at = graph->inserting_after(node);
          Args args(node.args().begin(), node.args().end());
          Node& made = graph->call_function(sigmoid(), std::move(args));
          node.replace_all_uses_with(made);
          graph->erase_node(node);
        }
        return graph->size();
      });
}

void recompile(benchmark::State& state) {
  const std::size_t n = size_of(state);
  GraphModule module(build(n));
  measure(state, n, [&] {
    module.recompile();
    return 0;
  });
}

void transform(benchmark::State& state) {
  const std::size_t n = size_of(state);
  GraphModule module(build(n));
  measure(state, n, [&] { return Transformer(module).transform(); });
}

void str(benchmark::State& state) {
  const std::size_t n = size_of(state);
  const GraphPtr graph = build(n);
  measure(state, n, [&] { return graph->str(); });
}

void print_tabular(benchmark::State& state) {
  const std::size_t n = size_of(state);
  const GraphPtr graph = build(n);
  measure(state, n, [&] {
    std::ostringstream out;
    graph->print_tabular(out);
    return out.str();
  });
}

void print_text(benchmark::State& state) {
  const std::size_t n = size_of(state);
  const GraphPtr graph = build(n);
  measure(state, n, [&] { return to_text(*graph); });
}

void parse(benchmark::State& state) {
  const std::size_t n = size_of(state);
  const std::string text = to_text(*build(n));
  measure(state, n, [&] { return parse_text(text); });
}

constexpr std::int64_t kSmall = 10'000;
constexpr std::int64_t kMedium = 100'000;
constexpr std::int64_t kLarge = 1'000'000;

void all_sizes(benchmark::internal::Benchmark* row) {
  row->UseManualTime()->Unit(benchmark::kMillisecond)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);
}
void small_size(benchmark::internal::Benchmark* row) {
  row->UseManualTime()->Unit(benchmark::kMillisecond)->Arg(kSmall);
}

// Memory first, before other rows leave holes in the heap.
BENCHMARK(memory)->Iterations(1)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);
BENCHMARK(build_graph)->Apply(all_sizes);
BENCHMARK(lint)->Apply(all_sizes);
BENCHMARK(iterate)->Apply(all_sizes);
BENCHMARK(deepcopy)->Apply(all_sizes);
BENCHMARK(erase_node)->Apply(all_sizes);
BENCHMARK(dead_code_none)->Apply(all_sizes);
BENCHMARK(dead_code_all)->Apply(all_sizes);
BENCHMARK(replace_all_uses)->Apply(all_sizes);
BENCHMARK(replace_all_uses_hub)->Apply(all_sizes);
BENCHMARK(rewrite)->Apply(all_sizes);
BENCHMARK(recompile)->Apply(all_sizes);
BENCHMARK(str)->Apply(all_sizes);
BENCHMARK(print_text)->Apply(all_sizes);
BENCHMARK(parse)->Apply(all_sizes);
BENCHMARK(print_tabular)->Apply(small_size);
BENCHMARK(transform)->Apply(small_size);

}  // namespace
}  // namespace fx::bench

BENCHMARK_MAIN();
