#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

/// How a row of the benchmarks is timed. The machines are noisy, so each row tells the smallest and
/// the median time of its runs, in microseconds per unit (a node, a match, an operator call): the
/// counters that benchmarks/run.py compares with Python's torch.fx.
namespace fx::bench {

using Clock = std::chrono::steady_clock;

/// Seconds that `body()` takes.
template <typename Body>
double seconds(Body&& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Microseconds per unit of several runs.
class Times {
 public:
  explicit Times(std::size_t units) : units_(static_cast<double>(units)) {}

  void add(double run_seconds) { us_.push_back(run_seconds * 1e6 / units_); }
  double min() const { return *std::min_element(us_.begin(), us_.end()); }
  double median() const {
    std::vector<double> sorted = us_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

 private:
  double units_;
  std::vector<double> us_;
};

/// Times `body(prepare())` again and again. Neither preparing nor destroying what it works on or
/// returns counts.
template <typename Prepare, typename Body>
void measure(benchmark::State& state, std::size_t units, Prepare&& prepare, Body&& body) {
  Times times(units);
  for (auto _ : state) {
    auto prepared = prepare();
    const auto start = Clock::now();
    auto result = body(prepared);
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    benchmark::DoNotOptimize(result);
    state.SetIterationTime(elapsed);
    times.add(elapsed);
  }
  state.counters["units"] = static_cast<double>(units);
  state.counters["min_us"] = times.min();
  state.counters["median_us"] = times.median();
}

/// The same without a preparation.
template <typename Body>
void measure(benchmark::State& state, std::size_t units, Body&& body) {
  measure(state, units, [] { return 0; }, [&](int) { return body(); });
}

}  // namespace fx::bench
