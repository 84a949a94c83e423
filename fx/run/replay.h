#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "fx/plan/lifetimes.h"
#include "fx/run/executable.h"

namespace fx {

class StaticFrame;

/// Calls of one GraphModule that are often of the same sizes (the mode "reduce-overhead").
///
/// The first call with inputs of certain dtypes, sizes and strides runs the plan as it is and looks
/// what every step gives. Calls like it then run a static layout: results that nobody can see after
/// the run lie in one arena, laid out by plan_memory; operators write into it through their
/// out-variants, KernelModules directly, and views of it are made once. What is returned, written
/// to by the graph, or handed to code that might keep it is allocated anew in each call, as ever:
/// results of a call never change later.
///
/// Every other call runs the plan: keyword inputs, gradients, tensors that are not plain ones of
/// the CPU, tracers, autocast and the like, and inputs of more kinds than a few. So does the rest
/// of a call in which a step gives another size than it did.
///
/// Each call has a frame of its own, kept for the next one, so any number of threads call at once.
/// The memory goes with this object, or with the last tensor that holds it.
class Replay {
 public:
  /// The graph counts as it is now; attributes and submodules are read live. O(nodes).
  explicit Replay(std::shared_ptr<GraphModule> module);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay();

  /// @throws as GraphModule::forward.
  Value run(Values inputs, KwValues kwargs = {}) const;

  struct Statistics {
    std::uint64_t replays = 0;      ///< calls that ran a static layout
    std::uint64_t left = 0;         ///< of these, calls that went back to the plan on the way
    std::uint64_t ordinary = 0;     ///< calls that ran the plan
    std::uint64_t recorded = 0;     ///< calls that recorded a layout
    std::size_t layouts = 0;        ///< for so many kinds of inputs
    std::size_t frames = 0;         ///< that wait for the next call
    std::size_t frame_bytes = 0;    ///< of their arenas
    std::uint64_t frames_lost = 0;  ///< given up since somebody else held a part of them
  };
  Statistics statistics() const;
  /// The numbers as one line.
  std::string summary() const;
  /// The plan, and for each layout what is static in it.
  std::string str() const;

 private:
  struct Entry;
  class Recording;
  class Run;

  bool can_replay(const Values& inputs, const KwValues& kwargs) const;
  bool gradients_may_flow(const Values& inputs) const;
  const Entry* find(const Values& inputs) const;
  Value run_flat(Values inputs, KwValues kwargs) const;
  Value record(Values inputs) const;
  Value replay(const Entry& entry, Values inputs) const;
  void give_back(const Entry& entry, std::unique_ptr<StaticFrame> frame) const;

  std::shared_ptr<GraphModule> module_;
  Executable executable_;
  std::vector<ResultLifetime> lifetimes_;
  bool closed_ = false;  // nothing in the graph makes a tensor require gradients
  mutable std::atomic<const Entry*> entries_{nullptr};  // a list that only grows
  mutable std::atomic<bool> recording_{false};
  mutable std::atomic<std::uint64_t> replays_{0};
  mutable std::atomic<std::uint64_t> left_{0};
  mutable std::atomic<std::uint64_t> ordinary_{0};
  mutable std::atomic<std::uint64_t> recorded_{0};
  mutable std::atomic<std::uint64_t> frames_lost_{0};
  mutable std::atomic<std::size_t> large_bytes_{0};  // of large arenas that wait
};

}  // namespace fx
