#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fx/run/run_observer.h"

namespace fx {

/// Bytes a second that this machine copies, from memory to memory, with LibTorch's threads: read
/// and written bytes, the best of a few runs over 64 MB. Takes about 50 ms.
double memory_bandwidth();

/// Adds up what the steps of plans take; the sibling of ProfilingInterpreter for what runs fast:
///
///     fx::PlanProfiler profiler;
///     { fx::RunObserver::Scope scope(profiler); model(x); }
///     std::cout << profiler.table();
class PlanProfiler : public RunObserver {
 public:
  struct Row {
    std::string name;    ///< of the node
    std::string target;  ///< what it calls
    std::size_t calls = 0;
    double total_us = 0;
    double min_us = 0;
    std::int64_t bytes_read = 0;  ///< of the last call
    std::int64_t bytes_written = 0;
  };

  void on_step(const StepEvent& event) override;

  /// In order of first execution.
  const std::vector<Row>& rows() const noexcept { return rows_; }
  double total_us() const;
  void reset();

  /// A table with one line a step: microseconds of the fastest call, its share of all, bytes moved,
  /// GB/s. @param bandwidth in bytes a second: also the share of it; 0 for none.
  std::string table(double bandwidth = 0) const;

 private:
  std::vector<Row> rows_;
  std::map<std::pair<const Plan*, std::size_t>, std::size_t> index_;
};

}  // namespace fx
