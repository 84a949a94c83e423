#pragma once

#include <chrono>
#include <cstdint>

#include "fx/plan/plan.h"

namespace fx {

/// One step of a plan that has run.
struct StepEvent {
  const Plan& plan;
  std::size_t step = 0;  ///< index in plan.steps()
  std::chrono::nanoseconds time{};
  std::int64_t bytes_read = 0;     ///< of the tensors among its arguments
  std::int64_t bytes_written = 0;  ///< of the tensors that it gave; 0 for views
};

/// Sees every step of the plans that its thread runs while it is installed, those of nested graphs
/// too, which count for the step that calls them as well. Costs nothing elsewhere but a comparison
/// a step. An exception from on_step ends the run like one of the step.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_step(const StepEvent& event) = 0;

  /// The innermost observer of this thread, or null.
  static RunObserver* current() noexcept;

  /// Installs an observer on this thread; what was there before is back afterwards.
  class Scope {
   public:
    explicit Scope(RunObserver& observer) noexcept;
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    RunObserver* outer_;
  };
};

/// Measures a step for an observer: make it before, call done() behind.
class StepTimer {
 public:
  StepTimer(RunObserver& observer, const Plan& plan, std::size_t step, const Values& slots);
  void done(const Value& result);

 private:
  RunObserver& observer_;
  StepEvent event_;
  std::vector<const void*> inputs_;  // storages
  std::chrono::steady_clock::time_point start_;
};

}  // namespace fx
