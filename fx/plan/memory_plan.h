#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Memory of values that live at known times, laid out in one arena. Plain numbers: knows nothing
/// of graphs and tensors.
namespace fx {

/// What one value needs: `size` bytes during the steps [first, last], both included.
struct MemoryInterval {
  static constexpr std::uint32_t kNoAlias = ~std::uint32_t{0};

  std::size_t size = 0;
  std::size_t alignment = 64;  ///< of the offset; a power of two
  std::size_t first = 0;
  std::size_t last = 0;
  /// Intervals of one alias class share their memory: they get the same offset, and room for the
  /// largest of them from the first to the last step of any.
  std::uint32_t alias = kNoAlias;
};

/// Where everything lies.
struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< by interval
  std::size_t arena_size = 0;        ///< the end of what lies highest
  std::size_t lower_bound = 0;       ///< most bytes that live at one step: no layout needs less
  std::size_t total_size = 0;        ///< of all, each in memory of its own

  /// One line: "arena 1024 bytes for 4096, at least 1024".
  std::string str() const;
};

/// Gives each interval an offset, so that what lives at the same step does not overlap (intervals
/// of no bytes lie anywhere). The optimum is NP-hard (Garey and Johnson 1979, dynamic storage
/// allocation); this is the best of a few greedy orders: by size into the smallest gap that fits
/// (Pisarchyk and Lee 2020), by size times time, and in the order of time. The result depends on
/// nothing but the intervals.
/// O(n^2) up to a few thousand intervals; beyond, in the order of time alone, O(n log n + n *
/// gaps).
/// @throws std::invalid_argument for an alignment that is no power of two and for last < first;
///   std::length_error when the sizes do not fit into size_t.
MemoryPlan plan_memory(std::span<const MemoryInterval> intervals);

}  // namespace fx
