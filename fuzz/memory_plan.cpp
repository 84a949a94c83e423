// Any bytes as intervals: a layout in which nothing that lives together overlaps, or a refusal of
// what has no meaning.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "fx/plan/memory_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<fx::MemoryInterval> all;
  // Six bytes each: size, a shift of the size, alignment, first, length, alias class.
  for (; size >= 6 && all.size() < 500; data += 6, size -= 6) {
    fx::MemoryInterval interval;
    interval.size = std::size_t{data[0]} << (data[1] % 64);
    interval.alignment = data[2] % 16 == 15 ? data[2] : std::size_t{1} << (data[2] % 16);
    interval.first = data[3];
    interval.last = interval.first + data[4] - (data[4] == 255 ? 256 : 0);
    if (data[5] % 4 == 0) interval.alias = data[5];
    all.push_back(interval);
  }
  fx::MemoryPlan plan;
  try {
    plan = fx::plan_memory(all);
  } catch (const std::invalid_argument&) {
    return 0;
  } catch (const std::length_error&) {
    return 0;
  }
  if (plan.offsets.size() != all.size() || plan.arena_size < plan.lower_bound) std::abort();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const fx::MemoryInterval& a = all[i];
    if (plan.offsets[i] % a.alignment != 0 || plan.offsets[i] > plan.arena_size ||
        a.size > plan.arena_size - plan.offsets[i])
      if (a.size > 0) std::abort();
    for (std::size_t k = 0; k < i; ++k) {
      const fx::MemoryInterval& b = all[k];
      const bool same_class = a.alias == b.alias && a.alias != fx::MemoryInterval::kNoAlias;
      if (same_class && plan.offsets[i] != plan.offsets[k]) std::abort();
      if (same_class || a.size == 0 || b.size == 0) continue;
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool apart = plan.offsets[i] + a.size <= plan.offsets[k] ||
                         plan.offsets[k] + b.size <= plan.offsets[i];
      if (together && !apart) std::abort();
    }
  }
  return 0;
}
