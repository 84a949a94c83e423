#pragma once

#include "fx/plan/lifetimes.h"
#include "fx/run/executable.h"
#include "fx/run/static_layout.h"

namespace fx {

/// Runs a plan once as it is, looks what every step gives, and lays out what later runs with such
/// inputs can keep in one arena.
///
/// A result becomes static when its memory is private (result_lifetimes), it is one dense tensor or
/// a tuple of them, and the operator has an out-variant that, tried on the spot, gave the same
/// bits; or when a KernelModule made it. Views of static results are static as well.
class LayoutRecorder {
 public:
  LayoutRecorder(const Executable& executable, const std::vector<ResultLifetime>& lifetimes,
                 const GraphModule& module);

  struct Recording {
    Value result;  ///< of the run, as the graph returns it
    StaticLayout layout;
  };
  /// @param inputs flat, one for each placeholder, tensors plain.
  /// @throws as Executable::run.
  Recording run(Values inputs) const;

 private:
  class Observer;

  const Executable& executable_;
  const std::vector<ResultLifetime>& lifetimes_;
  const GraphModule& module_;
};

}  // namespace fx
