// Reading an exported program. The file comes from the environment variable FXCPP_BENCH_PT2, which
// benchmarks/run.py sets to a ResNet-50 that it exports with Python.

#include <cstdlib>

#include "benchmarks/bench.h"
#include "fx/io/import_export.h"

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
BENCHMARK(load_pt2)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fx::bench
