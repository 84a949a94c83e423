// Reading an exported program, and saving and loading a module of our own. The exported file comes
// from the environment variable FXCPP_BENCH_PT2, which benchmarks/run.py sets to a ResNet-50 that
// it exports with Python.

#include <torch/types.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "benchmarks/bench.h"
#include "fx/io/import_export.h"
#include "fx/io/save_module.h"

namespace fx::bench {
namespace {

void load_pt2(benchmark::State& state) {
  const char* path = std::getenv("FXCPP_BENCH_PT2");
  if (!path || !*path) {
    state.SkipWithError(
        "FXCPP_BENCH_PT2 names no .pt2 file: run benchmarks/run.py with a Python that "
        "has torch and torchvision");
    return;
  }
  const std::size_t nodes = load(path)->graph().size();  // also warms the file cache
  measure(state, 1, [&] { return load(path); });
  state.counters["nodes"] = static_cast<double>(nodes);
}

constexpr std::size_t kNodes = 10000;

// A sum of parameters: a get_attr for every other node.
std::shared_ptr<GraphModule> sum_of_parameters() {
  auto graph = std::make_shared<Graph>();
  auto module = std::make_shared<GraphModule>(graph);
  Node* sum = &graph->placeholder("x");
  for (std::size_t i = 0; i < kNodes / 2; ++i) {
    const std::string name = "p" + std::to_string(i);
    module->set_parameter(name, torch::ones({16}));
    sum = &graph->call_function("torch.add", {*sum, graph->get_attr(name)});
  }
  graph->output(*sum);
  module->recompile();
  return module;
}

// A file of this process, removed at the end of the row.
class TemporaryFile {
 public:
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("fxcpp-bench-" + std::to_string(::getpid()) + ".fxa"))
                          .string();
};

void save_module(benchmark::State& state, bool flush) {
  const auto module = sum_of_parameters();
  const TemporaryFile file;
  measure(state, kNodes, [&] {
    save(*module, file.path(), {.flush = flush});
    return 0;
  });
  state.counters["file_bytes"] = static_cast<double>(std::filesystem::file_size(file.path()));
}

void deepcopy_module(benchmark::State& state) {
  const auto module = sum_of_parameters();
  measure(state, kNodes, [&] { return module->deep_copy(); });
}

void load_module(benchmark::State& state) {
  const TemporaryFile file;
  save(*sum_of_parameters(), file.path());
  measure(state, kNodes, [&] { return load(file.path()); });
}

BENCHMARK_CAPTURE(save_module, memory, false)
    ->Name("save_module")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(save_module, disk, true)
    ->Name("save_module_flushed")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(deepcopy_module)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(load_module)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(load_pt2)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fx::bench
